/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JOB_JOB_H
#define JOB_JOB_H

/*
 * job/ - work on foreign files, asked for from outside the sandbox. Here is the client
 * and the wire format; what does the work is worker/, a program of its own
 * (assay-worker) under seccomp, rlimits and no privileges. A worker that dies or hangs
 * costs the jobs it held, nothing else.
 *
 * Files travel as read-only descriptors. The worker reads them with pread() into
 * private memory, never by mmap: a file that its owner truncates is then a short read,
 * not a SIGBUS.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "job/candidates.h"
#include "job/resolve.h"
#include "model/fact.h"

#define JOB_MAX_FRAME	 (8 * 1024 * 1024) /* bytes of one message */
#define JOB_MAX_PENDING	 256		   /* jobs in flight per client */
#define JOB_MAX_SEGMENTS 16
#define JOB_MAX_FRAMES	 256 /* of one unwound stack */
#define JOB_MAX_SITES	 65536
#define JOB_MAX_LISTING	 16384 /* instructions */

enum job_class {
	JOB_RESOLVE, /* identify, symbols, unwind: normal priority, small */
	JOB_ANALYZE, /* types: idle priority, large */
	JOB_FETCH,   /* debuginfod: has the network, parses nothing */
};

struct job_segment {
	uint64_t off, va, file_bytes; /* of one executable PT_LOAD */
};

/* What a file is. Strings are borrowed during the callback. */
struct job_identity {
	struct build_id build_id;
	bool is_executable, has_dwarf, has_symtab, has_cfi;
	const char *soname;
	const char *debuglink; /* file name of .gnu_debuglink, "" none */
	uint32_t debuglink_crc;
	const char *altlink; /* path of .gnu_debugaltlink (dwz), "" none */
	struct build_id altlink_id;
	struct job_segment segments[JOB_MAX_SEGMENTS];
	size_t segment_count;
};

struct job_symbol {
	uint64_t va;			      /* as asked */
	uint64_t function_va, function_bytes; /* 0: unknown */
	const char *function;		      /* demangled, "" unknown */
	const char *function_file;	      /* "" without debug information, as @file */
	const char *file; /* of @va: an inlined function's may be another */
	uint32_t function_line, line;
};

/* One mapping; the array is sorted by @start. */
struct job_range {
	uint64_t start, end, bias, module_id; /* va = ip - bias */
};

/* One stack: registers (DWARF order + rip) and the bytes from rsp upwards. */
struct job_stack {
	uint64_t regs[17];
	const void *bytes;
	size_t byte_count;
	bool cut; /* the stack was larger than @bytes */
};

struct job_unwound {
	const struct fact_frame *frames; /* leaf first */
	size_t count;
	bool complete;
};

struct job_site {
	uint64_t va;
	bool skid; /* @va is where a clock interrupt landed */
};

/* One instruction of a listing. Strings are borrowed during the callback. */
struct job_insn {
	uint64_t va;
	uint8_t bytes;
	bool is_memory;	  /* has an explicit memory operand: it has an answer */
	const char *text; /* "mov rax, qword ptr [rdi + 8]" */
	const char *file; /* "" unknown */
	uint32_t line;
};

/* Answers come with the layout of the types they name, each layout once per reply. */
struct job_answers {
	const struct fact_type *types;
	size_t type_count;
	const struct fact_field *fields;
	size_t field_count;
	const struct fact_answer *answers;
	size_t answer_count;
};

struct job_stats { /* of a whole analysis */
	uint64_t functions, instructions, memory_instructions, claims;
	uint64_t by_verdict[VERDICTS];
	uint64_t by_verdict_stack[VERDICTS]; /* those relative to the stack frame */
	uint64_t cpu_ns, peak_bytes;
	uint64_t units, kept_units; /* answered; of them from an earlier run */
};

