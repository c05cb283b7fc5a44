// SPDX-License-Identifier: Apache-2.0
#include "worker/table.h"

#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/map.h"
#include "core/mem.h"
#include "core/pack.h"
#include "job/cache.h"

enum part { PART_MAIN, PART_DEBUG, PART_ALT, PART_KALLSYMS, PART_PACK, PARTS };

struct module {
	uint64_t id, used, slide;
	int fds[PARTS]; /* -1: none */
	bool has_tried_elf, has_tried_frames, keeps;
	uint64_t version;
	struct elf_file *main, *debug, *alt;
	struct symbols *symbols;
	struct frame_table *frames;
	struct recover *recover;
	/* Why a part is missing; copied to each job that asks. */
	struct err *elf_err, *symbols_err, *recover_err;
};

struct table {
	struct map *modules; /* id -> struct module * */
	uint64_t clock, memory_bytes, version;
};

struct table *table_new(uint64_t memory_bytes, uint64_t version)
{
	struct table *table = mem_alloc(sizeof(*table));

	table->modules = map_new(sizeof(uint64_t), sizeof(struct module *));
	table->memory_bytes = memory_bytes;
	table->version = version;
	return table;
}

static void module_free(struct module *module)
{
	recover_close(module->recover);
	frame_close(module->frames);
	symbols_free(module->symbols);
	elf_close(module->alt);
	elf_close(module->debug);
	elf_close(module->main);
	err_free(module->elf_err);
	err_free(module->symbols_err);
	err_free(module->recover_err);
	for (int i = 0; i < PARTS; i++)
		if (module->fds[i] >= 0)
			close(module->fds[i]);
	free(module);
}

void table_free(struct table *table)
{
	struct module **slot;
	size_t pos = 0;

	if (!table)
		return;
	while ((slot = map_next(table->modules, &pos, NULL)))
		module_free(*slot);
	map_free(table->modules);
	free(table);
}

static void forget(struct table *table, uint64_t id)
{
	struct module **slot = map_find(table->modules, &id);

	if (!slot)
		return;
	module_free(*slot);
	map_del(table->modules, &id);
}

static void forget_oldest(struct table *table)
{
	struct module **slot, *oldest = NULL;
	size_t pos = 0;

	while ((slot = map_next(table->modules, &pos, NULL)))
		if (!oldest || (*slot)->used < oldest->used)
			oldest = *slot;
	if (oldest)
		forget(table, oldest->id);
}

void table_relieve(struct table *table)
{
	while (map_count(table->modules) > 1) {
		struct mallinfo2 held = mallinfo2();

		if (held.uordblks + held.hblkhd < table->memory_bytes / 2)
			return;
		forget_oldest(table);
	}
}

struct err *table_open(struct table *table, const struct message_open *open, int *fds)
{
	const bool has[PARTS] = { open->has_main, open->has_debug, open->has_alt,
				  open->has_kallsyms, open->has_pack };
	int given = 0;

	for (int i = 0; i < PARTS; i++)
		if (has[i] && fds[given++] < 0)
			return err_new(ERR_FORMAT, "open: a descriptor is missing");
	forget(table, open->module_id);
	if (map_count(table->modules) >= TABLE_MAX_MODULES)
		forget_oldest(table);
	struct module *module = mem_alloc(sizeof(*module));

	module->id = open->module_id;
	module->slide = open->slide;
	module->keeps = open->keeps;
	module->version = table->version;
	module->used = ++table->clock;
	given = 0;
	for (int i = 0; i < PARTS; i++)
		module->fds[i] = has[i] ? take_fd(&fds[given++]) : -1;
	*(struct module **)map_put(table->modules, &open->module_id, NULL) = module;
	return NULL;
}

struct module *table_find(struct table *table, uint64_t module_id)
{
	struct module **slot = map_find(table->modules, &module_id);

	if (!slot)
		return NULL;
	(*slot)->used = ++table->clock;
	return *slot;
}

static struct err *copy_of(const struct err *err)
{
	return err ? err_new(err->code, "%s", err->text) : NULL;
}

static struct err *open_elf(struct module *module)
{
	if (module->has_tried_elf)
		return copy_of(module->elf_err);
	module->has_tried_elf = true;
	if (module->fds[PART_MAIN] < 0)
		module->elf_err = err_new(ERR_UNSUPPORTED, "the module has no file");
	else
		module->elf_err = elf_open(module->fds[PART_MAIN], &module->main);
	/* A damaged debug file is as good as none. */
	if (!module->elf_err && module->fds[PART_DEBUG] >= 0)
		err_free(elf_open(module->fds[PART_DEBUG], &module->debug));
	if (!module->elf_err && module->fds[PART_ALT] >= 0)
		err_free(elf_open(module->fds[PART_ALT], &module->alt));
	return copy_of(module->elf_err);
}

static struct err *make_symbols(struct module *module)
{
	if (module->fds[PART_KALLSYMS] >= 0)
		return symbols_kernel(module->fds[PART_KALLSYMS], module->slide,
				      &module->symbols);
	TRY(open_elf(module));
	return symbols_new(module->main, module->debug, &module->symbols);
}

struct err *module_symbols(struct module *module, struct symbols **ret_symbols)
{
	if (!module->symbols && !module->symbols_err)
		module->symbols_err = make_symbols(module);
	*ret_symbols = module->symbols;
	return copy_of(module->symbols_err);
}

struct err *module_elf(struct module *module, struct module_elf *ret_elf)
{
	TRY(open_elf(module));
	*ret_elf = (struct module_elf){ module->main, module->debug, module->alt };
	return NULL;
}

/* A pack that cannot be read is as good as none. */
static struct err *start_keeping(struct module *module)
{
	struct str pack = { 0 };
	uint64_t content;

	TRY(cache_content(module->fds, PART_KALLSYMS, &content));
	if (module->fds[PART_PACK] >= 0)
		err_free(file_pread(module->fds[PART_PACK], PACK_MAX_BYTES, &pack.data,
				    &pack.length));
	recover_keep(module->recover, &pack, module->version, content);
	return NULL;
}

struct err *module_recover(struct module *module, struct recover **ret_recover)
{
	const struct recover_files files = { module->fds[PART_MAIN],
					     module->fds[PART_DEBUG],
					     module->fds[PART_ALT] };
	const struct recover_options options = { 0 };

	if (!module->recover && !module->recover_err && files.main_fd >= 0)
		module->recover_err = recover_open(&files, &options, &module->recover);
	if (module->recover && module->keeps) {
		module->keeps = false; /* once */
		err_free(start_keeping(module));
	}
	*ret_recover = module->recover;
	return copy_of(module->recover_err);
}

struct frame_table *module_frames(struct module *module)
{
	if (!module->has_tried_frames) {
		module->has_tried_frames = true;
		struct err *err = open_elf(module);

		if (!err)
			err = frame_open(module->main, module->debug, &module->frames);
		err_free(err);
	}
	return module->frames;
}
