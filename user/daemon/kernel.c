// SPDX-License-Identifier: Apache-2.0
/*
 * The running kernel as modules: the image between _text and _etext of kallsyms, its
 * loadable modules as /proc/modules lists them, and the vdso, which is mapped into
 * ourselves. All of this is text from our own kernel. The image's va counts from where
 * x86-64 kernels are linked, whatever KASLR did; a loadable module's from 0.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"
#include "daemon/modules_impl.h"
#include "event/event.h"

#define KERNEL_LINK_VA	 0xffffffff81000000ull
#define NOTES_BYTES	 65536
#define NOTE_GNU_BUILD	 3
#define VDSO_MAX_BYTES	 (64 * 1024)
#define KMOD_NAME_BYTES	 64
#define KMOD_UNNAMED_ID	 8 /* seed: modules without a build-id */
#define KERNEL_MAX_BYTES (256ull << 20)

struct kmod {
	char name[KMOD_NAME_BYTES];
	uint64_t base, length;
};

static struct err *read_text(struct modules *modules, enum open_what what,
			     const char *path, size_t max, char **ret_text,
			     size_t *ret_bytes)
{
	struct open_request request = { .what = what, .path = path };
	CLEANUP(close) int fd = -1;

	TRY(opener_open(modules->config.opener, &request, &fd));
	return file_read_fd(fd, max, ret_text, ret_bytes);
}

/* The GNU build-id among ELF notes: name size, description size, type, name, it. */
static bool find_build_id(const char *notes, size_t bytes, struct build_id *ret_id)
{
	uint32_t head[3];

	for (size_t at = 0; at + sizeof(head) <= bytes;) {
		memcpy(head, notes + at, sizeof(head));
		if (head[0] > bytes || head[1] > bytes)
			return false;
		size_t name = at + sizeof(head);
		size_t desc = name + ((head[0] + 3) & ~3u);

		at = desc + ((head[1] + 3) & ~3u);
		if (desc + head[1] > bytes)
			return false;
		if (head[2] != NOTE_GNU_BUILD || head[0] != 4 ||
		    memcmp(notes + name, "GNU", 4) != 0 || head[1] > BUILD_ID_MAX ||
		    !head[1])
			continue;
		ret_id->size = (uint8_t)head[1];
		memcpy(ret_id->bytes, notes + desc, head[1]);
		return true;
	}
	return false;
}

static void read_build_id(struct modules *modules, enum open_what what, const char *path,
			  struct build_id *ret_id)
{
	CLEANUP(free) char *notes = NULL;
	size_t bytes = 0;

	memset(ret_id, 0, sizeof(*ret_id));
	err_free(read_text(modules, what, path, NOTES_BYTES, &notes, &bytes));
	if (notes)
		find_build_id(notes, bytes, ret_id);
}

/* "ffffffff81000000 T _text" */
static uint64_t symbol_address(const char *kallsyms, const char *name)
{
	CLEANUP(free) char *line = mem_printf(" %s\n", name);
	const char *at = strstr(kallsyms, line);
	uint64_t address = 0;

	if (!at)
		return 0;
	while (at > kallsyms && at[-1] != '\n')
		at--;
	sscanf(at, "%" SCNx64, &address);
	return address;
}

static void feed_kernel(struct modules *modules, const struct held *held, uint64_t base,
			uint64_t length, uint64_t base_va)
{
	struct event event = { .path = held->path };

	event.module = (struct abi_module){
		.head = { .kind = ABI_MODULE, .time_ns = clock_ns() },
		.module_id = held->module_id,
		.base = base,
		.base_va = base_va,
		.length = length,
		.kind = (uint32_t)held->kind,
		.build_id_bytes = held->build_id.size,
		.path_bytes = (uint32_t)strlen(held->path) + 1,
	};
	memcpy(event.module.build_id, held->build_id.bytes, held->build_id.size);
	modules->config.feed(modules->config.ctx, &event);
}

