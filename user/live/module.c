// SPDX-License-Identifier: Apache-2.0
/*
 * The key is what a mapping tells about its file before anybody opened it. The kernel's
 * build-id is best; device, inode and path do otherwise, as long as somebody maps the
 * file: afterwards the inode number may be given to another file, so entries nobody
 * maps are dropped.
 */
#include "live/module.h"

#include <string.h>

#include "core/map.h"
#include "core/mem.h"
#include "core/str.h"
#include "live/live.h"

#define DELETED	    " (deleted)"
#define PAGE_BYTES  4096ull
#define COMPAT_LAST 0xffffffffull /* highest address of a 32-bit process */

enum key_seed { KEY_BUILD_ID = 2, KEY_INODE, KEY_SPECIAL };

struct module_table {
	struct map *by_key; /* uint64_t -> struct module * */
	size_t limit;
};

struct module_table *module_table_new(size_t limit)
{
	struct module_table *table = mem_alloc(sizeof(*table));

	table->by_key = map_new(sizeof(uint64_t), sizeof(struct module *));
	table->limit = limit;
	return table;
}

static void module_free(struct module *module)
{
	vec_fini(&module->waiting);
	free(module->path);
	free(module);
}

void module_table_free(struct module_table *table)
{
	size_t pos = 0;
	struct module *module;

	if (!table)
		return;
	while ((module = module_table_next(table, &pos)))
		module_free(module);
	map_free(table->by_key);
	free(table);
}

struct module *module_table_find(const struct module_table *table, uint64_t key)
{
	struct module **slot = map_find(table->by_key, &key);

	return slot ? *slot : NULL;
}

static size_t path_bytes(const char *path)
{
	size_t bytes = strlen(path);

	return str_ends(path, DELETED) ? bytes - strlen(DELETED) : bytes;
}

struct module *module_table_put(struct module_table *table, uint64_t key,
				const char *path)
{
	struct module *module = module_table_find(table, key);

	if (module)
		return module;
	if (map_count(table->by_key) >= table->limit)
		return NULL;
	module = mem_alloc(sizeof(*module));
	module->key = key;
	module->kind = MODULE_FILE;
	module->path = mem_printf("%.*s", (int)path_bytes(path), path);
	module->deleted = str_ends(path, DELETED);
	*(struct module **)map_put(table->by_key, &key, NULL) = module;
	return module;
}

size_t module_table_count(const struct module_table *table)
{
	return map_count(table->by_key);
}

struct module *module_table_next(const struct module_table *table, size_t *pos)
{
	struct module **slot = map_next(table->by_key, pos, NULL);

	return slot ? *slot : NULL;
}

static bool is_unmapped(const void *key, void *value, void *ctx)
{
	struct module *module = *(struct module **)value;

	(void)key;
	if (module->epoch == *(uint64_t *)ctx || module->waiting.count)
		return false;
	/* The vdso outlives every process, and its event comes only once. */
	if (module->kind == MODULE_VDSO)
		return false;
	module_free(module);
	return true;
}

void module_table_sweep(struct module_table *table, uint64_t epoch)
{
	map_del_if(table->by_key, is_unmapped, &epoch);
}

void module_describe(struct module *module, const struct event *event)
{
	const struct abi_mmap *mmap = &event->mmap;

	module->inode = mmap->inode;
	module->dev_major = mmap->dev_major;
	module->dev_minor = mmap->dev_minor;
	module->deleted |= mmap->flags & ABI_MMAP_DELETED;
	if (mmap->build_id_bytes && mmap->build_id_bytes <= BUILD_ID_MAX) {
		module->build_id.size = (uint8_t)mmap->build_id_bytes;
		memcpy(module->build_id.bytes, mmap->build_id, mmap->build_id_bytes);
	}
}

void module_identify(struct module *module, const struct event *event)
{
	const struct abi_module *found = &event->module;

	if (!found->module_id) {
		module->state = MODULE_IMPOSSIBLE;
		return;
	}
	module->state = MODULE_KNOWN;
	module->module_id = found->module_id;
	module->kind = (enum module_kind)found->kind;
	module->segment_count = found->segment_count;
	memcpy(module->segments, event->segments,
	       found->segment_count * sizeof(struct abi_segment));
	module->build_id.size = (uint8_t)found->build_id_bytes;
	memcpy(module->build_id.bytes, found->build_id, found->build_id_bytes);
}

bool module_va(const struct module *module, uint64_t off, uint64_t *ret_va)
{
	for (size_t i = 0; i < module->segment_count; i++) {
		const struct abi_segment *s = &module->segments[i];

		if (off < s->off || off - s->off >= s->file_bytes)
			continue;
		*ret_va = s->va + (off - s->off);
		return true;
	}
	return false;
}

bool module_bias(const struct module *module, const struct range *range,
		 uint64_t *ret_bias)
{
	uint64_t length = range->end - range->start;

	for (size_t i = 0; i < module->segment_count; i++) {
		const struct abi_segment *s = &module->segments[i];
		uint64_t off = s->off & ~(PAGE_BYTES - 1);

		if (range->pgoff + length <= off ||
		    range->pgoff >= s->off + s->file_bytes)
			continue;
		*ret_bias = range->start - range->pgoff + s->off - s->va;
		return true;
	}
	return false;
}

bool path_is_anonymous(const char *path)
{
	if (!*path || str_starts(path, "//") || str_starts(path, "anon_inode:"))
		return true;
	return path[0] == '[' && strcmp(path, "[vdso]") != 0;
}

bool path_is_memory(const char *path)
{
	return str_starts(path, "/memfd:") || str_starts(path, "/dev/zero") ||
	       str_starts(path, "/SYSV") || str_starts(path, "/anon_hugepage");
}

uint64_t live_key(const struct event *event)
{
	const struct abi_mmap *mmap = &event->mmap;
	uint64_t id[2] = { (uint64_t)mmap->dev_major << 32 | mmap->dev_minor,
			   mmap->inode };

	if (mmap->build_id_bytes && mmap->build_id_bytes <= ABI_BUILD_ID_MAX)
		return hash_bytes(mmap->build_id, mmap->build_id_bytes, KEY_BUILD_ID);
	/* A 32-bit process has a vdso of its own, which nobody identifies. */
	if (!strcmp(event->path, "[vdso]"))
		return hash_text(mmap->addr > COMPAT_LAST ? "[vdso]" : "[vdso32]",
				 KEY_SPECIAL);
	return hash_bytes(event->path, path_bytes(event->path),
			  hash_bytes(id, sizeof(id), KEY_INODE));
}
