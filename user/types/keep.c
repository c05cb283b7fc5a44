// SPDX-License-Identifier: Apache-2.0
#include "types/keep.h"

#include <string.h>

#include "core/intern.h"
#include "core/mem.h"
#include "core/pack.h"
#include "types/answer.h"
#include "types/mark.h"

#define SMALL (1024 * 1024) /* not worth tidying */

struct keep_head {
	uint32_t mark_bytes, unused; /* 0: good for this very build only */
};

struct fresh {
	uint64_t exact, key;
	struct str bytes;
};

struct keep {
	struct recover *recover;
	struct marker *marker; /* NULL: only the very build */
	struct str bytes;
	struct pack pack;
	struct map *by_exact; /* -> number of the item */
	struct map *by_key;   /* -> number of the last item; the others by @next */
	uint32_t *next;	      /* by item, UINT32_MAX ends */
	uint64_t version, content;
	VEC(struct fresh) fresh;
	VEC(uint32_t) used; /* items, with the build they were made for */
	size_t taken;
	uint64_t key, exact; /* of the unit under way */
	bool has_key;
};

static uint64_t exact_of(const struct keep *keep, uint32_t unit)
{
	uint64_t words[] = { keep->content, unit };

	return hash_bytes(words, sizeof(words), 0);
}

static void index_items(struct keep *keep)
{
	keep->next = mem_array(keep->pack.items.count + 1, sizeof(*keep->next));
	for (size_t i = keep->pack.items.count; i-- > 0;) {
		const struct pack_entry *entry = &keep->pack.items.data[i].entry;
		bool is_new;
		uint32_t *slot = map_put(keep->by_key, &entry->key, &is_new);

		keep->next[i] = is_new ? UINT32_MAX : *slot;
		*slot = (uint32_t)i;
		*(uint32_t *)map_put(keep->by_exact, &entry->exact, NULL) = (uint32_t)i;
	}
}

struct keep *keep_new(struct recover *recover, struct str *pack, uint64_t version,
		      uint64_t content)
{
	struct keep *keep = mem_alloc(sizeof(*keep));

	keep->recover = recover;
	keep->bytes = *pack;
	*pack = (struct str){ 0 };
	keep->version = version;
	keep->content = content;
	keep->by_exact = map_new(sizeof(uint64_t), sizeof(uint32_t));
	keep->by_key = map_new(sizeof(uint64_t), sizeof(uint32_t));
	if (keep->bytes.length &&
	    pack_read(keep->bytes.data, keep->bytes.length, &keep->pack) &&
	    keep->pack.version != version)
		vec_clear(&keep->pack.items);
	index_items(keep);
	if (recover->dwarf && kernel_code_is_plain(recover->kernel))
		keep->marker = marker_new(recover);
	return keep;
}

void keep_free(struct keep *keep)
{
	if (!keep)
		return;
	vec_each(&keep->fresh, fresh)
		str_fini(&fresh->bytes);
	vec_fini(&keep->fresh);
	vec_fini(&keep->used);
	marker_free(keep->marker);
	map_free(keep->by_exact);
	map_free(keep->by_key);
	free(keep->next);
	pack_fini(&keep->pack);
	str_fini(&keep->bytes);
	free(keep);
}

struct entry {
	const uint8_t *mark, *answers;
	size_t mark_bytes, answer_bytes;
};

static bool open_entry(const struct pack_item *item, struct entry *ret_entry)
{
	struct keep_head head;
	size_t bytes = item->entry.bytes;

	if (bytes < sizeof(head))
		return false;
	memcpy(&head, item->data, sizeof(head));
	bytes -= sizeof(head);
	if (head.mark_bytes > bytes || head.mark_bytes % 8)
		return false;
	*ret_entry = (struct entry){ item->data + sizeof(head),
				     item->data + sizeof(head) + head.mark_bytes,
				     head.mark_bytes, bytes - head.mark_bytes };
	return true;
}

static bool is_whole(struct keep *keep, const struct result *result, uint32_t unit)
{
	size_t count;

	answer_functions(keep->recover, unit, &count);
	return result->head.functions == count;
}