/* A held module without a file: its symbols come from kallsyms. */
static struct held *hold(struct modules *modules, enum module_kind kind, const char *path,
			 const struct build_id *id, uint64_t slide)
{
	uint64_t module_id = module_id_of(id);
	bool is_new;
	struct held *held = held_add(
		modules, module_id ? module_id : hash_text(path, KMOD_UNNAMED_ID),
		&is_new);

	if (!held)
		return NULL;
	/* A module that was loaded again lies elsewhere. */
	if (held->slide != slide)
		memset(held->known, 0, sizeof(held->known));
	held->slide = slide;
	if (!is_new)
		return held;
	held->kind = kind;
	held->path = mem_strdup(path);
	held->build_id = *id;
	held->uses_kallsyms = true;
	held->debug = mem_strdup("");
	held->state = DEBUG_DONE;
	return held;
}

/* The distribution's vmlinux with DWARF, when its package is installed: by build-id, then
 * where a kernel of this release would be. A file of another build may bear the same
 * release, so nothing is taken whose build-id is not that of the running kernel. */
static void find_vmlinux(struct modules *modules, struct held *held)
{
	static const char *const places[] = {
		"/usr/lib/debug/boot/vmlinux-%s",
		"/usr/lib/debug/lib/modules/%s/vmlinux",
		"/usr/lib/debug/lib/modules/%s/vmlinux.debug",
		"/boot/vmlinux-%s",
	};
	struct debugfile_query query = { .path = "", .id = &held->build_id };
	struct utsname name;

	if (!held->build_id.size || held->state == DEBUG_SEARCHING)
		return;
	uname(&name);
	debugfile_paths_fini(&held->candidates);
	debugfile_candidates(&query, &held->candidates);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places) &&
			   held->candidates.count < DEBUGFILE_MAX_PATHS;
	     i++) {
		char path[256];

		snprintf(path, sizeof(path), places[i], name.release);
		held->candidates.path[held->candidates.count++] = mem_strdup(path);
	}
	held->candidate = 0;
	held->state = DEBUG_SEARCHING;
	debuginfo_resume(modules, held);
}

static void put_debug(struct modules *modules, const struct held *held)
{
	sink_put(modules->config.sink,
		 &(struct fact){ .kind = FACT_MODULE,
				 .module = { .module_id = held->module_id,
					     .build_id = held->build_id,
					     .kind = held->kind,
					     .path = held->path,
					     .debug = held->debug } });
}

static struct err *add_kernel(struct modules *modules)
{
	CLEANUP(free) char *kallsyms = NULL;
	struct build_id id;

	TRY(err_wrap(read_text(modules, OPEN_KALLSYMS, NULL, MODULES_MAX_TEXT, &kallsyms,
			       NULL),
		     "/proc/kallsyms"));
	uint64_t start = symbol_address(kallsyms, "_text");
	uint64_t end = symbol_address(kallsyms, "_etext");

	if (!start)
		start = symbol_address(kallsyms, "_stext");
	if (!start || end <= start || end - start > KERNEL_MAX_BYTES)
		return err_new(ERR_PERMISSION,
			       "/proc/kallsyms shows no addresses (CAP_SYSLOG, "
			       "kernel.kptr_restrict)");
	read_build_id(modules, OPEN_KERNEL_NOTES, NULL, &id);
	struct held *held =
		hold(modules, MODULE_KERNEL, "[kernel]", &id, start - KERNEL_LINK_VA);

	if (!held)
		return err_new(ERR_LIMIT, "too many modules");
	if (held->fd[HELD_MAIN] < 0)
		find_vmlinux(modules, held);
	feed_kernel(modules, held, start, end - start, KERNEL_LINK_VA);
	put_debug(modules, held);
	return NULL;
}

static int by_base(const void *a, const void *b)
{
	const struct kmod *x = a, *y = b;

	return x->base < y->base ? -1 : x->base > y->base;
}

