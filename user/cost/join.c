// SPDX-License-Identifier: Apache-2.0
/*
 * A map from where a send begins to who did it and where it ends. What a server reads at
 * once may be several sends: the chain of them is followed to the end of the range. Old
 * messages go by halves: the older of two maps is dropped when the younger is full.
 */
#include "cost/join.h"

#include <string.h>

#include "core/intern.h"
#include "core/map.h"
#include "core/mem.h"

struct place {
	uint64_t source, target, realm, begin;
};

struct sent {
	uint64_t sender, end;
};

struct join {
	struct map *young, *old;
	size_t limit;
};

uint64_t message_id(const struct message *message)
{
	struct place place = { message->source, message->target, message->realm,
			       message->begin };

	return hash_bytes(&place, sizeof(place), 3);
}

struct join *join_new(size_t limit)
{
	struct join *join = mem_alloc(sizeof(*join));

	join->limit = (limit ?: JOIN_MAX_MESSAGES) / 2;
	join->young = map_new(sizeof(struct place), sizeof(struct sent));
	join->old = map_new(sizeof(struct place), sizeof(struct sent));
	return join;
}

void join_free(struct join *join)
{
	if (!join)
		return;
	map_free(join->young);
	map_free(join->old);
	free(join);
}

void join_sent(struct join *join, const struct message *message, uint64_t sender)
{
	struct place place = { message->source, message->target, message->realm,
			       message->begin };

	if (map_count(join->young) >= join->limit) {
		struct map *old = join->old;

		join->old = join->young;
		join->young = old;
		map_clear(old);
	}
	*(struct sent *)map_put(join->young, &place, NULL) =
		(struct sent){ sender, message->end };
}

uint64_t join_sender(const struct join *join, const struct message *message)
{
	struct place place = { message->source, message->target, message->realm,
			       message->begin };
	uint64_t sender = 0;

	for (int part = 0; part < JOIN_MAX_PARTS && place.begin < message->end; part++) {
		const struct sent *sent = map_find(join->young, &place);

		if (!sent)
			sent = map_find(join->old, &place);
		if (!sent || sent->end <= place.begin)
			return 0;
		if (sender && sent->sender != sender)
			return 0;
		sender = sent->sender;
		place.begin = sent->end;
	}
	return place.begin >= message->end ? sender : 0;
}
