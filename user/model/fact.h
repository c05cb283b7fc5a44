/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MODEL_FACT_H
#define MODEL_FACT_H

/*
 * Facts are rows. Every stage that learns something puts one into a sink
 * (model/sink.h); the store writes it. Strings and arrays are borrowed for the
 * duration of the put. Times are realtime ns in facts (people read them); the live
 * path converts from CLOCK_MONOTONIC with the run's offset.
 */

#include <stddef.h>
#include <stdint.h>

#include "model/ids.h"
#include "model/verdict.h"

enum fact_kind {
	FACT_RUN,	      /* opens a run, or closes it when @end_ns is set */
	FACT_PROCESS,	      /* seen, or gone when @end_ns is set; an upsert */
	FACT_MODULE,	      /* an upsert */
	FACT_ACCESS,	      /* aggregate of one bucket; adds to an equal row */
	FACT_TICK,	      /* likewise */
	FACT_STACK,	      /* insert once */
	FACT_FUNCTION,	      /* insert once */
	FACT_SITE,	      /* va -> function and line; insert once */
	FACT_TYPE,	      /* insert once */
	FACT_FIELD,	      /* insert once */
	FACT_ANSWER,	      /* replaces the same (module, va, skid) */
	FACT_LOSS,	      /* adds to an equal row */
	FACT_METHOD,	      /* insert once */
	FACT_REQUEST,	      /* aggregate of one bucket; adds to an equal row */
	FACT_SPAN,	      /* insert once */
	FACT_PROBE,	      /* replaces the same (run, probe) */
	FACT_RESOURCE,	      /* an upsert */
	FACT_RESOURCE_BUCKET, /* adds to an equal row */
	FACT_FINDING,	      /* replaces the same (run, finding) */
	FACTS,
};

enum loss_reason {
	LOSS_RING = 1,	 /* the kernel's ring was full */
	LOSS_SIDEBAND,	 /* perf reported lost side-band records */
	LOSS_REORDER,	 /* the reorder window was full: delivered, but out of order */
	LOSS_LATE,	 /* older than what was delivered already */
	LOSS_FORMAT,	 /* did not decode */
	LOSS_NO_PROCESS, /* no such process in the model */
	LOSS_NO_MAPPING, /* no mapping covers the address */
	LOSS_ANONYMOUS,	 /* executable memory with no file: JIT */
	LOSS_NO_MODULE,	 /* the mapped file could not be opened or identified */
	LOSS_LIMIT,	 /* a table of the daemon was full */
	LOSS_UNWIND,	 /* the user stack could not be unwound to its root */
	LOSS_STORE,	 /* the store could not write: disk full or quota */
	LOSS_CRASH,	 /* an earlier run ended without flushing */
	LOSS_NO_BEGIN,	 /* the end of a request whose begin was not seen */
	LOSS_NO_END,	 /* its end was not seen, or it never returned */
	LOSS_CONTEXT,	 /* too many open requests: what follows is unattributed */
	LOSS_UNREAD,	 /* an argument could not be read: the event is there, less it */
	LOSS_REASONS,
};

/* loss_reason_name(), loss_kind_name() - as in SQL: "ring"; kind is an enum abi_kind. */
const char *loss_reason_name(enum loss_reason reason);
const char *loss_kind_name(uint32_t abi_kind);
/* source_name() - of an enum abi_source: "clock", "ibs", "pebs-load", ... */
const char *source_name(uint32_t abi_source);

/* All on one boot of one host; a new one per start of the agent or attach. */
struct fact_run {
	uint64_t run_id;
	uint64_t start_ns, end_ns;
	const char *host, *boot_id, *kernel, *version;
	const char *target;  /* "all", "pid 1234", "service nginx" */
	const char *sources; /* "clock 997 Hz" */
};

struct fact_process {
	uint64_t run_id, process_id, parent_id;
	uint32_t pid, uid;
	uint64_t start_ns, end_ns; /* since boot; 0 while it lives */
	uint64_t exe_module_id;
	uint64_t cgroup_id;
	const char *comm, *exe, *service;
};

struct fact_module {
	uint64_t module_id;
	struct build_id build_id;
	enum module_kind kind;
	const char *path;
	const char *debug; /* "", "file", path of the debug file, or why there is none */
};

struct fact_access {
	uint64_t run_id, bucket_ns; /* begin of a 1 s bucket, realtime */
	uint64_t process_id, module_id, va, method_id;
	uint32_t source; /* enum abi_source; the clock's va is subject to the skid rule */
	uint64_t samples;
	uint64_t period; /* sum: events, or ns of CPU for the clock */
	uint64_t loads, stores;
	uint64_t weight_samples, weight_cycles; /* latency; samples that had one */
	uint64_t l1, l2, l3, dram, remote;	/* level of the hit, where known */
	uint64_t tlb_miss, hitm; /* HITM: the line was modified elsewhere */
};

