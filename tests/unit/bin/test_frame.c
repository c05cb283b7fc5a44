// SPDX-License-Identifier: Apache-2.0
/*
 * Truth comes from libgcc's unwinder (backtrace()) inside the same function, from the
 * names that a program's author chose, and for the CFA from the processor: the address
 * of the return address as the function itself sees it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <execinfo.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "process.h"

#define STACK_BYTES (64 * 1024)
#define DEPTH	    12

static struct capture {
	struct frame_stack stack;
	unsigned char bytes[STACK_BYTES];
	void *truth[FRAME_MAX_DEPTH];
	int truth_count;
} captured;

static void __attribute__((noinline)) capture_here(void)
{
	ucontext_t context;

	captured.truth_count = backtrace(captured.truth, FRAME_MAX_DEPTH);
	getcontext(&context);
	registers_of(&context, captured.stack.regs);
	uint64_t rsp = captured.stack.regs[FRAME_RSP];

	captured.stack.byte_count = stack_bytes_from(rsp, STACK_BYTES);
	copy_stack(rsp, captured.bytes, captured.stack.byte_count);
	captured.stack.bytes = captured.bytes;
}

static void on_signal(int signal)
{
	(void)signal;
	capture_here();
}

static int __attribute__((noinline)) descend(int depth, volatile int *sink)
{
	volatile char room[256];

	room[0] = (char)depth;
	if (depth == 0)
		raise(SIGUSR1);
	else
		*sink += descend(depth - 1, sink);
	return *sink + room[0];
}

static size_t unwind_self(struct frame_at *frames, bool *ret_complete,
			  struct process *process)
{
	process_open(getpid(), process);
	return frame_unwind(process->ranges.data, process->ranges.count, &captured.stack,
			    frames, ret_complete);
}

static uint64_t runtime_ip(const struct process *process, const struct frame_at *at)
{
	for (size_t i = 0; i < process->ranges.count; i++) {
		const struct frame_range *range = &process->ranges.data[i];
		uint64_t ip = at->va + range->bias;

		if (range->id == at->id && ip >= range->start && ip < range->end)
			return ip;
	}
	return at->va;
}

static void compare_with_libgcc(void)
{
	struct frame_at frames[FRAME_MAX_DEPTH];
	struct process process;
	bool complete;
	size_t count = unwind_self(frames, &complete, &process);

	assert_true(complete);
	/* From the root: a sanitizer puts a backtrace() of its own in between, so that the
	 * leaves differ. */
	size_t truth_count = (size_t)captured.truth_count;

	assert_in_range(truth_count, count, count + 1);
	for (size_t i = 1; i < count; i++) {
		uint64_t truth = (uint64_t)captured.truth[truth_count - i];
		uint64_t ip = runtime_ip(&process, &frames[count - i]);

		/* The call's own address, or exactly the interrupted one. */
		if (ip != truth - 1 && ip != truth)
			fail_msg("frame %zu from the root: %" PRIx64
				 ", libgcc says %" PRIx64,
				 i, ip, truth);
	}
	process_close(&process);
}

static void a_stack_through_a_signal_handler_is_that_of_libgcc(void **state)
{
	volatile int sink = 0;

	(void)state;
	signal(SIGUSR1, on_signal);
	descend(DEPTH, &sink);
	assert_true(captured.truth_count > DEPTH + 5);
	compare_with_libgcc();
}

static void *thread_main(void *arg)
{
	capture_here();
	return arg;
}

static void a_thread_ends_where_the_kernel_started_it(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, thread_main, NULL), 0);
	pthread_join(thread, NULL);
	compare_with_libgcc();
}

