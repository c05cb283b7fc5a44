// SPDX-License-Identifier: Apache-2.0
/* What probes tell, from facts to columns. */
#include "unit/store/store_test.h"

static void put_requests(struct writer *writer)
{
	for (int i = 0; i < 2; i++)
		PUT(writer, FACT_REQUEST, request,
		    { .run_id = RUN,
		      .bucket_ns = BASE_NS,
		      .process_id = 5,
		      .method_id = 9,
		      .kind = REQUEST_CLIENT,
		      .requests = 1,
		      .weight = 2.5,
		      .weight2 = 6.25,
		      .duration_ns = 3,
		      .max_duration_ns = 3,
		      .cpu_ns = 4,
		      .probe_ns = 5,
		      .unfinished = 6 });
}

static void put_details(struct writer *writer)
{
	PUT(writer, FACT_SPAN, span,
	    { .run_id = RUN,
	      .bucket_ns = BASE_NS,
	      .span_id = 11,
	      .parent_id = 12,
	      .process_id = 5,
	      .method_id = 9,
	      .kind = REQUEST_SERVED,
	      .tid = 13,
	      .flags = 14,
	      .begin_ns = 15,
	      .duration_ns = 16,
	      .cpu_ns = 17,
	      .probe_ns = 18,
	      .weight = 1.5 });
	PUT(writer, FACT_PROBE, probe,
	    { .run_id = RUN,
	      .probe_id = 21,
	      .module_id = 5,
	      .va = 22,
	      .spec = "redis",
	      .name = "call",
	      .function = "call()",
	      .state = "cut",
	      .hits = 23,
	      .skipped = 24,
	      .unread = 25,
	      .dropped = 26,
	      .hit_ns = 27,
	      .share = 0.5,
	      .duty = 0.25,
	      .hot_ns = 28 });
}

static void what_probes_tell_arrives_whole_in_its_columns(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);

	put_run(writer, RUN);
	put_requests(writer);
	put_details(writer);
	assert_ok(writer_close(writer));
	writer_free(writer);
	db_close(db);
	assert_text(place->path,
		    "SELECT printf('%d %d %d %d %d %.2f %.2f %d %d %d %d %d', run_id, "
		    "process_id, method_id, kind, requests, weight, weight2, "
		    "duration_ns, max_duration_ns, cpu_ns, probe_ns, unfinished) "
		    "FROM request",
		    "4369 5 9 2 2 5.00 12.50 6 3 8 10 12");
	assert_text(place->path,
		    "SELECT printf('%d %d %d %d %d %d %d %d %d %d %d %.1f', span_id, "
		    "parent_id, process_id, tid, method_id, kind, begin_at_ns, "
		    "duration_ns, cpu_ns, probe_ns, flags, weight) FROM span",
		    "11 12 5 13 9 1 15 16 17 18 14 1.5");
	assert_text(place->path,
		    "SELECT printf('%d %d %s %s %s %s %d %d %d %d %d %.2f %.2f %d', "
		    "probe_id, va, spec, name, function, state, hits, skipped, unread, "
		    "dropped, hit_ns, share, duty, hot_at_ns) FROM probe",
		    "21 22 redis call call() cut 23 24 25 26 27 0.50 0.25 28");
	assert_text(place->path, "SELECT printf('%.1f', estimate) FROM v_request", "5.0");
}

static void put_resources(struct writer *writer, int times)
{
	PUT(writer, FACT_RESOURCE, resource,
	    { .resource_id = 31,
	      .spec = "shop",
	      .name = "till",
	      .title = "cash desk",
	      .kind = "lock",
	      .unit = "",
	      .capacity = 0 });
	for (int i = 0; i < times; i++)
		PUT(writer, FACT_RESOURCE_BUCKET, resource_bucket,
		    { .run_id = RUN,
		      .bucket_ns = 1000000000,
		      .resource_id = 31,
		      .pid = 32,
		      .wait_ns = 33,
		      .hold_ns = 34,
		      .waits = 35,
		      .acquires = 36,
		      .releases = 37,
		      .uses = 38,
		      .refusals = 39,
		      .balance = 2.5,
		      .holders = 40,
		      .on_ns = 41 });
}

static void put_finding(struct writer *writer, const char *text, uint64_t until_ns)
{
	PUT(writer, FACT_FINDING, finding,
	    { .run_id = RUN,
	      .finding_id = 51,
	      .resource_id = 31,
	      .pid = 32,
	      .class = "contention",
	      .resource = "cash desk",
	      .object = "till 1",
	      .score = 1.5,
	      .since_ns = 52,
	      .until_ns = until_ns,
	      .seen_ns = 54,
	      .text = text });
}

static void buckets_of_resources_add_up_and_gauges_keep_the_largest(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);

	put_run(writer, RUN);
	put_resources(writer, 2);
	assert_ok(writer_close(writer));
	writer_free(writer);
	db_close(db);
	assert_text(place->path,
		    "SELECT printf('%d %s %s %d %d %d %d %d %d %d %.1f %d %d', pid, "
		    "resource, kind, wait_ns, hold_ns, waits, acquires, releases, uses, "
		    "refusals, max_balance, max_holders, on_ns) FROM v_resource",
		    "32 till lock 66 68 70 72 74 76 78 2.5 40 82");
}

static void a_finding_is_the_last_that_was_said_of_it(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);

	put_run(writer, RUN);
	put_finding(writer, "{1}", 0);
	put_finding(writer, "{2}", 53);
	assert_ok(writer_flush(writer));
	assert_text(place->path,
		    "SELECT printf('%d %s %s %s %.1f %d %d %d %s', pid, class, resource, "
		    "object, score, since_at_ns, until_at_ns, seen_at_ns, text) "
		    "FROM v_finding",
		    "32 contention cash desk till 1 1.5 52 53 54 {2}");
	put_finding(writer, "", 0);
	assert_ok(writer_close(writer));
	writer_free(writer);
	db_close(db);
	assert_text(place->path, "SELECT printf('%d', count(*)) FROM v_finding", "0");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(what_probes_tell_arrives_whole_in_its_columns),
		TEST(buckets_of_resources_add_up_and_gauges_keep_the_largest),
		TEST(a_finding_is_the_last_that_was_said_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
