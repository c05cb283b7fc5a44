// SPDX-License-Identifier: Apache-2.0
/*
 * Identified modules with their open files. A file that cannot be opened again (it came
 * over the network or out of our own memory) is closed last.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/mem.h"
#include "daemon/modules_impl.h"

#define MAX_BYTES (4ull << 30) /* larger files are not taken for modules */

/* Jobs in flight. */

struct errand *errand_new(struct modules *modules)
{
	struct errand *errand = mem_alloc(sizeof(*errand));

	errand->fd = -1;
	flight_begin(&modules->flights, &errand->flight, modules);
	return errand;
}

void errand_free(struct errand *errand)
{
	struct modules *modules = errand->flight.owner;

	if (modules)
		flight_end(&modules->flights, &errand->flight);
	if (errand->fd >= 0)
		close(errand->fd);
	free((char *)errand->ask.file.path);
	origin_fini(&errand->origin);
	free(errand);
}

/* Held modules. */

void origin_fini(struct origin *origin)
{
	free(origin->path);
	memset(origin, 0, sizeof(*origin));
}

static void held_close(struct modules *modules, struct held *held)
{
	if (held->fd[HELD_MAIN] >= 0)
		modules->open--;
	for (size_t i = 0; i < HELD_FDS; i++) {
		if (held->fd[i] >= 0)
			close(held->fd[i]);
		held->fd[i] = -1;
	}
}

void held_free(struct modules *modules, struct held *held)
{
	held_close(modules, held);
	for (size_t i = 0; i < HELD_FDS; i++)
		origin_fini(&held->origin[i]);
	debugfile_paths_fini(&held->candidates);
	kept_free(held->kept);
	free(held->path);
	free(held->debuglink);
	free(held->altlink);
	free(held->debug);
	free(held);
}

struct held *held_find(struct modules *modules, uint64_t module_id)
{
	struct held **slot = map_find(modules->held, &module_id);

	return slot ? *slot : NULL;
}

struct held *held_add(struct modules *modules, uint64_t module_id, bool *ret_new)
{
	struct held *held = held_find(modules, module_id);

	*ret_new = !held;
	if (held || map_count(modules->held) >= MODULES_MAX)
		return held;
	held = mem_alloc(sizeof(*held));
	held->module_id = module_id;
	for (size_t i = 0; i < HELD_FDS; i++)
		held->fd[i] = -1;
	*(struct held **)map_put(modules->held, &module_id, NULL) = held;
	return held;
}

/* What came over the network or out of our own memory cannot be opened again. */
static bool is_irreplaceable(const struct held *held)
{
	for (size_t i = 0; i < HELD_FDS; i++)
		if (held->fd[i] >= 0 && !held->origin[i].request.what)
			return true;
	return false;
}

static bool goes_before(const struct held *a, const struct held *b)
{
	bool keep_a = is_irreplaceable(a), keep_b = is_irreplaceable(b);

	return keep_a != keep_b ? keep_b : a->used < b->used;
}

/* Close the least recently used until there is room for one more. */
static void make_room(struct modules *modules)
{
	while (modules->open >= MODULES_MAX_OPEN) {
		struct held *oldest = NULL, **slot;
		size_t pos = 0;

		while ((slot = map_next(modules->held, &pos, NULL)))
			if ((*slot)->fd[HELD_MAIN] >= 0 &&
			    (!oldest || goes_before(*slot, oldest)))
				oldest = *slot;
		if (!oldest)
			return;
		held_close(modules, oldest);
	}
}

void held_keep(struct modules *modules, struct held *held, enum held_fd which, int *fd,
	       struct origin *origin)
{
	if (which == HELD_MAIN && held->fd[HELD_MAIN] < 0) {
		make_room(modules);
		modules->open++;
	}
	if (held->fd[which] >= 0)
		close(held->fd[which]);
	held->fd[which] = take_fd(fd);
	held->used = ++modules->clock;
	origin_fini(&held->origin[which]);
	held->origin[which] = *origin;
	memset(origin, 0, sizeof(*origin));
}

/* Opening. */

static struct err *stat_file(int fd, struct origin *origin)
{
	struct stat info;

	if (fstat(fd, &info))
		return err_new(ERR_IO, "cannot stat a mapped file");
	if (!S_ISREG(info.st_mode))
		return err_new(ERR_FORMAT, "not a regular file");
	if ((uint64_t)info.st_size > MAX_BYTES)
		return err_new(ERR_LIMIT, "larger than %llu bytes", MAX_BYTES);
	origin->inode = info.st_ino;
	origin->size = (uint64_t)info.st_size;
	origin->mtime_ns = (uint64_t)info.st_mtim.tv_sec * 1000000000ull +
			   (uint64_t)info.st_mtim.tv_nsec;
	return NULL;
}

struct err *origin_open(struct modules *modules, const struct open_request *request,
			int *ret_fd, struct origin *ret_origin)
{
	CLEANUP(close) int fd = -1;
	struct origin origin = { .request = *request };

	TRY(opener_open(modules->config.opener, request, &fd));
	TRY(stat_file(fd, &origin));
	origin.path = request->path && *request->path ? mem_strdup(request->path) : NULL;
	origin.request.path = origin.path;
	*ret_fd = take_fd(&fd);
	*ret_origin = origin;
	return NULL;
}
