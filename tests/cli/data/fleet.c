// SPDX-License-Identifier: Apache-2.0
/*
 * fleet FILE [EXTRA_NS] - a database of requests over 10 s, all kept but for the last
 * two, which stand for ten each. Round figures, to be checked by hand:
 *
 *	front buy	1 ms own CPU; asks cart add (100 us), which asks redis get (10 us)
 *			twice. 20 of them; EXTRA_NS more in each add.
 *	front look	500 us own CPU, 2 with weight 10; they found nothing
 *
 * The last ten of buy are of low priority, and what they get of high.
 */
#include <stdio.h>
#include <stdlib.h>

#include "store/writer.h"

#define RUN	 0x2222
#define START_NS 1700000000000000000ull
#define MS	 1000000ull

static struct sink *sink;
static uint64_t extra_ns;

static void put(struct fact fact)
{
	sink_put(sink, &fact);
}

static void put_process(uint64_t id, const char *exe, const char *service)
{
	put((struct fact){ .kind = FACT_PROCESS,
			   .process = { .run_id = RUN,
					.process_id = id,
					.pid = (uint32_t)id,
					.start_ns = 1,
					.comm = "main",
					.exe = exe,
					.service = service } });
}

/* As in enum abi_label. */
static uint32_t labels_of(uint64_t id, uint64_t method)
{
	if (method == 2)
		return 4;
	return id < 110 || method == 3 ? 0 : method == 1 ? 16 : 32;
}

static void put_span(uint64_t id, uint64_t parent, uint64_t process, uint64_t method,
		     uint64_t cpu_ns)
{
	uint64_t trace = id < 10 ? id : id / 10 * 10;

	put((struct fact){
		.kind = FACT_SPAN,
		.span = { .run_id = RUN,
			  .bucket_ns = START_NS,
			  .span_id = id,
			  .parent_id = parent,
			  .trace_id = trace,
			  .process_id = process,
			  .method_id = method,
			  .kind = REQUEST_SERVED,
			  .tid = 1,
			  .begin_ns = START_NS + id / 10 * 500 * MS + id % 10 * MS,
			  .duration_ns = (10 - 2 * (id % 10)) * MS,
			  .cpu_ns = cpu_ns,
			  .labels = labels_of(id, method),
			  .weight = method == 2 ? 10 : 1 } });
}

static void put_all(void)
{
	static const char *const names[] = { "buy", "look", "add", "get" };

	put((struct fact){ .kind = FACT_RUN,
			   .run = { .run_id = RUN,
				    .start_ns = START_NS,
				    .end_ns = START_NS + 10000 * MS,
				    .host = "host",
				    .boot_id = "boot",
				    .kernel = "6.1",
				    .version = "0.1",
				    .target = "all",
				    .sources = "none" } });
	put_process(1, "/opt/shop/front", "");
	put_process(2, "/opt/shop/cart-1.2", "cart.service");
	put_process(3, "/usr/bin/redis", "");
	for (uint64_t i = 0; i < 4; i++)
		put((struct fact){ .kind = FACT_METHOD,
				   .method = { i + 1, "made", names[i] } });
	for (uint64_t i = 1; i <= 20; i++) {
		put_span(i * 10, 0, 1, 1, MS);
		put_span(i * 10 + 1, i * 10, 2, 3, MS / 10 + extra_ns);
		put_span(i * 10 + 2, i * 10 + 1, 3, 4, MS / 100);
		put_span(i * 10 + 3, i * 10 + 1, 3, 4, MS / 100);
	}
	put_span(4, 0, 1, 2, MS / 2);
	put_span(5, 0, 1, 2, MS / 2);
}

int main(int argc, char **argv)
{
	CLEANUP(db_close) struct db *db = NULL;
	CLEANUP(writer_free) struct writer *writer = NULL;
	struct writer_config config = { .analyser_version = 1 };
	struct err *err = argc >= 2 ? db_open(argv[1], DB_WRITE, &db)
				    : err_new(ERR_INVALID, "usage: fleet FILE [EXTRA]");

	extra_ns = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	if (!err)
		err = writer_new(db, &config, &writer);
	if (!err) {
		sink = writer_sink(writer);
		put_all();
		err = writer_close(writer);
	}
	if (!err)
		return 0;
	fprintf(stderr, "fleet: %s\n", err->text);
	err_free(err);
	return 1;
}
