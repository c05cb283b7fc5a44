// SPDX-License-Identifier: Apache-2.0
/* What comes out is what went in, byte for byte, or nothing at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"
#include "job/cache.h"
#include "job/message.h"

static const struct fact_type types[] = { { 11, "struct a", 24 } };
static const struct fact_field fields[] = { { 11, 0, 8, "next" }, { 11, 8, 16, "v[]" } };
static const struct fact_answer answers[] = {
	{ 5,
	  11,
	  0,
	  { 0x1000, 0xffc, VERDICT_DWARF, ACCESS_BOTH, 4, "struct a", 24, -8, "v[]", 8,
	    16, 0.75, true } },
	{ 5,
	  0,
	  0,
	  { 0x2000, 0x2000, VERDICT_NO_TYPE, ACCESS_LOAD, 8, "", 0, 0, "", 0, 0, 0,
	    false } },
};
static const struct cache_key key = { 0x1234, 0x99 };

static struct job_reply sample(bool more)
{
	struct job_reply reply = { .kind = JOB_MODULE, .more = more };

	reply.sites.answers = (struct job_answers){ types, 1, fields, 2, answers, 2 };
	reply.sites.done = more ? 1 : 2;
	reply.sites.total = 2;
	reply.sites.stats.claims = more ? 0 : 2;
	return reply;
}

static void encode(void *ctx, struct err *err, const struct job_reply *reply)
{
	assert_null(err);
	wire_put_u8(ctx, reply->more);
	message_put_reply(ctx, reply);
}

static char *new_folder(void)
{
	char *folder = mem_strdup("/tmp/test-cache-XXXXXX");

	assert_non_null(mkdtemp(folder));
	return folder;
}

static void remove_folder(char *folder)
{
	cache_evict(folder, 0);
	assert_int_equal(rmdir(folder), 0); /* nothing else was left in it */
	free(folder);
}

static char *path_of(const char *folder, const struct cache_key *of)
{
	return mem_printf("%s/%016llx-%016llx.answers", folder,
			  (unsigned long long)of->content,
			  (unsigned long long)of->analyser);
}

static void keep(const char *folder, const struct cache_key *as)
{
	CLEANUP(cache_writer_free) struct cache_writer *writer = NULL;
	struct job_reply first = sample(true), last = sample(false);

	assert_null(cache_writer_open(folder, as, &writer));
	cache_writer_put(writer, &first);
	cache_writer_put(writer, &last);
	assert_null(cache_writer_commit(writer, CACHE_MAX_BYTES));
}

static bool load(const char *folder, const struct cache_key *as, struct str *out)
{
	bool hit;

	str_clear(out);
	assert_null(cache_load(folder, as, encode, out, &hit));
	if (!hit)
		assert_int_equal(out->length, 0);
	return hit;
}

static void kept_replies_come_back_as_they_were(void **state)
{
	CLEANUP(str_fini) struct str got = { 0 }, want = { 0 };
	struct job_reply first = sample(true), last = sample(false);
	char *folder = new_folder();

	(void)state;
	assert_false(load(folder, &key, &got));
	keep(folder, &key);
	assert_true(load(folder, &key, &got));
	encode(&want, NULL, &first);
	encode(&want, NULL, &last);
	assert_int_equal(got.length, want.length);
	assert_memory_equal(got.data, want.data, want.length);
	remove_folder(folder);
}

static void another_analyser_or_file_finds_nothing(void **state)
{
	CLEANUP(str_fini) struct str got = { 0 };
	char *folder = new_folder();

	(void)state;
	keep(folder, &key);
	assert_false(load(folder, &(struct cache_key){ 0x1234, 0x98 }, &got));
	assert_false(load(folder, &(struct cache_key){ 0x1235, 0x99 }, &got));
	/* nor does an entry that was moved to another's place */
	CLEANUP(free) char *from = path_of(folder, &key);
	CLEANUP(free)
	char *to = path_of(folder, &(struct cache_key){ 0x1234, 0x98 });

	assert_int_equal(rename(from, to), 0);
	assert_false(load(folder, &(struct cache_key){ 0x1234, 0x98 }, &got));
	remove_folder(folder);
}

static void put_file(const char *path, const char *data, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_null(file_write_all(fd, data, bytes));
	close(fd);
}

