// SPDX-License-Identifier: Apache-2.0
/*
 * The places that debuggers and distributions agree on. Names inside a file are foreign:
 * a debuglink is a bare file name, and a path with ".." that would climb out of a
 * container's root is resolved textually before the root is put in front of it.
 */
#include "job/debugfile.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/mem.h"

void debugfile_paths_fini(struct debugfile_paths *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		free(paths->path[i]);
	paths->count = 0;
}

/* "/a/b/../c//./d" -> "/a/c/d"; ".." stops at the root. @path must be absolute. */
static char *normalise(const char *path)
{
	CLEANUP(str_fini) struct str out = { 0 };

	while (*path) {
		while (*path == '/')
			path++;
		size_t length = strcspn(path, "/");

		if (length == 2 && path[0] == '.' && path[1] == '.') {
			while (out.length && out.data[--out.length] != '/')
				;
			if (out.data)
				out.data[out.length] = '\0';
		} else if (length && !(length == 1 && path[0] == '.')) {
			str_add_char(&out, '/');
			str_add_bytes(&out, path, length);
		}
		path += length;
	}
	return str_take(&out);
}

/* @path is absolute and below @root; takes it. */
static void add(struct debugfile_paths *paths, const char *root, char *path)
{
	CLEANUP(free) char *given = path;
	CLEANUP(free) char *clean = normalise(given);
	char *whole = mem_printf("%s%s", root, clean);
	bool is_known = paths->count == DEBUGFILE_MAX_PATHS || !*clean;

	for (size_t i = 0; i < paths->count && !is_known; i++)
		is_known = strcmp(paths->path[i], whole) == 0;
	if (is_known)
		free(whole);
	else
		paths->path[paths->count++] = whole;
}

static void add_by_id(struct debugfile_paths *paths, const char *root,
		      const struct build_id *id)
{
	/* One byte names the folder, so a build-id of one byte names no file. */
	if (!id || id->size < 2)
		return;
	char *hex = str_hex(id->bytes, id->size);

	add(paths, root,
	    mem_printf(DEBUGFILE_ROOT "/.build-id/%.2s/%s.debug", hex, hex + 2));
	free(hex);
}

/* The folder of a path without its last '/': "" for "/x". */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? mem_printf("%.*s", (int)(slash - path), path) : mem_strdup("");
}

static void add_by_link(struct debugfile_paths *paths, const char *root,
			const struct debugfile_query *query)
{
	const char *name = query->debuglink;

	if (!name || !*name || strchr(name, '/') || query->path[0] != '/')
		return;
	CLEANUP(free) char *folder = folder_of(query->path);

	/* Beside the file only under another name: a file is not its own debug file. */
	if (strcmp(strrchr(query->path, '/') + 1, name) != 0)
		add(paths, root, mem_printf("%s/%s", folder, name));
	add(paths, root, mem_printf("%s/.debug/%s", folder, name));
	add(paths, root, mem_printf(DEBUGFILE_ROOT "%s/%s", folder, name));
	/* With /usr merged the package may have kept either spelling. */
	if (str_starts(folder, "/usr/"))
		add(paths, root, mem_printf(DEBUGFILE_ROOT "%s/%s", folder + 4, name));
	else
		add(paths, root, mem_printf(DEBUGFILE_ROOT "/usr%s/%s", folder, name));
}

void debugfile_candidates(const struct debugfile_query *query,
			  struct debugfile_paths *ret_paths)
{
	const char *root = query->root ? query->root : "";

	*ret_paths = (struct debugfile_paths){ 0 };
	add_by_id(ret_paths, root, query->id);
	add_by_link(ret_paths, root, query);
	if (*root)
		add_by_id(ret_paths, "", query->id);
}

void debugfile_alt_candidates(const struct debugfile_query *query,
			      struct debugfile_paths *ret_paths)
{
	const char *root = query->root ? query->root : "";
	const char *name = query->altlink;

	*ret_paths = (struct debugfile_paths){ 0 };
	if (!name || !*name)
		return;
	if (name[0] == '/') {
		add(ret_paths, root, mem_strdup(name));
	} else if (query->debug_path && query->debug_path[0] == '/') {
		char *folder = folder_of(query->debug_path);

		add(ret_paths, root, mem_printf("%s/%s", folder, name));
		free(folder);
	}
	/* Distributions keep them all in one place, whatever the link says. */
	const char *dwz = strstr(name, ".dwz/");

	if (dwz)
		add(ret_paths, root, mem_printf(DEBUGFILE_ROOT "/%s", dwz));
	add_by_id(ret_paths, root, query->altlink_id);
	if (!*root)
		return;
	if (dwz)
		add(ret_paths, "", mem_printf(DEBUGFILE_ROOT "/%s", dwz));
	add_by_id(ret_paths, "", query->altlink_id);
}

/* CRC-32 of IEEE 802.3, reflected, a nibble at a time: it is rarely needed. */
uint32_t debugfile_crc(uint32_t crc, const void *bytes, size_t count)
{
	static const uint32_t table[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
		0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
	};
	const uint8_t *at = bytes;

	crc = ~crc;
	for (size_t i = 0; i < count; i++) {
		crc ^= at[i];
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return ~crc;
}

struct err *debugfile_check_crc(int fd, uint32_t debuglink_crc)
{
	uint32_t crc = 0;
	uint64_t off = 0;
	char block[16384];

	while (true) {
		ssize_t got = pread(fd, block, sizeof(block), (off_t)off);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(errno, "read");
		if (got == 0)
			break;
		crc = debugfile_crc(crc, block, (size_t)got);
		off += (uint64_t)got;
		if (off > DEBUGFILE_MAX_BYTES)
			return err_new(ERR_LIMIT, "more than %llu bytes",
				       DEBUGFILE_MAX_BYTES);
	}
	if (crc != debuglink_crc)
		return err_new(ERR_NOT_FOUND,
			       "another build: its checksum is %08x, not %08x", crc,
			       debuglink_crc);
	return NULL;
}

bool debugfile_matches(const struct build_id *want, const struct build_id *found)
{
	return want->size && want->size == found->size &&
	       memcmp(want->bytes, found->bytes, want->size) == 0;
}

char *debugfile_advice(const char *path, const struct build_id *id, const char *package)
{
	char *hex = id && id->size ? str_hex(id->bytes, id->size) : NULL;
	char *text;

	if (!hex && package)
		text = mem_printf("%s has no debug information and no build-id; install "
				  "%s-dbgsym or rebuild it with -g",
				  path, package);
	else if (!hex)
		text = mem_printf(
			"%s has no debug information and no build-id; rebuild it "
			"with -g",
			path);
	else if (package)
		text = mem_printf("%s has no debug information (build-id %s); install "
				  "%s-dbgsym or set DEBUGINFOD_URLS",
				  path, hex, package);
	else
		text = mem_printf("%s has no debug information (build-id %s); rebuild it "
				  "with -g, install its -dbgsym package or set "
				  "DEBUGINFOD_URLS",
				  path, hex);
	free(hex);
	return text;
}