/* "name size refs deps state address" */
static bool parse_kmod(const char *line, struct kmod *ret_kmod)
{
	return sscanf(line, "%63s %" SCNu64 " %*s %*s %*s %" SCNx64, ret_kmod->name,
		      &ret_kmod->length, &ret_kmod->base) == 3 &&
	       ret_kmod->base;
}

static void add_kmod(struct modules *modules, const struct kmod *kmod)
{
	CLEANUP(free) char *path = mem_printf("[%s]", kmod->name);
	struct build_id id;

	read_build_id(modules, OPEN_KMOD_NOTES, kmod->name, &id);
	struct held *held = hold(modules, MODULE_KMOD, path, &id, kmod->base);

	if (held)
		feed_kernel(modules, held, kmod->base, kmod->length, 0);
}

static struct err *add_kmods(struct modules *modules)
{
	CLEANUP(free) char *text = NULL;
	VEC(struct kmod) kmods = { 0 };
	char *save = NULL;

	struct err *err =
		read_text(modules, OPEN_MODULES, NULL, MODULES_MAX_TEXT, &text, NULL);

	if (err && err->code == ERR_NOT_FOUND) { /* a kernel without loadable modules */
		err_free(err);
		return NULL;
	}
	TRY(err_wrap(err, "/proc/modules"));
	for (char *line = strtok_r(text, "\n", &save);
	     line && kmods.count < MODULES_MAX_KMODS;
	     line = strtok_r(NULL, "\n", &save)) {
		struct kmod kmod;

		if (parse_kmod(line, &kmod))
			vec_push(&kmods, kmod);
	}
	if (kmods.count)
		qsort(kmods.data, kmods.count, sizeof(struct kmod), by_base);
	for (size_t i = 0; i < kmods.count; i++) {
		struct kmod *kmod = &kmods.data[i];

		/* The size counts data too, which lies elsewhere since Linux 6.4. */
		if (i + 1 < kmods.count && kmod->base + kmod->length > kmod[1].base)
			kmod->length = kmod[1].base - kmod->base;
		add_kmod(modules, kmod);
	}
	vec_fini(&kmods);
	return NULL;
}

/* Our own vdso as a file. */
static struct err *copy_vdso(int *ret_fd, uint64_t *ret_address)
{
	CLEANUP(free) char *maps = NULL;
	uint64_t start = getauxval(AT_SYSINFO_EHDR), end = 0;
	CLEANUP(close) int fd = memfd_create("vdso", MFD_CLOEXEC);

	if (!start || fd < 0)
		return err_new(ERR_UNSUPPORTED, "no vdso");
	TRY(file_read("/proc/self/maps", MODULES_MAX_TEXT, &maps, NULL));
	CLEANUP(free) char *line = mem_printf("\n%" PRIx64 "-", start);
	const char *at = strstr(maps, line);

	if (!at || sscanf(at + strlen(line), "%" SCNx64, &end) != 1 || end <= start ||
	    end - start > VDSO_MAX_BYTES)
		return err_new(ERR_NOT_FOUND, "no [vdso] in our own maps");
	TRY(file_write_all(fd, (const void *)(uintptr_t)start, end - start));
	*ret_fd = take_fd(&fd);
	*ret_address = start;
	return NULL;
}

static struct err *add_vdso(struct modules *modules)
{
	struct event event = { .path = "[vdso]" };
	CLEANUP(close) int fd = -1;
	uint64_t address = 0;

	TRY(copy_vdso(&fd, &address));
	event.mmap.addr = address;
	modules_identify_vdso(modules, &fd, live_key(&event));
	return NULL;
}

struct err *modules_kernel(struct modules *modules)
{
	struct err *(*const parts[])(struct modules *) = { add_kernel, add_kmods,
							   add_vdso };
	struct err *first = NULL;

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		struct err *err = parts[i](modules);

		if (!first)
			first = take(err);
		err_free(err);
	}
	return first;
}
