// SPDX-License-Identifier: Apache-2.0
/*
 * A map from where a send begins to who did it and where it ends. What a server reads at
 * once may be several sends: the chain of them is followed to the end of the range. A
 * buffer that was full may have ended the range before amid a send; that one is among the
 * last of its stream, or not known. Old messages go by halves: the older of two maps is
 * dropped when the younger is full.
 */
#include "cost/join.h"

#include <stdbool.h>
#include <string.h>

#include "core/intern.h"
#include "core/map.h"
#include "core/mem.h"

#define LAST_PARTS  8
#define MAX_STREAMS 16384

struct place {
	uint64_t source, target, realm, begin;
};

struct sent {
	uint64_t sender, end;
};

struct part {
	uint64_t begin, end, sender;
};

struct stream_key {
	uint64_t source, target, realm;
};

struct stream_end {
	struct part parts[LAST_PARTS];
	unsigned next;
};

struct join {
	struct map *young, *old; /* place -> sent */
	struct map *streams;	 /* stream_key -> stream_end */
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
	join->streams = map_new(sizeof(struct stream_key), sizeof(struct stream_end));
	return join;
}

void join_free(struct join *join)
{
	if (!join)
		return;
	map_free(join->young);
	map_free(join->old);
	map_free(join->streams);
	free(join);
}

static struct stream_key stream_of(const struct message *message)
{
	return (struct stream_key){ message->source, message->target, message->realm };
}

static void keep_last(struct join *join, const struct message *message, uint64_t sender)
{
	struct stream_key key = stream_of(message);
	struct stream_end *stream = map_find(join->streams, &key);

	if (!stream && map_count(join->streams) >= MAX_STREAMS)
		map_clear(join->streams);
	if (!stream)
		stream = map_put(join->streams, &key, NULL);
	stream->parts[stream->next++ % LAST_PARTS] =
		(struct part){ message->begin, message->end, sender };
}

/* The send amid which @message begins. */
static bool find_amid(const struct join *join, const struct message *message,
		      struct sent *ret_sent)
{
	struct stream_key key = stream_of(message);
	const struct stream_end *stream = map_find(join->streams, &key);

	for (int i = 0; stream && i < LAST_PARTS; i++) {
		const struct part *part = &stream->parts[i];

		if (part->begin < message->begin && message->begin < part->end) {
			*ret_sent = (struct sent){ part->sender, part->end };
			return true;
		}
	}
	return false;
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
	keep_last(join, message, sender);
}

uint64_t join_sender(const struct join *join, const struct message *message)
{
	struct place place = { message->source, message->target, message->realm,
			       message->begin };
	uint64_t sender = 0;
	bool may_change = message->has_rest;

	for (int part = 0; part < JOIN_MAX_PARTS && place.begin < message->end; part++) {
		const struct sent *sent = map_find(join->young, &place);
		struct sent amid;

		if (!sent)
			sent = map_find(join->old, &place);
		if (!sent && !part && find_amid(join, message, &amid))
			sent = &amid;
		if (!sent || sent->end <= place.begin)
			return 0;
		if (sender && sent->sender != sender && !may_change)
			return 0;
		may_change &= !sender || sent->sender == sender;
		sender = sent->sender;
		place.begin = sent->end;
	}
	return place.begin >= message->end ? sender : 0;
}
