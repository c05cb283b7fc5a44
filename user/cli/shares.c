// SPDX-License-Identifier: Apache-2.0
/*
 * Replies are handed on as they come; only what the callback prints, lines that begin
 * with an address, is held back in memory until all shares are complete, and merged: a
 * unit's code lies in several places. Peak memory is that of the largest worker: they are
 * processes of their own.
 */
#include "cli/shares.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/stop.h"
#include "core/mem.h"

#define STEP_MS 200

struct shares;

struct share {
	struct shares *all;
	struct job_client *worker; /* the first one's is borrowed */
	uint32_t done, total;
	bool is_over;
	struct job_stats stats;
	FILE *file;
	char *text;
	size_t text_bytes;
};

struct shares {
	const struct shares_job *job;
	uint32_t count;
	bool has_failed;
	struct share *shares;
};

static bool all_over(const struct shares *all)
{
	for (uint32_t i = 0; i < all->count; i++)
		if (!all->shares[i].is_over)
			return false;
	return true;
}

static void add_stats(struct job_stats *sum, const struct job_stats *stats)
{
	sum->functions += stats->functions;
	sum->instructions += stats->instructions;
	sum->memory_instructions += stats->memory_instructions;
	sum->claims += stats->claims;
	sum->cpu_ns += stats->cpu_ns;
	sum->units += stats->units;
	sum->kept_units += stats->kept_units;
	for (int i = 0; i < VERDICTS; i++) {
		sum->by_verdict[i] += stats->by_verdict[i];
		sum->by_verdict_stack[i] += stats->by_verdict_stack[i];
	}
	if (stats->peak_bytes > sum->peak_bytes)
		sum->peak_bytes = stats->peak_bytes;
}

/* The same reply, with figures of all shares; the last one of all ends the job. */
static struct job_reply whole_reply(struct shares *all, const struct job_reply *reply)
{
	struct job_reply whole = *reply;

	whole.sites.done = whole.sites.total = 0;
	whole.sites.stats = (struct job_stats){ 0 };
	for (uint32_t i = 0; i < all->count; i++) {
		whole.sites.done += all->shares[i].done;
		whole.sites.total += all->shares[i].total;
		add_stats(&whole.sites.stats, &all->shares[i].stats);
	}
	whole.more = !all_over(all);
	return whole;
}

static void take_share(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct share *share = ctx;
	struct shares *all = share->all;
	FILE *file = *all->job->file;

	if (err) {
		share->is_over = true;
		if (all->has_failed) {
			err_free(err);
			return;
		}
		all->has_failed = true;
		all->job->done(all->job->ctx, err, NULL);
		return;
	}
	share->done = reply->sites.done;
	share->total = reply->sites.total;
	share->is_over = !reply->more;
	if (share->is_over)
		share->stats = reply->sites.stats;
	if (all->has_failed)
		return;

	struct job_reply whole = whole_reply(all, reply);

	*all->job->file = share->file;
	all->job->done(all->job->ctx, NULL, &whole);
	*all->job->file = file;
}

static struct err *start(struct share *share, uint32_t index)
{
	const struct shares_job *job = share->all->job;

	share->file = open_memstream(&share->text, &share->text_bytes);
	if (!share->file)
		return err_new(ERR_IO, "no memory for the output");
	if (index) {
		TRY(job_spawn(JOB_ANALYZE, NULL, &share->worker));
		TRY(job_open(share->worker,
			     &(struct job_open){ .module_id = job->module_id,
						 .main_fd = job->files->main_fd,
						 .debug_fd = job->files->debug_fd,
						 .alt_fd = job->files->alt_fd,
						 .kallsyms_fd = -1,
						 .keeps = job->keeps,
						 .pack_fd = job->pack_fd }));
	} else {
		share->worker = job->first;
	}
	return job_module_part(share->worker, job->module_id, index, job->count,
			       take_share, share);
}

static void wait_for(struct shares *all)
{
	struct pollfd polled[SHARES_MAX];

	for (uint32_t i = 0; i < all->count; i++) {
		const struct job_client *worker = all->shares[i].worker;

		polled[i] = (struct pollfd){
			.fd = all->shares[i].is_over ? -1 : job_fd(worker),
			.events =
				(short)(POLLIN | (job_wants_write(worker) ? POLLOUT : 0)),
		};
	}
	poll(polled, all->count, STEP_MS);
	for (uint32_t i = 0; i < all->count; i++)
		if (!all->shares[i].is_over)
			job_pump(all->shares[i].worker);
}

/* What is left of a share's lines. */
struct lines {
	const char *at, *end;
	uint64_t va; /* of the next one */
};

static void read_address(struct lines *lines)
{
	lines->va = lines->at < lines->end ? strtoull(lines->at, NULL, 16) : UINT64_MAX;
}

/* Line by line, the lowest address first; each share's ascend already. */
static void merge(struct lines *lines, uint32_t count, FILE *file)
{
	for (;;) {
		struct lines *lowest = NULL;
		const char *end;

		for (uint32_t i = 0; i < count; i++)
			if (lines[i].at < lines[i].end &&
			    (!lowest || lines[i].va < lowest->va))
				lowest = &lines[i];
		if (!lowest)
			return;
		end = memchr(lowest->at, '\n', (size_t)(lowest->end - lowest->at));
		end = end ? end + 1 : lowest->end;
		fwrite(lowest->at, 1, (size_t)(end - lowest->at), file);
		lowest->at = end;
		read_address(lowest);
	}
}

static void put_held(struct shares *all, bool is_wanted)
{
	struct lines lines[SHARES_MAX];

	for (uint32_t i = 0; i < all->count; i++) {
		struct share *share = &all->shares[i];

		if (share->file)
			fclose(share->file);
		lines[i] = (struct lines){ .at = share->text,
					   .end = share->text + share->text_bytes };
		if (is_wanted)
			read_address(&lines[i]);
	}
	if (is_wanted)
		merge(lines, all->count, *all->job->file);
	for (uint32_t i = 0; i < all->count; i++)
		free(all->shares[i].text);
}

struct err *shares_run(const struct shares_job *job)
{
	struct shares all = { .job = job, .count = job->count };
	struct err *err = NULL;

	if (!job->count || job->count > SHARES_MAX)
		return err_new(ERR_LIMIT, "between 1 and %d workers", SHARES_MAX);
	all.shares = mem_array(job->count, sizeof(*all.shares));
	for (uint32_t i = 0; i < all.count; i++)
		all.shares[i].all = &all;
	for (uint32_t i = 0; i < all.count && !err; i++)
		err = start(&all.shares[i], i);
	while (!err && !all.has_failed && !stop_flag && !all_over(&all))
		wait_for(&all);
	/* Pending jobs of the others fail now, and are not told. */
	bool is_whole = !err && !all.has_failed && all_over(&all);

	if (!is_whole)
		all.has_failed = true;
	for (uint32_t i = 1; i < all.count; i++)
		job_free(all.shares[i].worker);
	put_held(&all, is_whole);
	if (!is_whole && !err && stop_flag)
		err = err_new(ERR_CLOSED, "interrupted");
	/* The first worker still knows the share that it works on: it must not outlive
	 * what its callback points to. */
	if (!is_whole && job_pending(job->first))
		err_free(job_wait(job->first, 0));
	if (!is_whole && job_pending(job->first) && job_pid(job->first) > 0)
		kill(job_pid(job->first), SIGKILL);
	if (!is_whole)
		while (job_pending(job->first))
			job_pump(job->first);
	free(all.shares);
	return err;
}
