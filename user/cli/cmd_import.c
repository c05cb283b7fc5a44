// SPDX-License-Identifier: Apache-2.0
/*
 * A file of perf record: the sandboxed worker makes a stream of our own records of it, and
 * replay makes a database of that. The stream lives beside the database only so long.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/number.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/stop.h"
#include "core/file.h"
#include "core/mem.h"
#include "event/stream.h"
#include "job/job.h"

#define IMPORT_STEP_MS	 200
#define IMPORT_COPY	 (1024 * 1024)
#define IMPORT_FILE_MODE 0600

static const struct option_spec options[] = {
	{ "symfs", 0, OPTION_FILE, "DIR", "look for the recorded programs below DIR", 0,
	  0 },
	{ "events", 0, OPTION_FILE, "FILE", "keep the records there, for assay replay", 0,
	  0 },
	{ 0 },
};

struct import {
	struct cli *cli;
	struct progress progress;
	const char *path; /* of the stream */
	struct stream_writer *writer;
	struct err *err;
	uint64_t samples, foreign, lost, late;
	char *events;
	char *damage;
	bool done;
};

static void set_word(char *room, size_t bytes, const char *text)
{
	snprintf(room, bytes, "%s", text);
}

static struct err *begin(struct import *import, const struct job_records *records)
{
	struct stream_meta meta = { .start_ns = records->start_ns,
				    .realtime_offset_ns = records->realtime_offset_ns,
				    .is_imported = true };
	int fd = open(import->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
		      IMPORT_FILE_MODE);

	if (fd < 0)
		return err_errno(errno, "%s", import->path);
	set_word(meta.host, sizeof(meta.host), records->host);
	set_word(meta.kernel, sizeof(meta.kernel), records->kernel);
	set_word(meta.version, sizeof(meta.version), records->version);
	set_word(meta.target, sizeof(meta.target), "perf.data");
	snprintf(meta.sources, sizeof(meta.sources), "perf: %.240s", records->events);
	/* Another host's times and pids are no earlier run of ours. */
	snprintf(meta.boot_id, sizeof(meta.boot_id), "%016" PRIx64,
		 hash_bytes(&meta, sizeof(meta), 0));
	return stream_create(fd, &meta, &import->writer);
}

/* Each a length and so many bytes; from the sandbox, so nothing is believed. */
static struct err *write_records(struct import *import, const struct job_records *records)
{
	struct wire in = { .data = records->data, .size = records->bytes };

	while (in.pos < in.size) {
		size_t bytes;
		const void *record = wire_bytes(&in, &bytes);

		if (in.bad)
			return err_new(ERR_FORMAT, "the worker sent a damaged record");
		TRY(stream_write(import->writer, record, bytes));
	}
	return NULL;
}

static struct err *take_part(struct import *import, const struct job_reply *reply)
{
	const struct job_records *records = &reply->records;

	if (records->total)
		progress_show(&import->progress, records->done >> 20,
			      records->total >> 20, "MB");
	if (!import->writer && (records->bytes || !reply->more))
		TRY(begin(import, records));
	if (records->bytes)
		TRY(write_records(import, records));
	if (reply->more)
		return NULL;
	import->samples = records->samples;
	import->foreign = records->foreign;
	import->lost = records->lost;
	import->late = records->late;
	import->events = mem_strdup(records->events);
	import->damage = mem_strdup(records->damage);
	import->done = true;
	return stream_flush(import->writer);
}

static void on_part(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct import *import = ctx;

	if (!err && !import->err)
		err = take_part(import, reply);
	if (!err)
		return;
	if (import->err)
		err_free(err);
	else
		import->err = err;
	import->done = true;
}

/* Standard input has no size and cannot be read twice. */
static struct err *spool(int *ret_fd)
{
	CLEANUP(free) char *room = mem_alloc(IMPORT_COPY);
	const char *folder = getenv("TMPDIR");
	CLEANUP(close)
	int fd = open(folder && *folder ? folder : "/var/tmp",
		      O_TMPFILE | O_RDWR | O_CLOEXEC, IMPORT_FILE_MODE);

	if (fd < 0)
		return err_errno(errno, "a temporary file in %s",
				 folder && *folder ? folder : "/var/tmp");
	for (;;) {
		ssize_t got = read(STDIN_FILENO, room, IMPORT_COPY);

		if (got < 0 && errno == EINTR && !stop_flag)
			continue;
		if (got < 0)
			return err_errno(errno, "standard input");
		if (!got)
			break;
		TRY(file_write_all(fd, room, (size_t)got));
	}
	*ret_fd = take_fd(&fd);
	return NULL;
}

