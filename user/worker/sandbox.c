// SPDX-License-Identifier: Apache-2.0
/*
 * The allow list is what reading a file with pread() into memory and talking over one
 * socket takes, each call narrowed by its arguments where seccomp can see them: no
 * executable memory, no limit but the CPU's, no write but to standard error. Sanitized
 * builds need their own calls and far more address space, so they get a wider list and
 * no RLIMIT_AS; the test of the sandbox looks at open() and socket() in both.
 */
#include "worker/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/cleanup.h"

#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

#define IOPRIO_IDLE (3 << 13) /* class 3 of linux/ioprio.h */

static void filter_free(scmp_filter_ctx filter)
{
	if (filter)
		seccomp_release(filter);
}
CLEANUP_DEFINE(filter_free, scmp_filter_ctx)

static struct err *set_limit(int resource, uint64_t value, const char *name)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return err_errno(errno, "getrlimit %s", name);
	/* Never above what the parent left us. */
	if (limit.rlim_max != RLIM_INFINITY && value > limit.rlim_max)
		value = limit.rlim_max;
	limit.rlim_cur = limit.rlim_max = value;
	return setrlimit(resource, &limit) ? err_errno(errno, "setrlimit %s", name)
					   : NULL;
}

static struct err *set_limits(enum job_class class, uint64_t memory_bytes)
{
	bool fetches = class == JOB_FETCH;

	if (!IS_SANITIZED)
		TRY(set_limit(RLIMIT_AS, memory_bytes, "AS"));
	TRY(set_limit(RLIMIT_CORE, 0, "CORE"));
	TRY(set_limit(RLIMIT_FSIZE, fetches ? SANDBOX_FETCH_FILE : 0, "FSIZE"));
	TRY(set_limit(RLIMIT_NOFILE, SANDBOX_MAX_FDS, "NOFILE"));
	/* The resolver of the fetch class runs in threads. */
	return fetches ? NULL : set_limit(RLIMIT_NPROC, 0, "NPROC");
}

static struct err *drop_rights(void)
{
	struct __user_cap_header_struct header = { .version =
							   _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return err_errno(errno, "no_new_privs");
	/* Root without CAP_SETUID (a container) stays root by name, without its rights. */
	if (geteuid() == 0) {
		int failed = setgroups(0, NULL);

		failed |= setresgid(SANDBOX_GID, SANDBOX_GID, SANDBOX_GID);
		failed |= setresuid(SANDBOX_UID, SANDBOX_UID, SANDBOX_UID);
		if (failed && errno != EPERM && errno != EINVAL)
			return err_errno(errno, "change user");
	}
	if (syscall(SYS_capset, &header, none))
		return err_errno(errno, "drop capabilities");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return err_errno(errno, "not dumpable");
	return NULL;
}

/* Best effort: a container may forbid it, and then the job is merely less polite. */
static void be_idle(void)
{
	struct sched_param param = { 0 };

	setpriority(PRIO_PROCESS, 0, 19);
	sched_setscheduler(0, SCHED_IDLE, &param);
	syscall(SYS_ioprio_set, 1, 0, IOPRIO_IDLE);
}

static int allow_narrowed(scmp_filter_ctx filter)
{
	int failed = 0;

	failed |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				   SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	failed |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(write), 1,
				   SCMP_A0(SCMP_CMP_EQ, STDERR_FILENO, 0));
	failed |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2,
				   SCMP_A0(SCMP_CMP_EQ, 0, 0),
				   SCMP_A1(SCMP_CMP_EQ, RLIMIT_CPU, 0));
	/* fstat() of some libcs; a path, if given, would only be looked at. */
	failed |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1,
				   SCMP_A3(SCMP_CMP_EQ, AT_EMPTY_PATH, 0));
	return failed;
}

static struct err *allow_few(void)
{
	static const int calls[] = {
		SCMP_SYS(recvmsg),	SCMP_SYS(sendmsg),
		SCMP_SYS(pread64),	SCMP_SYS(fstat),
		SCMP_SYS(close),	SCMP_SYS(munmap),
		SCMP_SYS(mremap),	SCMP_SYS(brk),
		SCMP_SYS(madvise),	SCMP_SYS(clock_gettime),
		SCMP_SYS(getrusage),	SCMP_SYS(exit_group),
		SCMP_SYS(rt_sigreturn), SCMP_SYS(restart_syscall),
	};
	static const int sanitizer_calls[] = {
		SCMP_SYS(mprotect),	SCMP_SYS(futex),	  SCMP_SYS(sigaltstack),
		SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(gettid),
		SCMP_SYS(getpid),	SCMP_SYS(sched_yield),	  SCMP_SYS(lseek),
	};
	CLEANUP(filter_free) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int failed = 0;

	if (!filter)
		return err_new(ERR_UNSUPPORTED, "seccomp cannot be set up");
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		failed |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
	for (size_t i = 0; IS_SANITIZED && i < sizeof(sanitizer_calls) / sizeof(int); i++)
		failed |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, sanitizer_calls[i], 0);
	failed |= allow_narrowed(filter);
	if (!failed)
		failed = seccomp_load(filter);
	return failed ? err_errno(failed < 0 ? -failed : EINVAL, "seccomp") : NULL;
}

/* libcurl and the resolver use what they like; these they never need. */
static struct err *forbid_some(void)
{
	static const int calls[] = {
		SCMP_SYS(execve),
		SCMP_SYS(execveat),
		SCMP_SYS(ptrace),
		SCMP_SYS(bpf),
		SCMP_SYS(perf_event_open),
		SCMP_SYS(mount),
		SCMP_SYS(umount2),
		SCMP_SYS(pivot_root),
		SCMP_SYS(chroot),
		SCMP_SYS(unshare),
		SCMP_SYS(setns),
		SCMP_SYS(keyctl),
		SCMP_SYS(add_key),
		SCMP_SYS(request_key),
		SCMP_SYS(userfaultfd),
		SCMP_SYS(io_uring_setup),
		SCMP_SYS(process_vm_readv),
		SCMP_SYS(process_vm_writev),
		SCMP_SYS(kexec_load),
		SCMP_SYS(init_module),
		SCMP_SYS(finit_module),
		SCMP_SYS(open_by_handle_at),
		SCMP_SYS(personality),
		SCMP_SYS(pidfd_getfd),
	};
	CLEANUP(filter_free) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int failed = 0;

	if (!filter)
		return err_new(ERR_UNSUPPORTED, "seccomp cannot be set up");
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		failed |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), calls[i], 0);
	if (!failed)
		failed = seccomp_load(filter);
	return failed ? err_errno(failed < 0 ? -failed : EINVAL, "seccomp") : NULL;
}

struct err *sandbox_enter(enum job_class class, uint64_t memory_bytes)
{
	if (class == JOB_ANALYZE)
		be_idle();
	TRY(set_limits(class, memory_bytes));
	TRY(drop_rights());
	return class == JOB_FETCH ? forbid_some() : allow_few();
}

uint64_t sandbox_cpu_ns(void)
{
	struct timespec used;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used))
		return 0;
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* The limit counts whole seconds of the process's life: round up what is used. */
void sandbox_allow_cpu(uint32_t seconds)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CPU, &limit))
		return;
	limit.rlim_cur = sandbox_cpu_ns() / 1000000000u + 1 + seconds;
	if (limit.rlim_max != RLIM_INFINITY && limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_CPU, &limit);
}
