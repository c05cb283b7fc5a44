// SPDX-License-Identifier: Apache-2.0
/*
 * shop FILE - a database with one small run, made through the writer: 1000 access
 * samples of two processes, of which 700 are typed, and 25 more that were lost. All
 * figures are round, so that a reader of the transcripts can check them by hand:
 *
 *	struct dict       400: table 300 at 8, size 100 at 24      backward, local
 *	struct client     300: argv[] 300 at 64                    join
 *	no type known     200
 *	stack             100
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/abi.h"
#include "store/writer.h"

#define RUN	 0x1111
#define SERVER	 0xa1
#define HELPER	 0xa2
#define MODULE	 0xb1
#define STRIPPED 0xb2
#define DICT	 0xc1
#define CLIENT	 0xc2
#define START_NS 1700000000000000000ull /* 2023-11-14 22:13:20 UTC */

static struct sink *sink;

static void put(struct fact fact)
{
	sink_put(sink, &fact);
}

static void put_process(uint64_t id, uint32_t pid, const char *comm)
{
	put((struct fact){ .kind = FACT_PROCESS,
			   .process = { .run_id = RUN,
					.process_id = id,
					.pid = pid,
					.start_ns = 1,
					.exe_module_id = MODULE,
					.comm = comm,
					.exe = "/opt/shop/server",
					.service = "" } });
}

static void put_function(uint64_t module, uint64_t va, const char *name)
{
	put((struct fact){ .kind = FACT_FUNCTION,
			   .function = { .module_id = module,
					 .va = va,
					 .bytes = 0x100,
					 .name = name,
					 .file = "server.c",
					 .line = 10 } });
}

static void put_access(uint64_t process, uint64_t module, uint64_t va, uint64_t samples)
{
	put((struct fact){ .kind = FACT_ACCESS,
			   .access = { .run_id = RUN,
				       .bucket_ns = START_NS,
				       .process_id = process,
				       .module_id = module,
				       .va = va,
				       .source = ABI_SOURCE_CLOCK,
				       .samples = samples,
				       .period = samples * 1003009 } });
	put((struct fact){ .kind = FACT_SITE,
			   .site = { .module_id = module,
				     .va = va,
				     .function_va = va & ~0xffull,
				     .file = "server.c",
				     .line = 12 } });
}

static void put_type(uint64_t id, const char *name, uint64_t bytes)
{
	put((struct fact){ .kind = FACT_TYPE,
			   .type = { .type_id = id, .name = name, .bytes = bytes } });
}

static void put_field(uint64_t type, uint64_t offset, const char *path)
{
	put((struct fact){
		.kind = FACT_FIELD,
		.field = {
			.type_id = type, .offset = offset, .bytes = 8, .path = path } });
}

struct claim {
	uint64_t va, type_id, offset;
	enum verdict verdict;
	const char *type, *path;
	double confidence;
};

static void put_answer(uint64_t module, const struct claim *claim)
{
	bool typed = claim->type_id != 0;

	put((struct fact){ .kind = FACT_ANSWER,
			   .answer = { .module_id = module,
				       .type_id = claim->type_id,
				       .skid = 1,
				       .answer = { .va = claim->va,
						   .insn_va = claim->va - 4,
						   .verdict = claim->verdict,
						   .access = ACCESS_LOAD,
						   .width = 8,
						   .type = typed ? claim->type : "",
						   .type_bytes = typed ? 96 : 0,
						   .offset = (int64_t)claim->offset,
						   .path = typed ? claim->path : "",
						   .field_offset = claim->offset,
						   .field_bytes = typed ? 8 : 0,
						   .confidence = claim->confidence } } });
}

static void put_stack(uint64_t id, const struct fact_frame *frames, size_t count,
		      uint64_t samples)
{
	put((struct fact){ .kind = FACT_STACK,
			   .stack = { .stack_id = id,
				      .frames = frames,
				      .count = count,
				      .complete = 1 } });
	put((struct fact){ .kind = FACT_TICK,
			   .tick = { .run_id = RUN,
				     .bucket_ns = START_NS,
				     .process_id = SERVER,
				     .stack_id = id,
				     .samples = samples,
				     .cpu_ns = samples * 10000000 } });
}