static void a_stack_copy_that_is_too_short_is_not_complete(void **state)
{
	struct frame_at frames[FRAME_MAX_DEPTH];
	volatile int sink = 0;
	struct process process;
	bool complete;

	(void)state;
	signal(SIGUSR1, on_signal);
	descend(DEPTH, &sink);
	process_open(getpid(), &process);
	size_t whole = frame_unwind(process.ranges.data, process.ranges.count,
				    &captured.stack, frames, &complete);

	assert_true(complete);
	for (size_t bytes = captured.stack.byte_count; bytes > 0; bytes /= 2) {
		captured.stack.byte_count = bytes / 2;
		size_t count = frame_unwind(process.ranges.data, process.ranges.count,
					    &captured.stack, frames, &complete);

		assert_true(count >= 1 && count <= whole);
		if (count < whole)
			assert_false(complete);
	}
	process_close(&process);
}

static void random_stacks_end(void **state)
{
	struct frame_at frames[FRAME_MAX_DEPTH];
	struct process process;
	uint64_t seed = 88172645463325252ull;

	(void)state;
	process_open(getpid(), &process);
	for (int round = 0; round < 300; round++) {
		for (size_t i = 0; i < STACK_BYTES; i += 8) {
			seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
			/* Half of it return addresses, so that the walk gets far. */
			const struct frame_range *range =
				&process.ranges.data[seed % process.ranges.count];
			uint64_t value = seed & 1 ? seed
						  : range->start + seed % (range->end -
									   range->start);

			memcpy(captured.bytes + i, &value, 8);
		}
		bool complete;

		captured.stack.byte_count = STACK_BYTES;
		memcpy(&captured.stack.regs[FRAME_RIP],
		       captured.bytes + 8 * (round % 100), 8);
		size_t count = frame_unwind(process.ranges.data, process.ranges.count,
					    &captured.stack, frames, &complete);

		assert_true(count <= FRAME_MAX_DEPTH);
	}
	process_close(&process);
}

/* The CFA is the address above the return address. */
static void __attribute__((noinline)) cfa_of_here(uint64_t *ret_cfa, ucontext_t *context)
{
	*ret_cfa = (uint64_t)__builtin_dwarf_cfa();
	getcontext(context);
}

static void the_cfa_is_where_the_compiler_says(void **state)
{
	struct process process;
	ucontext_t context;
	uint64_t cfa, regs[FRAME_REGS];
	unsigned reg;
	int64_t off;

	(void)state;
	cfa_of_here(&cfa, &context);
	registers_of(&context, regs);
	process_open(getpid(), &process);
	uint64_t ip = regs[FRAME_RIP];

	for (size_t i = 0; i < process.ranges.count; i++) {
		const struct frame_range *range = &process.ranges.data[i];

		if (ip < range->start || ip >= range->end)
			continue;
		assert_true(frame_cfa_at(range->table, ip - range->bias, &reg, &off));
		assert_int_equal(regs[reg] + (uint64_t)off, cfa);
		process_close(&process);
		return;
	}
	fail_msg("this function is mapped nowhere");
}

/* GNU ld's PLT: 8 bytes of return address, 16 once the entry has pushed its index. */
static void a_plt_entry_has_one_or_two_words_below_its_cfa(void **state)
{
	CLEANUP(close) int fd = open("/usr/bin/redis-server", O_RDONLY);
	CLEANUP(elf_close) struct elf_file *file = NULL;
	CLEANUP(frame_close) struct frame_table *table = NULL;
	unsigned reg;
	int64_t off;

	(void)state;
	if (fd < 0) {
		print_message("skipped: needs /usr/bin/redis-server\n");
		skip();
	}
	assert_null(elf_open(fd, &file));
	assert_null(frame_open(file, NULL, &table));
	const struct elf_section *plt = elf_section(file, ".plt");

	assert_non_null(plt);
	for (uint64_t va = plt->va + 16; va < plt->va + 160; va++) {
		assert_true(frame_cfa_at(table, va, &reg, &off));
		assert_int_equal(reg, FRAME_RSP);
		/* jmp *slot is 6 bytes, push 5; after the push there are two words. */
		assert_int_equal(off, va % 16 >= 11 ? 16 : 8);
	}
}

