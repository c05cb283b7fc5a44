// SPDX-License-Identifier: Apache-2.0
#include "discover/graph.h"

#include <string.h>

#include "bin/names.h"
#include "core/map.h"

#define STEP_EVERY	 4096 /* functions between two reports of progress */
#define FAR		 0xff
#define HIDDEN_MAX_BYTES 65536
#define HIDDEN_ROUNDS	 16 /* of hidden functions that hidden ones call */

/* Functions of the C library and the kernel that put a thread to sleep until something
 * happens elsewhere, or until a time has passed. A lock sleeps only if it is taken: that
 * counts where it is called, and not far from there, else everything would block. */
static const char *const blockers[] = {
	"pthread_cond_wait",
	"pthread_cond_timedwait",
	"pthread_cond_clockwait",
	"pthread_join",
	"pthread_barrier_wait",
	"sem_wait",
	"sem_timedwait",
	"semop",
	"semtimedop",
	"poll",
	"ppoll",
	"select",
	"pselect",
	"epoll_wait",
	"epoll_pwait",
	"nanosleep",
	"clock_nanosleep",
	"usleep",
	"sleep",
	"syscall",
	"msgrcv",
	"sigwait",
	"sigtimedwait",
	"flock",
	"io_getevents",
	"waitpid",
	"wait4",
	"apr_thread_cond_wait",
	"apr_thread_cond_timedwait",
	"apr_pollset_poll",
	"apr_sleep",
	"_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE",
};
static const char *const locks[] = { "pthread_mutex_lock",    "pthread_mutex_timedlock",
				     "pthread_rwlock_rdlock", "pthread_rwlock_wrlock",
				     "apr_thread_mutex_lock", "pthread_spin_lock" };

static const char *const allocators[] = { "malloc",	    "calloc",	  "realloc",
					  "posix_memalign", "mmap",	  "aligned_alloc",
					  "_Znwm",	    "_Znam",	  "strdup",
					  "apr_palloc",	    "apr_pcalloc" };
static const char *const frees[] = { "free",   "munmap", "_ZdlPv", "_ZdlPvm",
				     "_ZdaPv", "close",	 "cfree" };

static bool is_in(const char *const *list, size_t count, const char *name)
{
	size_t length = strcspn(name, "@");

	for (size_t i = 0; i < count; i++)
		if (strlen(list[i]) == length && !memcmp(list[i], name, length))
			return true;
	return false;
}

#define IS_IN(list, name) is_in(list, sizeof(list) / sizeof(*(list)), name)

bool graph_is_free(const char *name)
{
	return IS_IN(frees, name);
}

bool graph_is_alloc(const char *name)
{
	return IS_IN(allocators, name);
}

uint32_t graph_at(const struct graph *graph, uint64_t va)
{
	size_t lo = 0, hi = graph->functions.count;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (graph->functions.data[middle].symbol->va < va)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo < graph->functions.count && graph->functions.data[lo].symbol->va == va
		       ? (uint32_t)lo
		       : GRAPH_NONE;
}

static void add_function(struct graph *graph, struct arena *arena,
			 const struct elf_function *symbol)
{
	char *plain = names_demangle(symbol->name);

	vec_push(&graph->functions,
		 ((struct graph_function){ .symbol = symbol,
					   .name = plain ? arena_strdup(arena, plain)
							 : symbol->name,
					   .next = GRAPH_NONE,
					   .reach = FAR }));
	free(plain);
}

static int by_va(const void *a, const void *b)
{
	const struct graph_function *x = a, *y = b;

	return x->symbol->va < y->symbol->va ? -1 : x->symbol->va > y->symbol->va;
}

/* Where code is called that bears no name: a hidden function of a stripped file. */
struct hidden {
	const struct discover_files *files;
	struct insn_decoder *decoder;
	struct arena *arena;
	struct map *seen; /* va */
	VEC(uint64_t) vas;
};

static void note_target(struct hidden *hidden, const struct graph *graph, uint64_t va)
{
	bool is_new;

	if (graph_at(graph, va) != GRAPH_NONE || !elf_is_code(hidden->files->main, va))
		return;
	map_put(hidden->seen, &va, &is_new);
	if (is_new)
		vec_push(&hidden->vas, va);
}

typedef void (*target_fn)(void *ctx, uint64_t target, bool is_call);

/* Direct calls of @symbol, and jumps that leave it. */
static void each_target(const struct elf_file *file, struct insn_decoder *decoder,
			const struct elf_function *symbol, target_fn each, void *ctx)
{
	uint64_t va = symbol->va;
	size_t room;
	const uint8_t *code = elf_bytes_at(file, va, &room);

	if (!code || symbol->is_plt)
		return;
	room = room < symbol->bytes ? room : symbol->bytes;
	while (room) {
		struct insn insn;
		size_t used = insn_decode(decoder, code, room, va, &insn);
		bool leaves = (insn.op == INSN_JUMP || insn.op == INSN_BRANCH) &&
			      insn.target - symbol->va >= symbol->bytes;

		if (insn.target && (leaves || insn.op == INSN_CALL))
			each(ctx, insn.target, insn.op == INSN_CALL);
		code += used;
		va += used;
		room -= used;
	}
}

struct noting {
	struct hidden *hidden;
	const struct graph *graph;
};

/* Jumps out of a function may lead into its cold part, which is none. */
static void on_hidden(void *ctx, uint64_t target, bool is_call)
{
	struct noting *noting = ctx;

	if (is_call)
		note_target(noting->hidden, noting->graph, target);
}