static void any_changed_bit_and_any_cut_is_noticed_and_rebuilt(void **state)
{
	CLEANUP(str_fini) struct str got = { 0 };
	char *folder = new_folder(), *data;
	CLEANUP(free) char *path = path_of(folder, &key);
	size_t bytes;

	(void)state;
	keep(folder, &key);
	assert_null(file_read(path, 1 << 20, &data, &bytes));
	for (size_t i = 0; i < bytes; i++) {
		data[i] ^= (char)(1 << i % 8);
		put_file(path, data, bytes);
		assert_false(load(folder, &key, &got));
		assert_int_equal(access(path, F_OK), -1);
		data[i] ^= (char)(1 << i % 8);
		put_file(path, data, i);
		assert_false(load(folder, &key, &got));
	}
	put_file(path, data, bytes);
	assert_true(load(folder, &key, &got));
	keep(folder, &key);
	assert_true(load(folder, &key, &got));
	free(data);
	remove_folder(folder);
}

static void links_and_files_that_others_may_write_are_not_read(void **state)
{
	CLEANUP(str_fini) struct str got = { 0 };
	char *folder = new_folder();
	CLEANUP(free) char *path = path_of(folder, &key);
	CLEANUP(free) char *aside = mem_printf("%s/aside", folder);

	(void)state;
	keep(folder, &key);
	assert_int_equal(chmod(path, 0666), 0);
	assert_false(load(folder, &key, &got));
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(rename(path, aside), 0);
	assert_int_equal(symlink("aside", path), 0);
	assert_false(load(folder, &key, &got));
	unlink(path);
	unlink(aside);
	remove_folder(folder);
}

static void an_unfinished_entry_is_none(void **state)
{
	CLEANUP(str_fini) struct str got = { 0 };
	char *folder = new_folder();
	struct cache_writer *writer;
	struct job_reply first = sample(true);

	(void)state;
	assert_null(cache_writer_open(folder, &key, &writer));
	cache_writer_put(writer, &first);
	struct err *err = cache_writer_commit(writer, CACHE_MAX_BYTES);

	assert_non_null(err);
	err_free(err);
	assert_false(load(folder, &key, &got));
	cache_writer_free(writer);
	remove_folder(folder);
}

static void the_least_recently_used_goes_first(void **state)
{
	CLEANUP(str_fini) struct str got = { 0 };
	struct cache_key keys[3] = { { 1, 1 }, { 2, 1 }, { 3, 1 } };
	char *folder = new_folder();
	struct stat st;

	(void)state;
	for (int i = 0; i < 3; i++) {
		CLEANUP(free) char *path = path_of(folder, &keys[i]);
		struct timespec old[2] = { { 1000 + i, 0 }, { 1000 + i, 0 } };

		keep(folder, &keys[i]);
		assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
		assert_int_equal(stat(path, &st), 0);
	}
	assert_true(load(folder, &keys[0], &got)); /* now the latest */
	cache_evict(folder, (uint64_t)st.st_size * 2);
	assert_true(load(folder, &keys[0], &got));
	assert_false(load(folder, &keys[1], &got));
	assert_true(load(folder, &keys[2], &got));
	remove_folder(folder);
}

static struct cache_key key_of(const char *main, const char *debug)
{
	int fds[2] = { -1, -1 };
	const char *texts[2] = { main, debug };
	struct cache_key got;

	for (int i = 0; i < 2; i++)
		if (texts[i]) {
			fds[i] = memfd_create("file", MFD_CLOEXEC);
			assert_null(file_write_all(fds[i], texts[i], strlen(texts[i])));
		}
	assert_null(cache_key_of(fds, 2, "/proc/self/exe", &got));
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return got;
}

static void the_key_hangs_on_every_file(void **state)
{
	struct cache_key one = key_of("code", NULL);

	(void)state;
	assert_true(one.content == key_of("code", NULL).content);
	assert_true(one.content != key_of("Code", NULL).content);
	assert_true(one.content != key_of("code", "").content);
	assert_true(key_of("code", "x").content != key_of("codex", "").content);
	assert_true(one.analyser == key_of("other", NULL).analyser);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kept_replies_come_back_as_they_were),
		cmocka_unit_test(another_analyser_or_file_finds_nothing),
		cmocka_unit_test(any_changed_bit_and_any_cut_is_noticed_and_rebuilt),
		cmocka_unit_test(links_and_files_that_others_may_write_are_not_read),
		cmocka_unit_test(an_unfinished_entry_is_none),
		cmocka_unit_test(the_least_recently_used_goes_first),
		cmocka_unit_test(the_key_hangs_on_every_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
