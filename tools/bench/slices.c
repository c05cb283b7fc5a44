// SPDX-License-Identifier: Apache-2.0
/*
 * What does sampling cost a server? A machine whose speed drifts by a quarter cannot be
 * asked with a few pairs of long runs, so time is cut into slices shorter than the drift:
 *
 *	slices compare PORT AGENT-PID SERVER-PID [SLICE-MS CAP-S]
 *	slices interrupt
 *	slices trap
 *
 * A block is four slices in the order 1 2 2 1, which cancels a linear drift, and gives one
 * number: the log of throughput in the 2s over the 1s. In a test block the agent samples
 * in the 2s and is paused (SIGUSR1, SIGUSR2) in the 1s, or the other way round at random;
 * in a control block (A/A) it is paused throughout. Blocks alternate, so both kinds see the
 * same machine. It ends when the control's 95% interval of the rate per second lies
 * within +-1%, or at the cap.
 * Intervals come from the 10%-trimmed mean with Winsorized variance (Yuen): one stall of
 * the machine would otherwise widen them for minutes.
 *
 * Two rates are taken: per second, and per second of the server's own CPU time. The
 * interrupts and programs of the sampling are charged to whom they interrupt, so the
 * second shows their price too, without the noise of who else wants the CPU.
 *
 * Throughput is what clients have acknowledged of the server's answers: the bytes of all
 * established TCP connections of PORT, from the kernel's sock_diag. It needs nothing of the
 * server, and holds for a load whose connections stay and whose answers are of a kind.
 *
 * `interrupt` measures what one cpu-clock sample costs without any BPF program, `trap` one
 * uprobe on a nop likewise.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_BLOCKS  4096
#define MIN_BLOCKS  40
#define SETTLE_MS   30
#define WANTED	    0.01
#define REPLY_BYTES 65536
#define MAX_FAMILY  512
#define TCP_ALIVE   1 /* TCP_ESTABLISHED */

struct series {
	double log_ratio[MAX_BLOCKS];
	int count;
};

struct interval {
	double middle, low, high; /* ratios */
};

struct target {
	int fd; /* of the kernel's sock_diag */
	uint16_t port;
	pid_t agent, server;
};

enum { PER_SECOND, PER_CPU_SECOND, RATES };

struct rates {
	double of[RATES];
};

static void die(const char *what)
{
	fprintf(stderr, "slices: %s: %s\n", what, errno ? strerror(errno) : "failed");
	exit(1);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void pause_ms(double ms)
{
	struct timespec time = { .tv_sec = (time_t)(ms / 1000),
				 .tv_nsec = (long)(fmod(ms, 1000) * 1e6) };

	while (nanosleep(&time, &time) && errno == EINTR)
		;
}

static void ask_sockets(const struct target *target, int family)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 request;
	} message = { .head = { .nlmsg_len = sizeof(message),
				.nlmsg_type = SOCK_DIAG_BY_FAMILY,
				.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		      .request = { .sdiag_family = (uint8_t)family,
				   .sdiag_protocol = IPPROTO_TCP,
				   .idiag_ext = 1 << (INET_DIAG_INFO - 1),
				   .idiag_states = 1 << TCP_ALIVE } };

	if (send(target->fd, &message, sizeof(message), 0) != sizeof(message))
		die("ask for the sockets");
}

/* Bytes that the peer of one socket has acknowledged. */
static double acked_of(const struct nlmsghdr *head, uint16_t port)
{
	const struct inet_diag_msg *socket = NLMSG_DATA(head);
	int left = (int)(head->nlmsg_len - NLMSG_LENGTH(sizeof(*socket)));

	if (ntohs(socket->id.idiag_sport) != port)
		return 0;
	for (struct nlattr *item = (void *)(socket + 1); left >= NLA_HDRLEN &&
							 item->nla_len >= NLA_HDRLEN &&
							 item->nla_len <= left;) {
		struct tcp_info info = { 0 };
		size_t bytes = item->nla_len - NLA_HDRLEN;

		if (item->nla_type == INET_DIAG_INFO) {
			memcpy(&info, (char *)item + NLA_HDRLEN,
			       bytes < sizeof(info) ? bytes : sizeof(info));
			return (double)info.tcpi_bytes_acked;
		}
		left -= NLA_ALIGN(item->nla_len);
		item = (void *)((char *)item + NLA_ALIGN(item->nla_len));
	}
	return 0;
}