static bool find_exact(struct keep *keep, uint32_t unit, struct result *ret_result)
{
	const uint32_t *item = map_find(keep->by_exact, &keep->exact);
	struct entry entry;

	if (!item || !open_entry(&keep->pack.items.data[*item], &entry) ||
	    !result_open(entry.answers, entry.answer_bytes, ret_result) ||
	    !is_whole(keep, ret_result, unit))
		return false;
	vec_push(&keep->used, *item);
	return true;
}

static void add_fresh(struct keep *keep, uint64_t key, struct str *bytes)
{
	vec_push(&keep->fresh, ((struct fresh){ keep->exact, key, *bytes }));
	*bytes = (struct str){ 0 };
}

bool keep_find(struct keep *keep, uint32_t unit, struct result *ret_result)
{
	const uint32_t *first;
	struct entry entry;
	struct mark mark;

	keep->exact = exact_of(keep, unit);
	keep->has_key = false;
	if (find_exact(keep, unit, ret_result))
		return true;
	if (!keep->marker)
		return false;
	keep->has_key = marker_key(keep->marker, unit, &keep->key);
	first = keep->has_key ? map_find(keep->by_key, &keep->key) : NULL;
	for (uint32_t i = first ? *first : UINT32_MAX; i != UINT32_MAX;
	     i = keep->next[i]) {
		const struct pack_item *item = &keep->pack.items.data[i];

		if (!open_entry(item, &entry) || !entry.mark_bytes ||
		    !mark_open(entry.mark, entry.mark_bytes, &mark) ||
		    !marker_holds(keep->marker, &mark) ||
		    !result_open(entry.answers, entry.answer_bytes, ret_result) ||
		    !is_whole(keep, ret_result, unit))
			continue;
		vec_push(&keep->used, i);
		return true;
	}
	return false;
}

void keep_begin(struct keep *keep)
{
	if (keep->has_key)
		marker_begin(keep->marker);
}

void keep_types(struct keep *keep)
{
	if (keep->has_key)
		marker_types(keep->marker);
}

void keep_code(struct keep *keep)
{
	if (keep->has_key)
		marker_code(keep->marker);
}

void keep_end(struct keep *keep, const struct str *answers)
{
	struct keep_head head = { 0 };
	struct str mark = { 0 }, bytes = { 0 };

	if (keep->has_key && !marker_end(keep->marker, &mark))
		str_clear(&mark);
	head.mark_bytes = (uint32_t)mark.length;
	str_add_bytes(&bytes, &head, sizeof(head));
	str_add_bytes(&bytes, str_text(&mark), mark.length);
	str_add_bytes(&bytes, answers->data, answers->length);
	str_fini(&mark);
	add_fresh(keep, head.mark_bytes ? keep->key : 0, &bytes);
}

/* Three quarters are not used: the others go without them. */
static bool is_stale(const struct keep *keep)
{
	size_t used = 0;

	vec_each(&keep->used, item)
		used += keep->pack.items.data[*item].entry.bytes;
	vec_each(&keep->fresh, fresh)
		used += fresh->bytes.length;
	return keep->bytes.length > SMALL && keep->bytes.length / 4 > used;
}

void keep_all(struct keep *keep)
{
	if (keep->fresh.count > keep->taken && is_stale(keep)) {
		struct str none = { 0 };

		vec_each(&keep->used, item) {
			const struct pack_item *old = &keep->pack.items.data[*item];
			struct str copy = { 0 };

			str_add_bytes(&copy, old->data, old->entry.bytes);
			keep->exact = old->entry.exact;
			add_fresh(keep, old->entry.key, &copy);
		}
		keep->exact = PACK_ALL;
		add_fresh(keep, PACK_ALL, &none);
	}
	vec_clear(&keep->used);
}

bool keep_take(struct keep *keep, size_t limit, struct str *out)
{
	if (keep->taken == keep->fresh.count) {
		vec_clear(&keep->fresh);
		keep->taken = 0;
		return false;
	}
	pack_begin(out, keep->version);
	while (keep->taken < keep->fresh.count) {
		struct fresh *fresh = &keep->fresh.data[keep->taken];
		size_t size = pack_size(fresh->bytes.length);

		if (out->length > sizeof(struct pack_head) && out->length + size > limit)
			break;
		if (size <= limit) /* else too large to be kept */
			pack_put(out, fresh->exact, fresh->key, str_text(&fresh->bytes),
				 fresh->bytes.length);
		str_fini(&fresh->bytes);
		keep->taken++;
	}
	return true;
}
