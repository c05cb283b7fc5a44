// SPDX-License-Identifier: Apache-2.0
/*
 * A writer is killed at random moments, again and again on one file. It says through a
 * pipe which samples it has flushed. After each kill the file must be sound and hold a
 * prefix of what was put, no shorter than what was said; the next writer goes on from
 * there. Needs no root. The seed is printed and can be given as ASSAY_SEED.
 */
#include "unit/store/store_test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "store/retain.h"

#define KILLS	    50
#define PER_FLUSH   40
#define MAX_WAIT_US 80000

static void put_round(struct writer *writer, uint64_t run_id, uint64_t from)
{
	const struct fact_frame frames[] = { { MODULE, from }, { MODULE, 1 } };

	for (uint64_t i = from; i < from + PER_FLUSH; i++)
		PUT(writer, FACT_ACCESS, access,
		    { .run_id = run_id,
		      .bucket_ns = BASE_NS + i / 10 * SECOND,
		      .module_id = MODULE,
		      .va = i,
		      .source = CLOCK,
		      .samples = 1 });
	put_stack(writer, from + 1, frames, 2);
	PUT(writer, FACT_TICK, tick,
	    { .run_id = run_id,
	      .bucket_ns = BASE_NS + from / 10 * SECOND,
	      .stack_id = from + 1,
	      .samples = 1,
	      .cpu_ns = 1000 });
}

/* Goes on until it is killed; an error is an exit status. */
static void write_for_ever(const char *path, uint64_t run_id, uint64_t from, int say)
{
	struct writer_config config = { 0 };
	struct retain_config keep = { .sweep_ns = 100 * SECOND };
	struct writer *writer;
	struct retain *retain;
	struct db *db;
	struct err *err = db_open(path, DB_WRITE, &db);

	if (!err)
		err = writer_new(db, &config, &writer);
	if (!err)
		err = retain_new(db, &keep, &retain);
	if (!err)
		put_run(writer, run_id);
	while (!err) {
		put_round(writer, run_id, from);
		from += PER_FLUSH;
		err = writer_flush(writer);
		if (!err && write(say, &from, sizeof(from)) != sizeof(from))
			break;
		if (!err)
			err = retain_step(retain, BASE_NS + from / 10 * SECOND, 1000000,
					  NULL);
	}
	fprintf(stderr, "# %s\n", err ? err->text : "the pipe broke");
	_exit(1);
}

/* Return: how many samples the child said it has flushed. */
static uint64_t run_and_kill(const char *path, uint64_t run_id, uint64_t from)
{
	uint64_t said = from;
	int ends[2], status;

	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();

	if (!pid)
		write_for_ever(path, run_id, from, ends[1]);
	assert_true(pid > 0);
	close(ends[1]);
	usleep((useconds_t)(random() % MAX_WAIT_US));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	assert_true(WIFSIGNALED(status));
	while (read(ends[0], &said, sizeof(said)) == sizeof(said))
		;
	close(ends[0]);
	return said;
}

static void check_file(const char *path, uint64_t said, uint64_t *ret_stored)
{
	if (ask(path, "PRAGMA user_version") != db_schema_version())
		return; /* killed while it was being made */
	assert_sound(path);
	int64_t stored = ask(path, "SELECT coalesce(sum(samples), 0) FROM access");

	assert_true((uint64_t)stored >= said);
	assert_int_equal(stored, ask(path, "SELECT count(DISTINCT va) FROM access"));
	assert_int_equal(stored,
			 ask(path, "SELECT coalesce(max(va) + 1, 0) FROM access"));
	assert_int_equal(stored % PER_FLUSH, 0);
	assert_int_equal(stored / PER_FLUSH,
			 ask(path, "SELECT coalesce(sum(samples), 0) FROM tick"));
	/* only the run that was killed last may still be open */
	assert_true(ask(path, "SELECT count(*) FROM run WHERE end_at_ns IS NULL") <= 1);
	assert_int_equal(
		ask(path, "SELECT count(*) FROM run WHERE end_at_ns IS NOT NULL AND NOT "
			  "EXISTS (SELECT 1 FROM loss JOIN loss_reason USING (reason) "
			  "WHERE loss.run_id = run.run_id AND name = 'crash')"),
		0);
	assert_true(ask(path, "SELECT coalesce(max(lost_ns), 0) FROM loss") <=
		    (int64_t)WRITER_FLUSH_NS);
	*ret_stored = (uint64_t)stored;
}

static void a_killed_writer_leaves_a_sound_file_and_the_next_goes_on(void **state)
{
	struct place *place = *state;
	const char *given = getenv("ASSAY_SEED");
	unsigned seed = given ? (unsigned)atoi(given) : (unsigned)clock_ns();
	uint64_t stored = 0;
	unsigned grown = 0;

	print_message("seed %u\n", seed);
	srandom(seed);
	for (unsigned i = 0; i < KILLS; i++) {
		uint64_t before = stored;
		uint64_t said = run_and_kill(place->path, 1000 + i, stored);

		check_file(place->path, said, &stored);
		grown += stored > before;
	}
	print_message("%u of %u killed writers had written, %llu samples in all\n", grown,
		      KILLS, (unsigned long long)stored);
	assert_true(grown > KILLS / 4);

	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);

	assert_ok(writer_close(writer));
	writer_free(writer);
	db_close(db);
	assert_int_equal(
		ask(place->path, "SELECT count(*) FROM run WHERE end_at_ns IS NULL"), 0);
	assert_sound(place->path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_killed_writer_leaves_a_sound_file_and_the_next_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
