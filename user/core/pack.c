// SPDX-License-Identifier: Apache-2.0
#include "core/pack.h"

#include <string.h>

#include "core/intern.h"
#include "core/map.h"

size_t pack_size(size_t bytes)
{
	return sizeof(struct pack_entry) + ((bytes + 7) & ~(size_t)7);
}

static uint64_t hash_of(const struct pack_entry *entry, const void *data)
{
	uint64_t names[] = { entry->exact, entry->key };

	return hash_bytes(data, entry->bytes, hash_bytes(names, sizeof(names), 0));
}

bool pack_read(const void *data, size_t bytes, struct pack *ret_pack)
{
	struct pack_head head;
	size_t at = sizeof(head);
	const uint8_t *all = data;

	*ret_pack = (struct pack){ .version = 0 };
	if (bytes < sizeof(head))
		return false;
	memcpy(&head, all, sizeof(head));
	if (head.magic != PACK_MAGIC)
		return false;
	ret_pack->version = head.version;
	while (bytes - at >= sizeof(struct pack_entry) &&
	       ret_pack->items.count < PACK_MAX_ENTRIES) {
		struct pack_item item;

		memcpy(&item.entry, all + at, sizeof(item.entry));
		item.data = all + at + sizeof(item.entry);
		if (pack_size(item.entry.bytes) > bytes - at)
			break;
		at += pack_size(item.entry.bytes);
		if (hash_of(&item.entry, item.data) == item.entry.hash)
			vec_push(&ret_pack->items, item);
	}
	return true;
}

void pack_fini(struct pack *pack)
{
	vec_fini(&pack->items);
}

void pack_begin(struct str *out, uint64_t version)
{
	struct pack_head head = { PACK_MAGIC, version };

	str_add_bytes(out, &head, sizeof(head));
}

void pack_put(struct str *out, uint64_t exact, uint64_t key, const void *data,
	      size_t bytes)
{
	struct pack_entry entry = { .exact = exact,
				    .key = key,
				    .bytes = (uint32_t)bytes };
	static const uint8_t zeros[8];

	entry.hash = hash_of(&entry, data);
	str_add_bytes(out, &entry, sizeof(entry));
	str_add_bytes(out, data, bytes);
	str_add_bytes(out, zeros, -bytes & 7);
}

void pack_copy(struct str *out, const void *data, size_t bytes)
{
	struct pack pack;

	if (pack_read(data, bytes, &pack))
		vec_each(&pack.items, item)
			pack_put(out, item->entry.exact, item->entry.key, item->data,
				 item->entry.bytes);
	pack_fini(&pack);
}

static void copy_old(const struct pack *old, const struct map *replaced,
		     uint64_t max_bytes, struct str *out)
{
	vec_each(&old->items, item)
		if (!map_find(replaced, &item->entry.exact) &&
		    !map_find(replaced, &item->entry.hash) &&
		    out->length + pack_size(item->entry.bytes) <= max_bytes)
			pack_put(out, item->entry.exact, item->entry.key, item->data,
				 item->entry.bytes);
}

bool pack_merge(const struct str *fresh, const struct str *old, uint64_t max_bytes,
		struct str *out)
{
	struct pack now, before = { .version = 0 };
	bool is_all = false;
	CLEANUP(map_free) struct map *replaced = map_new(sizeof(uint64_t), 1);

	if (!pack_read(fresh->data, fresh->length, &now))
		return false;
	pack_begin(out, now.version);
	vec_each(&now.items, item) {
		is_all |= item->entry.exact == PACK_ALL && item->entry.key == PACK_ALL;
		if (out->length + pack_size(item->entry.bytes) > max_bytes)
			break;
		map_put(replaced, &item->entry.exact, NULL);
		map_put(replaced, &item->entry.hash, NULL);
		pack_put(out, item->entry.exact, item->entry.key, item->data,
			 item->entry.bytes);
	}
	if (!is_all && old && old->length && pack_read(old->data, old->length, &before) &&
	    before.version == now.version)
		copy_old(&before, replaced, max_bytes, out);
	pack_fini(&before);
	pack_fini(&now);
	return true;
}