static struct err *open_input(const char *name, int *ret_fd)
{
	if (!strcmp(name, "-"))
		return spool(ret_fd);
	*ret_fd = open(name, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? err_errno(errno, "%s", name) : NULL;
}

/* perf.data -> import->path. */
static struct err *convert(struct import *import, const char *name)
{
	CLEANUP(job_free) struct job_client *worker = NULL;
	CLEANUP(close) int fd = -1;

	TRY(open_input(name, &fd));
	TRY(job_spawn(JOB_ANALYZE, NULL, &worker));
	progress_begin(&import->progress, "reading", import->cli->quiet);
	TRY(job_records(worker, fd, on_part, import));
	while (!import->done && !stop_flag) {
		struct err *err = job_wait(worker, IMPORT_STEP_MS);

		if (err && err->code != ERR_LIMIT) {
			err_free(import->err);
			import->err = err;
			break;
		}
		err_free(err);
	}
	progress_end(&import->progress);
	stream_close(take(import->writer));
	if (!import->err && !import->done)
		return err_new(ERR_CLOSED, "interrupted; nothing was imported");
	return err_wrap(take(import->err), "%s", name);
}

static void say(const struct import *import)
{
	cli_note(import->cli, "%" PRIu64 " samples of %s", import->samples,
		 *import->events ? import->events : "no event");
	if (import->lost)
		cli_note(import->cli, "%" PRIu64 " were lost while perf recorded",
			 import->lost);
	if (import->foreign)
		cli_note(import->cli,
			 "%" PRIu64 " samples of guests or hypervisors were left out",
			 import->foreign);
}

static struct err *replay_into(struct cli *cli, const struct import *import,
			       const char *db)
{
	CLEANUP(agent_free) struct agent *agent = NULL;
	const char *symfs = option_text(&cli->options, "symfs", NULL);
	CLEANUP(free) char *folder = symfs ? session_path(symfs) : NULL;
	struct agent_config config = {
		.replay = import->path, .symfs = folder, .db = db, .quiet = cli->quiet
	};

	TRY(session_start(&config, &agent));
	TRY(session_wait(cli, agent, "importing", 0));
	return session_report(cli, db, agent_run_id(agent));
}

static struct err *run_import(struct cli *cli)
{
	const char *name = cli_arg(cli, 0),
		   *kept = option_text(&cli->options, "events", NULL);
	CLEANUP(free) char *db = NULL;
	struct import import = { .cli = cli };
	struct stat info;
	const char *symfs = option_text(&cli->options, "symfs", NULL);

	if (!option_text(&cli->options, "db", NULL))
		return cli_usage(cli, "name the database to write: --db FILE");
	if (symfs && (stat(symfs, &info) || !S_ISDIR(info.st_mode)))
		return err_new(ERR_NOT_FOUND, "%s is no folder", symfs);
	TRY(session_db(cli, &db));
	CLEANUP(free)
	char *path =
		kept ? session_path(kept) : mem_printf("%s.import-%d", db, (int)getpid());

	stop_catch();
	import.path = path;
	struct err *err = convert(&import, name);

	if (!err) {
		say(&import);
		err = replay_into(cli, &import, db);
	}
	if (!kept)
		unlink(path);
	/* What was readable is in the database; the status still says that it is not all. */
	if (!err && import.damage && *import.damage)
		err = err_new(ERR_FORMAT, "%s: %s; what came before was imported", name,
			      import.damage);
	free(import.events);
	free(import.damage);
	return err;
}

const struct cmd cmd_import = {
	.name = "import",
	.args = "FILE",
	.summary = "make a database from a file of perf record",
	.text = "Read what perf record wrote, perf.data or its standard output, into the "
		"database that --db names, and print the top of it. Addresses, latencies "
		"and data sources of mem-loads, mem-stores and ibs_op are kept; cycles and "
		"clocks are told apart by whether they are precise. Call chains and copied "
		"stacks go to assay stacks.\n\n"
		"Types are found if the recorded programs, or their files below --symfs, "
		"still have the recorded build-id. A file that is cut off or damaged is read "
		"up to there, and the exit status is 1.",
	.groups = CMD_DB | CMD_OUTPUT,
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.completes = COMPLETE_FILE,
	.examples = { { "a recording of this machine",
			"perf record -g -p 1234 -- sleep 10\n"
			"  assay import perf.data --db /tmp/perf.db" },
		      { "of another, whose files are in a folder",
			"assay import perf.data --symfs sysroot --db /tmp/perf.db" },
		      { "straight from a pipe",
			"perf record -o - -a -- sleep 10 | assay import - --db /tmp/p.db" } },
	.run = run_import,
};
