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
	struct map *files; /* hash of the path -> struct source */
};

struct sources *sources_new(void)
{
	struct sources *sources = mem_alloc(sizeof(*sources));

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

static void load(struct source *source, const char *path)
{
	CLEANUP(close) int fd = -1;
	struct stat info;
	size_t bytes;

	/* A relative name would be one in our own working directory, of anything. */
	if (*path != '/')
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &info) || !S_ISREG(info.st_mode))
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
		load(source, path);
	}
	if (!source->text || !line || line + 1 > source->lines.count)
		return NULL;

	size_t begin = source->lines.data[line - 1], end = source->lines.data[line] - 1;

	while (begin < end && (source->text[begin] == ' ' || source->text[begin] == '\t'))
		begin++;
	while (end > begin && source->text[end - 1] == '\r')
		end--;
	return strndup(source->text + begin, end - begin);
}
