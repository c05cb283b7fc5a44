// SPDX-License-Identifier: Apache-2.0
#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/mem.h"
#include "core/str.h"

struct err *file_pread(int fd, size_t max, char **ret_text, size_t *ret_bytes)
{
	CLEANUP(free) char *text = NULL;
	size_t done = 0, bytes;
	struct stat st;

	if (fstat(fd, &st))
		return err_errno(errno, "stat");
	if (st.st_size < 0 || (uint64_t)st.st_size > max)
		return err_new(ERR_LIMIT, "larger than %zu bytes", max);
	bytes = (size_t)st.st_size;
	text = mem_alloc(bytes + 1);
	while (done < bytes) {
		ssize_t got = pread(fd, text + done, bytes - done, (off_t)done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(errno, "read");
		if (!got)
			break; /* cut meanwhile */
		done += (size_t)got;
	}
	*ret_bytes = done;
	*ret_text = take(text);
	return NULL;
}

struct err *file_read_fd(int fd, size_t max, char **ret_text, size_t *ret_bytes)
{
	CLEANUP(str_fini) struct str text = { 0 };
	char chunk[16384];

	for (;;) {
		ssize_t got = read(fd, chunk, sizeof(chunk));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(errno, "read");
		if (got == 0)
			break;
		if (text.length + (size_t)got > max)
			return err_new(ERR_LIMIT, "larger than %zu bytes", max);
		str_add_bytes(&text, chunk, (size_t)got);
	}
	if (ret_bytes)
		*ret_bytes = text.length;
	*ret_text = str_take(&text);
	return NULL;
}

struct err *file_read(const char *path, size_t max, char **ret_text, size_t *ret_bytes)
{
	CLEANUP(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return err_errno(errno, "open %s", path);
	return err_wrap(file_read_fd(fd, max, ret_text, ret_bytes), "%s", path);
}

struct err *file_write_all(int fd, const void *data, size_t bytes)
{
	const char *at = data;

	while (bytes) {
		ssize_t put = write(fd, at, bytes);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return err_errno(errno, "write");
		at += put;
		bytes -= (size_t)put;
	}
	return NULL;
}

struct err *file_read_exact(int fd, void *data, size_t bytes)
{
	char *at = data;

	while (bytes) {
		ssize_t got = read(fd, at, bytes);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(errno, "read");
		if (got == 0)
			return err_new(ERR_CLOSED, "closed by the other side");
		at += got;
		bytes -= (size_t)got;
	}
	return NULL;
}

struct err *file_replace(const char *path, const void *data, size_t bytes, unsigned mode)
{
	CLEANUP(free) char *temp = mem_printf("%s.XXXXXX", path);
	CLEANUP(close) int fd = mkostemp(temp, O_CLOEXEC);

	if (fd < 0)
		return err_errno(errno, "create %s", temp);
	struct err *err = file_write_all(fd, data, bytes);

	if (!err && (fchmod(fd, mode) || fsync(fd)))
		err = err_errno(errno, "write");
	if (!err && rename(temp, path))
		err = err_errno(errno, "rename");
	if (err)
		unlink(temp);
	return err_wrap(err, "%s", path);
}

struct err *file_mkdirs(const char *path)
{
	CLEANUP(free) char *part = mem_strdup(path);

	for (char *at = part + 1;; at++) {
		if (*at && *at != '/')
			continue;
		char old = *at;

		*at = 0;
		if (mkdir(part, 0750) && errno != EEXIST)
			return err_errno(errno, "create folder %s", part);
		*at = old;
		if (!old)
			return NULL;
	}
}

char *file_beside(const char *name, const char *fallback)
{
	char self[4096];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (length > 0) {
		self[length] = 0;
		char *slash = strrchr(self, '/');

		if (slash) {
			*slash = 0;
			char *path = mem_printf("%s/%s", self, name);

			if (!access(path, X_OK))
				return path;
			free(path);
		}
	}
	return mem_strdup(fallback);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_ns(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

uint64_t realtime_ns(void)
{
	return now_ns(CLOCK_REALTIME);
}

bool number_parse(const char *text, uint64_t *ret_value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	uint64_t value =
		strtoull(text, &end, text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10);

	if (errno || end == text || *end)
		return false;
	*ret_value = value;
	return true;
}

struct unit {
	const char *name;
	uint64_t factor;
};

static struct err *unit_parse(const char *text, const struct unit *units,
			      const char *what, uint64_t *ret_value)
{
	char *end;

	errno = 0;
	uint64_t value = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;

	if (*text < '0' || *text > '9' || errno)
		return err_new(ERR_INVALID, "'%s' is not a %s", text, what);
	for (const struct unit *unit = units; unit->name; unit++) {
		if (strcmp(end, unit->name))
			continue;
		if (__builtin_mul_overflow(value, unit->factor, ret_value))
			return err_new(ERR_LIMIT, "'%s' is too large a %s", text, what);
		return NULL;
	}
	return err_new(ERR_INVALID, "'%s' is not a %s", text, what);
}

struct err *duration_parse(const char *text, uint64_t *ret_ns)
{
	static const struct unit units[] = {
		{ "", 1000000000u },
		{ "ns", 1 },
		{ "us", 1000 },
		{ "ms", 1000000 },
		{ "s", 1000000000u },
		{ "m", 60 * 1000000000ull },
		{ "h", 3600 * 1000000000ull },
		{ "d", 86400 * 1000000000ull },
		{ NULL, 0 },
	};

	return unit_parse(text, units, "duration (10s, 500ms, 5m, 2h, 1d)", ret_ns);
}

struct err *size_parse(const char *text, uint64_t *ret_bytes)
{
	static const struct unit units[] = {
		{ "", 1 },	     { "K", 1ull << 10 }, { "M", 1ull << 20 },
		{ "G", 1ull << 30 }, { "T", 1ull << 40 }, { NULL, 0 },
	};

	return unit_parse(text, units, "size (4096, 64K, 64M, 1G)", ret_bytes);
}
