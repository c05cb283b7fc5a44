// SPDX-License-Identifier: Apache-2.0
#include "cli/source.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/intern.h"
#include "core/map.h"
#include "core/mem.h"
#include "core/vec.h"

struct source {
	char *text; /* NULL: missing */
	VEC(size_t) lines;
};

struct sources {
	const char *dir;   /* NULL: none */
	struct map *files; /* hash of the path -> struct source */
};

struct sources *sources_new(const char *dir)
{
	struct sources *sources = mem_alloc(sizeof(*sources));

	sources->dir = dir;
	sources->files = map_new(sizeof(uint64_t), sizeof(struct source));
	return sources;
}

void sources_free(struct sources *sources)
{
	struct source *source;
	size_t pos = 0;

	if (!sources)
		return;
	while ((source = map_next(sources->files, &pos, NULL))) {
		free(source->text);
		vec_fini(&source->lines);
	}
	map_free(sources->files);
	free(sources);
}

static int open_file(const char *path)
{
	CLEANUP(close)
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat info;

	if (fd < 0 || fstat(fd, &info) || !S_ISREG(info.st_mode))
		return -1;
	return take_fd(&fd);
}

/* "/a/./b/../c" -> "a/c": what leaves the folder at the front is cut off. */
static char *plain(const char *path)
{
	CLEANUP(free) char *copy = mem_strdup(path);
	char *rest = copy, *part, *out = mem_alloc(strlen(path) + 1);
	size_t length = 0;

	while ((part = strsep(&rest, "/"))) {
		if (!*part || !strcmp(part, "."))
			continue;
		if (!strcmp(part, "..")) {
			while (length && out[--length] != '/')
				;
			continue;
		}
		if (length)
			out[length++] = '/';
		memcpy(out + length, part, strlen(part));
		length += strlen(part);
	}
	out[length] = 0;
	return out;
}

static int find_file(const char *dir, const char *path)
{
	CLEANUP(free) char *name = dir ? plain(path) : NULL;

	for (const char *rest = name; rest; rest = strchr(rest, '/')) {
		rest += *rest == '/';
		CLEANUP(free) char *at = mem_printf("%s/%s", dir, rest);
		int fd = open_file(at);

		if (fd >= 0)
			return fd;
	}
	/* A relative name would be one in our own working directory, of anything. */
	return *path == '/' ? open_file(path) : -1;
}

static void load(struct source *source, const char *dir, const char *path)
{
	CLEANUP(close) int fd = find_file(dir, path);
	size_t bytes;

	if (fd < 0)
		return;
	struct err *err = file_read_fd(fd, SOURCE_MAX_BYTES, &source->text, &bytes);

	if (err) {
		err_free(err);
		source->text = NULL;
		return;
	}
	vec_push(&source->lines, 0);
	for (size_t i = 0; i < bytes; i++)
		if (source->text[i] == '\n')
			vec_push(&source->lines, i + 1);
	vec_push(&source->lines, bytes + 1);
}

char *source_line(struct sources *sources, const char *path, uint32_t line)
{
	uint64_t key = hash_text(path, 0);
	struct source *source = map_find(sources->files, &key);

	if (!source && map_count(sources->files) >= SOURCE_MAX_FILES)
		return NULL;
	if (!source) {
		source = map_put(sources->files, &key, NULL);
		load(source, sources->dir, path);
	}
	if (!source->text || !line || line >= source->lines.count)
		return NULL;

	size_t begin = source->lines.data[line - 1], end = source->lines.data[line] - 1;

	while (begin < end && (source->text[begin] == ' ' || source->text[begin] == '\t'))
		begin++;
	while (end > begin && source->text[end - 1] == '\r')
		end--;
	return strndup(source->text + begin, end - begin);
}