static void registers_of_pid(pid_t pid, uint64_t *regs)
{
	struct user_regs_struct r;

	assert_int_equal(ptrace(PTRACE_GETREGS, pid, NULL, &r), 0);
	const uint64_t values[FRAME_REGS] = { r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi,
					      r.rbp, r.rsp, r.r8,  r.r9,  r.r10, r.r11,
					      r.r12, r.r13, r.r14, r.r15, r.rip };

	memcpy(regs, values, sizeof(values));
}

static bool capture_pid(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) ||
	    ptrace(PTRACE_INTERRUPT, pid, NULL, NULL))
		return false;
	waitpid(pid, &status, __WALL);
	registers_of_pid(pid, captured.stack.regs);
	size_t got = 0;

	/* The stack ends somewhere above; page by page until it does. */
	while (got < STACK_BYTES) {
		uint64_t at = captured.stack.regs[FRAME_RSP] + got;
		size_t bytes = 4096 - at % 4096;
		struct iovec local = { captured.bytes + got, bytes };
		struct iovec remote = { (void *)at, bytes };

		if (got + bytes > STACK_BYTES ||
		    process_vm_readv(pid, &local, 1, &remote, 1, 0) != (ssize_t)bytes)
			break;
		got += bytes;
	}
	captured.stack.bytes = captured.bytes;
	captured.stack.byte_count = got;
	return true;
}

static pid_t start_redis(const char *socket_path)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	int null_fd = open("/dev/null", O_RDWR);

	dup2(null_fd, 1);
	execl("/usr/bin/redis-server", "redis-server", "--port", "0", "--save", "",
	      "--unixsocket", socket_path, NULL);
	_exit(127);
}

/* Debian builds it without frame pointers; it exports main, so its name is known. */
static void main_is_at_the_root_of_redis_server(void **state)
{
	struct frame_at frames[FRAME_MAX_DEPTH];
	struct process process;
	bool complete = false, has_main = false;

	(void)state;
	if (access("/usr/bin/redis-server", X_OK)) {
		print_message("skipped: needs /usr/bin/redis-server\n");
		skip();
	}
	char socket_path[64];

	snprintf(socket_path, sizeof(socket_path), "/tmp/assay-test-%d.sock", getpid());
	pid_t pid = start_redis(socket_path);
	size_t count = 0;

	/* Early on it is still in the loader; the event loop is where it stays. */
	for (int attempt = 0; attempt < 100 && !has_main; attempt++) {
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
		if (!capture_pid(pid))
			break;
		process_open(pid, &process);
		count = frame_unwind(process.ranges.data, process.ranges.count,
				     &captured.stack, frames, &complete);
		for (size_t i = 0; i < count; i++)
			has_main |=
				strcmp(process_name(&process, &frames[i]), "main") == 0;
		for (size_t i = 0; getenv("V") && i < count; i++)
			print_message("  %" PRIx64 ":%" PRIx64 " %s\n", frames[i].id,
				      frames[i].va, process_name(&process, &frames[i]));
		if (has_main) {
			assert_true(complete);
			assert_string_equal(process_name(&process, &frames[count - 1]),
					    "_start");
		}
		process_close(&process);
		ptrace(PTRACE_DETACH, pid, NULL, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(socket_path);
	assert_true(has_main);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_through_a_signal_handler_is_that_of_libgcc),
		cmocka_unit_test(a_thread_ends_where_the_kernel_started_it),
		cmocka_unit_test(a_stack_copy_that_is_too_short_is_not_complete),
		cmocka_unit_test(random_stacks_end),
		cmocka_unit_test(the_cfa_is_where_the_compiler_says),
		cmocka_unit_test(a_plt_entry_has_one_or_two_words_below_its_cfa),
		cmocka_unit_test(main_is_at_the_root_of_redis_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