static void put_module(uint64_t id, const char *path, const char *debug, uint8_t byte)
{
	struct build_id build_id = { .size = 20 };

	memset(build_id.bytes, byte, 20);
	put((struct fact){ .kind = FACT_MODULE,
			   .module = { .module_id = id,
				       .build_id = build_id,
				       .kind = MODULE_FILE,
				       .path = path,
				       .debug = debug } });
}

static void put_loss(uint32_t kind, enum loss_reason reason, uint64_t lost)
{
	put((struct fact){ .kind = FACT_LOSS,
			   .loss = { .run_id = RUN,
				     .bucket_ns = START_NS,
				     .kind = kind,
				     .reason = reason,
				     .lost = lost } });
}

static void put_run(uint64_t end_ns)
{
	put((struct fact){ .kind = FACT_RUN,
			   .run = { .run_id = RUN,
				    .start_ns = START_NS,
				    .end_ns = end_ns,
				    .host = "host",
				    .boot_id = "boot",
				    .kernel = "6.1.0",
				    .version = "0.1.0",
				    .target = "pid:100",
				    .sources = "clock 997 Hz" } });
}

static void put_all(void)
{
	static const struct claim claims[] = {
		{ 0x1010, DICT, 8, VERDICT_BACKWARD, "struct dict", "table", 0.9 },
		{ 0x1020, DICT, 24, VERDICT_LOCAL, "struct dict", "size", 0.8 },
		{ 0x1110, CLIENT, 64, VERDICT_JOIN, "struct client", "argv[]", 0.95 },
		{ 0x1210, 0, 0, VERDICT_STACK, "", "", 0 },
	};
	static const struct claim unknown = { 0x2010, 0, 0, VERDICT_NO_DEBUG, "", "", 0 };
	static const struct fact_frame hot[] = { { MODULE, 0x1010 }, { MODULE, 0x1310 } };
	static const struct fact_frame cool[] = { { MODULE, 0x1310 } };

	put_run(0);
	put_process(SERVER, 100, "server");
	put_process(HELPER, 101, "helper");
	put_module(MODULE, "/opt/shop/server", "file", 0xab);
	put_module(STRIPPED, "/opt/shop/libold.so", "no debug information", 0xcd);
	put_type(DICT, "struct dict", 96);
	put_type(CLIENT, "struct client", 8192);
	put_field(DICT, 8, "table");
	put_field(DICT, 24, "size");
	put_field(CLIENT, 64, "argv[]");
	put_function(MODULE, 0x1000, "dict_find");
	put_function(MODULE, 0x1100, "client_read");
	put_function(MODULE, 0x1200, "spill");
	put_function(MODULE, 0x1300, "main");
	put_function(STRIPPED, 0x2000, "old_call");
	put_access(SERVER, MODULE, 0x1010, 300);
	put_access(SERVER, MODULE, 0x1020, 100);
	put_access(HELPER, MODULE, 0x1110, 300);
	put_access(SERVER, MODULE, 0x1210, 100);
	put_access(SERVER, STRIPPED, 0x2010, 200);
	for (size_t i = 0; i < sizeof(claims) / sizeof(*claims); i++)
		put_answer(MODULE, &claims[i]);
	put_answer(STRIPPED, &unknown);
	put((struct fact){ .kind = FACT_SITE,
			   .site = { .module_id = MODULE,
				     .va = 0x1310,
				     .function_va = 0x1300,
				     .file = "server.c",
				     .line = 99 } });
	put_stack(0xd1, hot, 2, 75);
	put_stack(0xd2, cool, 1, 25);
	put_loss(ABI_ACCESS, LOSS_RING, 20);
	put_loss(ABI_ACCESS, LOSS_NO_MAPPING, 5);
	put_run(START_NS + 10000000000ull);
}

int main(int argc, char **argv)
{
	CLEANUP(db_close) struct db *db = NULL;
	CLEANUP(writer_free) struct writer *writer = NULL;
	struct writer_config config = { .analyser_version = 1 };
	struct err *err = argc == 2 ? db_open(argv[1], DB_WRITE, &db)
				    : err_new(ERR_INVALID, "usage: shop FILE");

	if (!err)
		err = writer_new(db, &config, &writer);
	if (!err) {
		sink = writer_sink(writer);
		put_all();
		err = writer_close(writer);
	}
	if (!err)
		return 0;
	fprintf(stderr, "shop: %s\n", err->text);
	err_free(err);
	return 1;
}