/* Functions that end where the next one begins. */
static void add_hidden(struct hidden *hidden, struct graph *graph)
{
	size_t known = graph->functions.count;

	vec_each(&hidden->vas, va) {
		struct elf_function *symbol = arena_alloc(hidden->arena, sizeof(*symbol));

		*symbol = (struct elf_function){ .va = *va, .name = "" };
		if (graph->functions.count < DISCOVER_MAX_FUNCTIONS)
			add_function(graph, hidden->arena, symbol);
	}
	vec_clear(&hidden->vas);
	qsort(graph->functions.data, graph->functions.count,
	      sizeof(*graph->functions.data), by_va);
	for (size_t i = 0; known < graph->functions.count && i < graph->functions.count;
	     i++) {
		const struct elf_function *at = graph->functions.data[i].symbol;
		uint64_t end = i + 1 < graph->functions.count
				       ? graph->functions.data[i + 1].symbol->va
				       : at->va + HIDDEN_MAX_BYTES;

		if (!*at->name)
			((struct elf_function *)at)->bytes =
				end - at->va < HIDDEN_MAX_BYTES ? end - at->va
								: HIDDEN_MAX_BYTES;
	}
}

static void find_hidden(struct hidden *hidden, struct graph *graph)
{
	struct noting noting = { hidden, graph };

	for (unsigned round = 0; round < HIDDEN_ROUNDS; round++) {
		vec_each(&graph->functions, function) {
			if (function->is_read)
				continue;
			function->is_read = true;
			each_target(hidden->files->main, hidden->decoder,
				    function->symbol, on_hidden, &noting);
		}
		if (!hidden->vas.count)
			return;
		add_hidden(hidden, graph);
	}
}

static void add_functions(const struct discover_files *files,
			  const struct elf_functions *symbols,
			  struct insn_decoder *decoder, struct arena *arena,
			  struct graph *graph)
{
	struct hidden hidden = { .files = files,
				 .decoder = decoder,
				 .arena = arena,
				 .seen = map_new(sizeof(uint64_t), 1) };
	size_t count;
	const struct elf_function *all = elf_functions_all(symbols, &count);

	for (size_t i = 0; i < count && i < DISCOVER_MAX_FUNCTIONS; i++)
		add_function(graph, arena, &all[i]);
	find_hidden(&hidden, graph);
	map_free(hidden.seen);
	vec_fini(&hidden.vas);
}

struct calling {
	struct graph *graph;
	struct graph_function *from;
};

static void on_call(void *ctx, uint64_t target, bool is_call)
{
	struct calling *calling = ctx;
	struct graph *graph = calling->graph;
	struct graph_function *from = calling->from;
	uint32_t to = graph_at(graph, target);

	(void)is_call;
	if (to == GRAPH_NONE || graph->functions.data + to == from ||
	    graph->calls.count >= GRAPH_MAX_CALLS)
		return;
	for (size_t i = from->first_call; i < graph->calls.count; i++)
		if (graph->calls.data[i] == to)
			return;
	vec_push(&graph->calls, to);
	from->call_count++;
}

static void turn_round(struct graph *graph)
{
	uint32_t at = 0;

	vec_each(&graph->calls, to)
		graph->functions.data[*to].caller_count++;
	vec_each(&graph->functions, function) {
		function->first_caller = at;
		at += function->caller_count;
		function->caller_count = 0;
	}
	vec_reserve(&graph->callers, at + 1);
	graph->callers.count = at;
	for (uint32_t i = 0; i < graph->functions.count; i++) {
		const struct graph_function *from = &graph->functions.data[i];

		for (uint32_t j = 0; j < from->call_count; j++) {
			struct graph_function *to =
				&graph->functions
					 .data[graph->calls.data[from->first_call + j]];

			graph->callers.data[to->first_caller + to->caller_count++] = i;
		}
	}
}

/* Breadth first, backwards from what blocks. */
static void find_reach(struct graph *graph)
{
	VEC(uint32_t) queue = { 0 };

	for (uint32_t i = 0; i < graph->functions.count; i++) {
		struct graph_function *function = &graph->functions.data[i];

		bool blocks = IS_IN(blockers, function->symbol->name);

		if (blocks || IS_IN(locks, function->symbol->name))
			function->reach = 0;
		if (blocks)
			vec_push(&queue, i);
	}
	for (size_t at = 0; at < queue.count; at++) {
		uint32_t to = queue.data[at];
		uint8_t reach = graph->functions.data[to].reach;
		uint32_t first = graph->functions.data[to].first_caller,
			 count = graph->functions.data[to].caller_count;

		for (uint32_t i = 0; reach < GRAPH_MAX_REACH && i < count; i++) {
			uint32_t from = graph->callers.data[first + i];
			struct graph_function *caller = &graph->functions.data[from];

			if (caller->reach != FAR)
				continue;
			caller->reach = reach + 1;
			caller->next = to;
			vec_push(&queue, from);
		}
	}
	vec_fini(&queue);
}

struct err *graph_build(const struct discover_files *files,
			const struct elf_functions *symbols, struct insn_decoder *decoder,
			struct arena *arena, const struct discover_ops *ops, void *ctx,
			struct graph *graph)
{
	add_functions(files, symbols, decoder, arena, graph);
	for (size_t i = 0; i < graph->functions.count; i++) {
		struct calling calling = { graph, &graph->functions.data[i] };

		calling.from->first_call = (uint32_t)graph->calls.count;
		each_target(files->main, decoder, calling.from->symbol, on_call,
			    &calling);
		if (ops->progress && i % STEP_EVERY == 0)
			TRY(ops->progress(ctx, i, graph->functions.count * 2));
	}
	turn_round(graph);
	find_reach(graph);
	return NULL;
}

void graph_fini(struct graph *graph)
{
	vec_fini(&graph->functions);
	vec_fini(&graph->calls);
	vec_fini(&graph->callers);
}
