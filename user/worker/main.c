// SPDX-License-Identifier: Apache-2.0
/*
 * assay-worker --class resolve|analyze|fetch --fd N [--memory BYTES] [--cpu SECONDS]
 * Started by the agent, not by people.
 */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/log.h"
#include "job/cache.h"
#include "worker/fetch.h"
#include "worker/sandbox.h"
#include "worker/serve.h"

struct settings {
	struct serve_options serve;
	int fd;
	bool has_class;
};

static struct err *parse_class(const char *name, struct settings *settings)
{
	for (enum job_class class = JOB_RESOLVE; class <= JOB_FETCH; class ++)
		if (strcmp(name, job_class_name(class)) == 0) {
			settings->serve.class = class;
			settings->has_class = true;
			return NULL;
		}
	return err_new(ERR_INVALID, "no such class: %s", name);
}

static struct err *parse_option(int option, const char *text, struct settings *settings)
{
	uint64_t value;

	if (option == 'c')
		return parse_class(text, settings);
	if (option == '?' || !number_parse(text, &value))
		return err_new(ERR_INVALID,
			       "usage: assay-worker --class resolve|analyze|fetch "
			       "--fd N [--memory BYTES] [--cpu SECONDS]");
	if (option == 'f')
		settings->fd = (int)value;
	else if (option == 'm')
		settings->serve.memory_bytes = value;
	else
		settings->serve.cpu_seconds = (uint32_t)value;
	return NULL;
}

static struct err *parse(int argc, char **argv, struct settings *settings)
{
	static const struct option options[] = {
		{ "class", required_argument, NULL, 'c' },
		{ "fd", required_argument, NULL, 'f' },
		{ "memory", required_argument, NULL, 'm' },
		{ "cpu", required_argument, NULL, 't' },
		{ 0 }
	};
	int option;

	settings->fd = -1;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		TRY(parse_option(option, optarg, settings));
	if (!settings->has_class || settings->fd < 0 || optind < argc)
		return parse_option('?', NULL, settings);
	struct job_limits limits = job_limits(settings->serve.class);

	if (!settings->serve.memory_bytes)
		settings->serve.memory_bytes = limits.memory_bytes;
	if (!settings->serve.cpu_seconds)
		settings->serve.cpu_seconds = limits.cpu_seconds;
	return NULL;
}

static int report(struct err *err, int status)
{
	log_error("%s", err->text);
	err_free(err);
	return status;
}

/* Of the program itself; 0 when it cannot be read, which then is a version, too. */
static uint64_t own_version(void)
{
	CLEANUP(close) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t version = 0;

	if (fd >= 0)
		err_free(cache_content(&fd, 1, &version));
	return version;
}

int main(int argc, char **argv)
{
	struct settings settings = { 0 };

	log_open("assay-worker", LOG_WARNING);
	struct err *err = parse(argc, argv, &settings);

	if (err)
		return report(err, 2);
	bool fetches = settings.serve.class == JOB_FETCH;

	settings.serve.version = own_version();

	serve_catch_limits();
	if (fetches)
		err = fetch_prepare();
	if (!err)
		err = sandbox_enter(settings.serve.class, settings.serve.memory_bytes);
	if (err)
		return report(err_wrap(err, "sandbox"), MESSAGE_EXIT_SANDBOX);
	if (fetches)
		fetch_tidy();
	err = serve(settings.fd, &settings.serve);
	if (fetches)
		fetch_finish();
	/* Not exit(): what libraries do at the end is not on the list of allowed calls. */
	_exit(err ? report(err, 1) : 0);
}
