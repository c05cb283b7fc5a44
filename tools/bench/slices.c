// SPDX-License-Identifier: Apache-2.0
/*
 * What does sampling cost a server? A machine whose speed drifts by a quarter cannot be
 * asked with a few pairs of long runs, so time is cut into slices shorter than the drift:
 *
 *	slices compare COMMAND-SOCKET REQUEST FIELD AGENT-PID SERVER-PID [SLICE-MS CAP-S]
 *	slices interrupt
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
 * Throughput is a counter that the server gives when REQUEST and a newline is sent to it:
 * the first number after FIELD in the answer ("" for the first of all).
 *
 * `interrupt` measures what one cpu-clock sample costs without any BPF program.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
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
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MAX_BLOCKS  4096
#define MIN_BLOCKS  40
#define SETTLE_MS   30
#define WANTED	    0.01
#define REPLY_BYTES 65536

struct series {
	double log_ratio[MAX_BLOCKS];
	int count;
};

struct interval {
	double middle, low, high; /* ratios */
};

struct target {
	const char *request, *field;
	int fd;
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

static int connect_unix(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (strlen(path) >= sizeof(address.sun_path))
		die("socket path is too long");
	strcpy(address.sun_path, path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)))
		die(path);
	return fd;
}

/* The server's counter and the moment it was read. */
static double read_counter(const struct target *target, double *ret_time)
{
	static char text[REPLY_BYTES];
	size_t got = 0;
	char line[256];
	int length = snprintf(line, sizeof(line), "%s\n", target->request);

	if (write(target->fd, line, (size_t)length) != length)
		die("ask the server");
	for (;;) {
		ssize_t n = read(target->fd, text + got, sizeof(text) - 1 - got);

		if (n <= 0)
			die("the server's answer");
		got += (size_t)n;
		text[got] = 0;

		char *at = strstr(text, target->field);

		at = at ? at + strlen(target->field) : NULL;
		at = at ? at + strcspn(at, "0123456789") : NULL;
		if (at && *at && strchr(at, '\n')) {
			*ret_time = now();
			return strtod(at, NULL);
		}
	}
}

/* An answer may be longer than the field: what is left is dropped before the next one. */
static void drain(const struct target *target)
{
	char text[4096];

	while (recv(target->fd, text, sizeof(text), MSG_DONTWAIT) > 0)
		;
}

/* Seconds on a CPU of all threads of the server, to the nanosecond. */
static double server_cpu_s(const struct target *target)
{
	char path[300];
	double sum = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)target->server);
	DIR *folder = opendir(path);

	if (!folder)
		die("the server's threads");
	for (struct dirent *entry; (entry = readdir(folder));) {
		unsigned long long on_ns = 0;

		snprintf(path, sizeof(path), "/proc/%d/task/%.20s/schedstat",
			 (int)target->server, entry->d_name);
		FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");

		if (file && fscanf(file, "%llu", &on_ns) == 1)
			sum += (double)on_ns * 1e-9;
		if (file)
			fclose(file);
	}
	closedir(folder);
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
	drain(target);

	double first = read_counter(target, &begin), cpu_s = server_cpu_s(target);

	pause_ms(ms);
	drain(target);

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

static uint64_t spin_for(double seconds)
{
	double end = now() + seconds;
	uint64_t rounds = 0;

	while (now() < end)
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

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "interrupt"))
		return interrupt_cost();
	if (argc < 7 || strcmp(argv[1], "compare")) {
		fprintf(stderr, "usage: slices compare SOCKET REQUEST FIELD AGENT-PID "
				"SERVER-PID [SLICE-MS CAP-S] | interrupt\n");
		return 2;
	}
	struct target target = { .request = argv[3],
				 .field = argv[4],
				 .fd = connect_unix(argv[2]),
				 .agent = atoi(argv[5]),
				 .server = atoi(argv[6]) };
	int slice_ms = argc > 7 ? atoi(argv[7]) : 400;

	return compare(&target, slice_ms > 1000 ? 1000 : slice_ms,
		       argc > 8 ? atof(argv[8]) : 1200);
}