struct fact_frame {
	uint64_t module_id; /* 0: @va is a runtime address that nothing maps */
	uint64_t va;
};

struct fact_stack {
	uint64_t stack_id;		 /* stack_id_of() */
	const struct fact_frame *frames; /* leaf first, kernel before user */
	size_t count;
	uint32_t kernel_count;
	int complete; /* the walk ended at the root, not for want of bytes or rules */
};

/* stack_id_of() - hash of the frames and of where the user part begins. */
static inline uint64_t stack_id_of(const struct fact_frame *frames, size_t count,
				   uint32_t kernel_count)
{
	return hash_bytes(frames, count * sizeof(*frames), 16 + kernel_count);
}

struct fact_tick {
	uint64_t run_id, bucket_ns, process_id, stack_id, method_id;
	uint64_t samples, cpu_ns;
};

struct fact_function {
	uint64_t module_id, va, bytes;
	const char *name; /* demangled */
	const char *file;
	uint32_t line;
};

struct fact_site {
	uint64_t module_id, va, function_va;
	const char *file;
	uint32_t line;
};

struct fact_type {
	uint64_t type_id; /* hash of name, size and members */
	const char *name; /* "struct robj" */
	uint64_t bytes;
};

struct fact_field {
	uint64_t type_id;
	uint64_t offset, bytes;
	const char *path;
};

struct fact_answer {
	uint64_t module_id, type_id;
	int skid; /* @answer.va is a clock sample's address: insn_va is the access before */
	struct answer answer;
};

struct fact_loss {
	uint64_t run_id, bucket_ns;
	uint32_t kind; /* enum abi_kind of what was lost */
	enum loss_reason reason;
	uint64_t lost, seen;
};

struct fact_method {
	uint64_t method_id;
	const char *framework, *name;
};

/* Of a request, call or batch; numbers as in SQL. */
enum request_kind { REQUEST_SERVED = 1, REQUEST_CLIENT, REQUEST_BATCH };

struct fact_request { /* those that ended in the bucket */
	uint64_t run_id, bucket_ns, process_id, method_id;
	enum request_kind kind;
	uint64_t requests;
	double weight, weight2; /* sums of what each stands for, and of the squares */
	uint64_t duration_ns, max_duration_ns;
	uint64_t cpu_ns, probe_ns; /* probe_ns: cost of our probes in cpu_ns */
	uint64_t unfinished;	   /* that never returned */
};

struct fact_span {
	uint64_t run_id, bucket_ns, span_id, parent_id, process_id, method_id;
	enum request_kind kind;
	uint32_t tid, flags; /* enum abi_hit_flags */
	uint64_t begin_ns, duration_ns, cpu_ns, probe_ns;
	uint64_t off_cpu_ns;	      /* by threads that served it */
	uint64_t in_bytes, out_bytes; /* by sockets */
	uint64_t faults;
	uint32_t labels;   /* enum abi_label */
	int64_t status;	   /* as the application has it */
	double weight;	   /* 1 / the probability that this span was put */
	uint64_t trace_id; /* span_id of its root, as far as that is known here */
};

struct fact_probe {
	uint64_t run_id, probe_id, module_id, va;
	const char *spec, *name, *function;
	const char *state; /* "on", "windows", "cut" */
	uint64_t hits, skipped, unread, dropped, hit_ns;
	double share, duty;
	uint64_t hot_ns; /* when it was cut last; 0 never */
};

struct fact_resource {
	uint64_t resource_id;
	const char *spec, *name, *title, *kind, *unit;
	uint64_t capacity; /* 0 unknown */
};

struct fact_resource_bucket {
	uint64_t run_id, bucket_ns, resource_id;
	uint32_t pid; /* of the application's first process */
	uint64_t wait_ns, hold_ns, waits, acquires, releases, uses, refusals;
	double balance; /* at its end */
	uint64_t holders, on_ns;
};

struct fact_finding {
	uint64_t run_id, finding_id, resource_id;
	uint32_t pid;
	const char *class, *resource, *object;
	double score;
	uint64_t since_ns, until_ns, seen_ns; /* until: 0 it goes on */
	const char *text; /* JSON of assay-finding(5); "" takes it back */
};

struct fact {
	enum fact_kind kind;
	union {
		struct fact_run run;
		struct fact_process process;
		struct fact_module module;
		struct fact_access access;
		struct fact_tick tick;
		struct fact_stack stack;
		struct fact_function function;
		struct fact_site site;
		struct fact_type type;
		struct fact_field field;
		struct fact_answer answer;
		struct fact_loss loss;
		struct fact_method method;
		struct fact_request request;
		struct fact_span span;
		struct fact_probe probe;
		struct fact_resource resource;
		struct fact_resource_bucket resource_bucket;
		struct fact_finding finding;
	};
};

#endif