enum job_kind {
	JOB_IDENTIFY = 1,
	JOB_SYMBOLS,
	JOB_UNWIND,
	JOB_SITES,  /* answers for some addresses */
	JOB_MODULE, /* answers for the whole .text; several replies, the last has !more */
	JOB_DEBUG_FILE,
	JOB_LISTING,  /* a stretch of code as text with lines */
	JOB_PROBES,   /* places of a spec file's probes */
	JOB_RECORDS,  /* a file of perf record; several replies */
	JOB_DISCOVER, /* resources of a module; several replies */
};

/**
 * struct job_records - a part of a file of perf record. Strings are borrowed during the
 * callback, "" unknown.
 * @data: records as in bpf/abi.h in time order, each behind a u32 with its length.
 * @done, @total: bytes of the file, for progress.
 * The rest is valid from the first reply that has data, the counts and @damage (why it
 * ends early; "": it does not) when !more.
 */
struct job_records {
	const void *data;
	size_t bytes;
	uint64_t done, total;
	uint64_t samples, foreign, lost, late;
	uint64_t start_ns;
	int64_t realtime_offset_ns;
	const char *host, *kernel, *arch, *version, *events, *damage;
};

struct job_reply {
	enum job_kind kind;
	bool more; /* further replies follow for this job */
	union {
		struct job_identity identity;
		struct {
			const struct job_symbol *data;
			size_t count;
		} symbols;
		struct job_unwound unwound;
		struct {
			struct job_answers answers;
			uint32_t done, total;	/* functions, for progress */
			struct job_stats stats; /* valid when !more */
			const void *kept;	/* for kept_take() (job/kept.h) */
			size_t kept_bytes;
		} sites;
		struct {
			const struct job_insn *data;
			size_t count; /* up to JOB_MAX_LISTING; the rest is left out */
		} listing;
		struct resolve_reply probes;
		struct job_records records;
		struct job_candidates candidates;
		int fd; /* DEBUG_FILE: the callback takes it */
	};
};

struct job_client;

/**
 * job_done_fn - the end of a job (or one of its replies, when reply->more).
 * @err: NULL and a @reply, or an error that the callback frees and no reply.
 * ERR_CLOSED: the worker died or was killed; ERR_LIMIT: over its CPU or memory limit.
 */
typedef void (*job_done_fn)(void *ctx, struct err *err, const struct job_reply *reply);

struct job_options {
	const char *worker_path; /* NULL: beside this program, else /usr/libexec/assay */
	uint64_t memory_bytes;	 /* RLIMIT_AS; 0: the class's default */
	uint32_t cpu_seconds;	 /* per job; 0: the class's default */
	uint32_t wall_seconds;	 /* of silence during a job; 0: the class's default */
};

/* The defaults: { memory, CPU of one job, seconds of silence until it counts as hung }.
 * Idle priority may starve for long on a busy machine without being hung. */
struct job_limits {
	uint64_t memory_bytes;
	uint32_t cpu_seconds, wall_seconds;
};
struct job_limits job_limits(enum job_class class);
const char *job_class_name(enum job_class class); /* as --class of assay-worker */

/* job_spawn() - fork, exec assay-worker, which enters its sandbox before it reads. */
struct err *job_spawn(enum job_class class, const struct job_options *options,
		      struct job_client **ret_client);
/**
 * job_spawn_fd() - the spawning half alone, for a broker: the socket goes to whoever
 * calls job_adopt() on it. The child gets an empty signal mask and default handlers.
 * @ret_pid: to be reaped by the caller; may be NULL.
 */
struct err *job_spawn_fd(enum job_class class, const struct job_options *options,
			 int *ret_fd, pid_t *ret_pid);
/* job_spawn_fd() - only the process: its socket for job_adopt(), and its pid (or NULL). */
struct err *job_spawn_fd(enum job_class class, const struct job_options *options,
			 int *ret_fd, pid_t *ret_pid);
/* job_adopt() - talk to a worker that somebody else spawned; takes @fd. */
struct job_client *job_adopt(enum job_class class, int fd);
void job_free(struct job_client *client); /* kills the worker; pending jobs fail first */
CLEANUP_DEFINE(job_free, struct job_client *)