/* The server's counter and the moment it was read. */
static double read_counter(const struct target *target, double *ret_time)
{
	static char text[REPLY_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
	double sum = 0;

	*ret_time = now();
	for (int i = 0; i < 2; i++) {
		ask_sockets(target, i ? AF_INET6 : AF_INET);
		for (bool is_done = false; !is_done;) {
			ssize_t got = recv(target->fd, text, sizeof(text), 0);

			if (got <= 0)
				die("the kernel's list of sockets");
			for (struct nlmsghdr *head = (void *)text; NLMSG_OK(head, got);
			     head = NLMSG_NEXT(head, got)) {
				if (head->nlmsg_type == NLMSG_ERROR)
					die("sock_diag");
				if (head->nlmsg_type == SOCK_DIAG_BY_FAMILY)
					sum += acked_of(head, target->port);
				is_done |= head->nlmsg_type == NLMSG_DONE;
			}
		}
	}
	return sum;
}

/* The server and the processes that it started, and those that these started. */
static int family_of(pid_t first, pid_t family[MAX_FAMILY])
{
	int count = 1;

	family[0] = first;
	for (int i = 0; i < count; i++) {
		char path[64];
		int pid;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)family[i],
			 (int)family[i]);
		FILE *file = fopen(path, "r");

		while (file && count < MAX_FAMILY && fscanf(file, "%d", &pid) == 1)
			family[count++] = pid;
		if (file)
			fclose(file);
	}
	return count;
}

/* Seconds on a CPU of all threads of a process, to the nanosecond; 0 when it is gone. */
static double process_cpu_s(pid_t pid)
{
	char path[300];
	double sum = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *folder = opendir(path);

	if (!folder)
		return 0;
	for (struct dirent *entry; (entry = readdir(folder));) {
		unsigned long long on_ns = 0;

		snprintf(path, sizeof(path), "/proc/%d/task/%.20s/schedstat", (int)pid,
			 entry->d_name);
		FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");

		if (file && fscanf(file, "%llu", &on_ns) == 1)
			sum += (double)on_ns * 1e-9;
		if (file)
			fclose(file);
	}
	closedir(folder);
	return sum;
}

static double server_cpu_s(const struct target *target)
{
	static pid_t family[MAX_FAMILY];
	double sum = 0;

	for (int i = family_of(target->server, family); i-- > 0;)
		sum += process_cpu_s(family[i]);
	return sum;
}

static struct rates rates_of_slice(const struct target *target, int ms, bool sampling,
				   bool *was)
{
	double begin, end;

	if (sampling != *was && kill(target->agent, sampling ? SIGUSR2 : SIGUSR1))
		die("signal the agent");
	*was = sampling;
	pause_ms(SETTLE_MS);

	double first = read_counter(target, &begin), cpu_s = server_cpu_s(target);

	pause_ms(ms);

	double last = read_counter(target, &end);

	cpu_s = server_cpu_s(target) - cpu_s;

	if (last <= first || cpu_s <= 0) {
		errno = 0;
		die("the server served nothing: is the load still running?");
	}
	return (struct rates){ { (last - first) / (end - begin),
				 (last - first) / cpu_s } };
}

/* Adds the log of (sampling / paused), of (2s / 1s) in a control block, to each series. */
static void run_block(const struct target *target, int ms, bool *was, bool control,
		      struct series series[RATES])
{
	bool swap = random() & 1; /* which of the two is first and last */
	double sum[2][RATES] = { { 0 } };

	for (int i = 0; i < 4; i++) {
		int which = (i == 1 || i == 2) ^ swap;
		struct rates rates = rates_of_slice(target, ms, !control && which, was);

		for (int k = 0; k < RATES; k++)
			sum[which][k] += rates.of[k];
	}
	for (int k = 0; k < RATES; k++)
		series[k].log_ratio[series[k].count++] = log(sum[1][k] / sum[0][k]);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct interval interval_of(const struct series *series)
{
	static double sorted[MAX_BLOCKS];
	int n = series->count, cut = n / 10;
	double mean = 0, winsorized = 0, variance = 0;

	memcpy(sorted, series->log_ratio, (size_t)n * sizeof(*sorted));
	qsort(sorted, (size_t)n, sizeof(*sorted), by_value);
	for (int i = cut; i < n - cut; i++)
		mean += sorted[i] / (n - 2 * cut);
	for (int i = 0; i < cut; i++) {
		sorted[i] = sorted[cut];
		sorted[n - 1 - i] = sorted[n - 1 - cut];
	}
	for (int i = 0; i < n; i++)
		winsorized += sorted[i] / n;
	for (int i = 0; i < n; i++)
		variance += (sorted[i] - winsorized) * (sorted[i] - winsorized) / (n - 1);

	int h = n - 2 * cut;
	double error = sqrt((n - 1) * variance / ((double)h * (h - 1)));
	double t = 1.96 + 2.4 / (h - 1); /* Student's, good to 1% from 20 degrees on */

	return (struct interval){ exp(mean), exp(mean - t * error),
				  exp(mean + t * error) };
}

/* --- the two commands --- */

static void print_interval(const char *name, const struct series *series)
{
	struct interval interval = interval_of(series);

	printf("%s\t%.4f\t%.4f\t%.4f\t%d\n", name, interval.middle, interval.low,
	       interval.high, series->count);
}

static bool control_is_tight(const struct series *control)
{
	if (control->count < MIN_BLOCKS)
		return false;
	struct interval interval = interval_of(control);

	return interval.low >= 1 - WANTED && interval.high <= 1 + WANTED;
}

static int compare(const struct target *target, int slice_ms, double cap_s)
{
	static struct series test[RATES], control[RATES];
	bool sampling = true;
	double begin = now(), said = begin;

	srandom((unsigned)getpid());
	while (now() - begin < cap_s && test->count < MAX_BLOCKS &&
	       !control_is_tight(control)) {
		run_block(target, slice_ms, &sampling, true, control);
		run_block(target, slice_ms, &sampling, false, test);
		if (now() - said > 30 && control->count >= 10) {
			struct interval aa = interval_of(control);

			said = now();
			fprintf(stderr, "%4.0f s: A/A %.4f..%.4f of %d blocks\n",
				said - begin, aa.low, aa.high, control->count);
		}
	}
	kill(target->agent, SIGUSR2);
	printf("what\tratio\tlow\thigh\tblocks\n");
	print_interval("agent", &test[PER_SECOND]);
	print_interval("control", &control[PER_SECOND]);
	print_interval("agent, per CPU second", &test[PER_CPU_SECOND]);
	print_interval("control, per CPU second", &control[PER_CPU_SECOND]);
	return control_is_tight(control) ? 0 : 3;
}

/* Seconds on a CPU of this thread: who else wants the CPU does not count. */
static double thread_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static uint64_t spin_for(double seconds)
{
	double end = thread_s() + seconds;
	uint64_t rounds = 0;

	while (thread_s() < end)
		for (int i = 0; i < 1000; i++, rounds++)
			__asm__ volatile("" : : : "memory");
	return rounds;
}

static int interrupt_cost(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 50000, /* ns: 20 kHz */
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.disabled = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	size_t bytes = 9 * (size_t)sysconf(_SC_PAGESIZE);
	static struct series series;
	double samples = 0, on_s = 0;

	if (fd < 0 || mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
		die("perf_event_open");
	while (series.count < 60) {
		double sum[2] = { 0, 0 };

		for (int i = 0; i < 4; i++) {
			uint64_t before = 0, after = 0;
			int on = i == 1 || i == 2;

			ioctl(fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
			if (read(fd, &before, sizeof(before)) < 0)
				die("read the event");
			sum[on] += (double)spin_for(0.05);
			if (read(fd, &after, sizeof(after)) < 0)
				die("read the event");
			samples +=
				on ? (double)(after - before) / (double)attr.sample_period
				   : 0;
			on_s += on ? 0.05 : 0;
		}
		series.log_ratio[series.count++] = log(sum[1] / sum[0]);
	}
	struct interval loss = interval_of(&series);
	double per_s = samples / on_s;

	printf("interrupt_ns\t%.0f\nlow\t%.0f\nhigh\t%.0f\nper_second\t%.0f\n",
	       (1 - loss.middle) / per_s * 1e9, (1 - loss.high) / per_s * 1e9,
	       (1 - loss.low) / per_s * 1e9, per_s);
	return 0;
}

/* A nop, which the kernel emulates, comes first. */
__attribute__((noipa, patchable_function_entry(1))) static void probed(void)
{
	__asm__ volatile("" : : : "memory");
}

/* Where an address of this program is in its file, by the kernel's own word. */
static uint64_t file_offset_of(uint64_t addr)
{
	char line[600];
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long long start, end, offset;

		if (sscanf(line, "%llx-%llx %*s %llx", &start, &end, &offset) == 3 &&
		    addr >= start && addr < end) {
			fclose(maps);
			return addr - start + offset;
		}
	}
	die("the place of our own code");
	return 0;
}

static double ns_per_call(void)
{
	double begin = thread_s();
	int calls = 20000;

	for (int i = 0; i < calls; i++)
		probed();
	return (thread_s() - begin) / calls * 1e9;
}

static int trap_cost(void)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .disabled = 1 };
	FILE *type = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	static struct series series;

	if (!type || fscanf(type, "%u", &attr.type) != 1)
		die("the kernel's uprobe PMU");
	fclose(type);
	attr.uprobe_path = (uintptr_t) "/proc/self/exe";
	attr.probe_offset = file_offset_of((uintptr_t)probed);

	double without = ns_per_call();
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		die("a probe on ourselves");
	while (series.count < 60)
		series.log_ratio[series.count++] = log(ns_per_call() - without);

	struct interval cost = interval_of(&series);

	printf("trap_ns\t%.0f\nlow\t%.0f\nhigh\t%.0f\n", cost.middle, cost.low,
	       cost.high);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "interrupt"))
		return interrupt_cost();
	if (argc == 2 && !strcmp(argv[1], "trap"))
		return trap_cost();
	if (argc < 5 || strcmp(argv[1], "compare")) {
		fprintf(stderr, "usage: slices compare PORT AGENT-PID SERVER-PID "
				"[SLICE-MS CAP-S] | interrupt | trap\n");
		return 2;
	}
	struct target target = { .fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG),
				 .port = (uint16_t)atoi(argv[2]),
				 .agent = atoi(argv[3]),
				 .server = atoi(argv[4]) };
	int slice_ms = argc > 5 ? atoi(argv[5]) : 400;

	if (target.fd < 0)
		die("the kernel's sock_diag");
	return compare(&target, slice_ms > 1000 ? 1000 : slice_ms,
		       argc > 6 ? atof(argv[6]) : 1200);
}