int job_fd(const struct job_client *client);	       /* for EPOLLIN; -1 once dead */
bool job_wants_write(const struct job_client *client); /* also poll for EPOLLOUT */
bool job_alive(const struct job_client *client);
size_t job_pending(const struct job_client *client);

pid_t job_pid(const struct job_client *client); /* 0: adopted or dead */

/*
 * job_pump() - read and write what is ready, call callbacks. A dead worker is no error.
 * Call it at least once per second while jobs are pending: it also notices hung workers,
 * and kills them (an adopted one is hung up on). Callbacks may start jobs, but not call
 * job_free(), job_pump() or job_wait().
 */
void job_pump(struct job_client *client);
/* job_wait() - pump until no job is pending or @timeout_ms passed (ERR_LIMIT); -1: no
 * timeout of its own. */
struct err *job_wait(struct job_client *client, int timeout_ms);

/*
 * Jobs, done in order. @fd arguments are duplicated, the caller keeps his. Each returns
 * ERR_LIMIT when JOB_MAX_PENDING is reached and ERR_CLOSED when the worker is dead; the
 * callback is then not called. SITES may, like MODULE, come in several replies.
 */
struct err *job_identify(struct job_client *client, int fd, job_done_fn done, void *ctx);

/**
 * job_open() - make a module known to the worker under @module_id; no reply.
 * @debug_fd: its separate debug file, @alt_fd: that one's dwz file; -1 for none.
 * For the kernel @kallsyms_fd gives the symbols and @slide (runtime - link address);
 * -1 and 0 otherwise. The worker may forget the least recently used: jobs on a module
 * it does not have fail with ERR_NOT_FOUND, then open it again.
 */
struct job_open {
	uint64_t module_id;
	int main_fd, debug_fd, alt_fd, kallsyms_fd;
	uint64_t slide;
	bool keeps; /* use and give what can be kept of units; not with all of the above */
	int pack_fd; /* if so: kept of earlier runs, -1 none */
};
struct err *job_open(struct job_client *client, const struct job_open *open);

struct err *job_symbols(struct job_client *client, uint64_t module_id,
			const uint64_t *vas, size_t count, job_done_fn done, void *ctx);
struct err *job_unwind(struct job_client *client, const struct job_range *ranges,
		       size_t range_count, const struct job_stack *stack,
		       job_done_fn done, void *ctx);
struct err *job_sites(struct job_client *client, uint64_t module_id,
		      const struct job_site *sites, size_t count, job_done_fn done,
		      void *ctx);
struct err *job_module(struct job_client *client, uint64_t module_id, job_done_fn done,
		       void *ctx);
/**
 * job_module_part() - the share @index of @count of the same, for several workers at once.
 * All shares together give each answer once; the stats are those of the share, only
 * functions and the progress figures count those of the share too.
 */
struct err *job_module_part(struct job_client *client, uint64_t module_id, uint32_t index,
			    uint32_t count, job_done_fn done, void *ctx);
/* job_listing() - disassemble [@va, @va + @bytes). */
struct err *job_listing(struct job_client *client, uint64_t module_id, uint64_t va,
			uint64_t bytes, job_done_fn done, void *ctx);
/* job_probes() - @request->module_id must be open; see job/resolve.h. */
struct err *job_probes(struct job_client *client, const struct resolve_request *request,
		       job_done_fn done, void *ctx);
/* job_records() - of a regular file @fd; see perfdata/perfdata.h. */
struct err *job_records(struct job_client *client, int fd, job_done_fn done, void *ctx);
/* job_discover() - the most certain first; see discover/discover.h. */
struct err *job_discover(struct job_client *client, uint64_t module_id, job_done_fn done,
			 void *ctx);
/* job_debug_file() - ask the debuginfod servers of @urls; JOB_FETCH only. */
struct err *job_debug_file(struct job_client *client, const char *urls,
			   const struct build_id *id, job_done_fn done, void *ctx);

#endif
