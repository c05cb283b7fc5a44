// SPDX-License-Identifier: Apache-2.0
/* argp gives --help and --usage; settings go through the same table as the file. */
#include "daemon/options.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/vec.h"

const char *argp_program_version = "assayd " ASSAY_VERSION;

enum {
	KEY_ONESHOT = 0x100,
	KEY_FOR,
	KEY_RECORD,
	KEY_REPLAY,
	KEY_SYMFS,
	KEY_PIDFILE,
	KEY_READY_FD,
	KEY_PRINT
};

static const struct argp_option table[] = {
	{ "config", 'c', "FILE", 0, "Settings (default " CONFIG_DEFAULT_PATH ")", 0 },
	{ "set", 's', "KEY=VALUE", 0, "One setting, over the file; repeatable", 0 },
	{ "target", 't', "WHAT", 0, "all, pid:N, cgroup:PATH, service:UNIT", 0 },
	{ "db", 'd', "FILE", 0, "Database to write", 0 },
	{ "rate", 'r', "HZ", 0, "Access samples per second and CPU", 0 },
	{ "oneshot", KEY_ONESHOT, 0, 0,
	  "Sample, explain, exit: what `assay attach` runs; no control socket", 1 },
	{ "for", KEY_FOR, "SECONDS", 0, "End a oneshot after this long (10, 500ms, 5m)",
	  1 },
	{ "record", KEY_RECORD, "FILE", 0, "Also write the raw event stream", 1 },
	{ "replay", KEY_REPLAY, "FILE", 0,
	  "Read a recorded stream into the database and exit", 1 },
	{ "symfs", KEY_SYMFS, "DIR", 0,
	  "Look for the files that a replay names below this folder", 1 },
	{ "pidfile", KEY_PIDFILE, "FILE", 0, "Write our process id there while we run",
	  1 },
	{ "ready-fd", KEY_READY_FD, "FD", 0, "Write `ready RUN_ID` there once sampling",
	  1 },
	{ "print-config", KEY_PRINT, 0, 0, "Print the settings in force and exit", 2 },
	{ 0 },
};

/* Settings of the command line win over the file, wherever they stand: kept, then applied. */
struct parse {
	struct options *options;
	struct err *err;      /* the first one */
	VEC(char *) settings; /* "key=value" */
};

static void keep(struct parse *parse, const char *key, const char *value)
{
	vec_push(&parse->settings, mem_printf("%s=%s", key, value));
}

static void note(struct parse *parse, struct err *err)
{
	if (parse->err)
		err_free(err);
	else
		parse->err = err;
}

static void parse_number(struct parse *parse, const char *text, int *ret_value)
{
	uint64_t value;

	if (!number_parse(text, &value) || value > INT32_MAX)
		note(parse,
		     err_new(ERR_INVALID, "--ready-fd: '%s' is no descriptor", text));
	else
		*ret_value = (int)value;
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	struct parse *parse = state->input;
	struct options *options = parse->options;

	switch (key) {
	case 'c':
		options->config_path = arg;
		break;
	case 's':
		if (!strchr(arg, '='))
			argp_error(state, "--set wants KEY=VALUE, not '%s'", arg);
		vec_push(&parse->settings, mem_strdup(arg));
		break;
	case 't':
		keep(parse, "target", arg);
		break;
	case 'd':
		keep(parse, "db", arg);
		break;
	case 'r':
		keep(parse, "rate", arg);
		break;
	case KEY_ONESHOT:
		options->oneshot = true;
		break;
	case KEY_FOR:
		note(parse, err_wrap(duration_parse(arg, &options->for_ns), "--for"));
		break;
	case KEY_RECORD:
		options->record = arg;
		break;
	case KEY_REPLAY:
		options->replay = arg;
		break;
	case KEY_SYMFS:
		options->symfs = arg;
		break;
	case KEY_PIDFILE:
		options->pidfile = arg;
		break;
	case KEY_READY_FD:
		parse_number(parse, arg, &options->ready_fd);
		break;
	case KEY_PRINT:
		options->print_config = true;
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'", arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static struct err *apply(struct options *options, struct parse *parse)
{
	bool named = options->config_path != NULL;

	if (!named && !options->oneshot && !access(CONFIG_DEFAULT_PATH, R_OK))
		options->config_path = CONFIG_DEFAULT_PATH;
	if (options->config_path)
		TRY(config_load(&options->config, options->config_path));
	vec_each(&parse->settings, setting) {
		char *equals = strchr(*setting, '=');

		*equals = 0;
		struct err *err = config_set(&options->config, *setting, equals + 1);

		*equals = '=';
		TRY(err);
	}
	return config_check(&options->config);
}

struct err *options_parse(int argc, char **argv, struct options *ret_options)
{
	static const struct argp argp = {
		.options = table,
		.parser = option,
		.doc = "The agent of assay: samples what runs on this machine into one SQLite "
		       "file.\vExamples:\n"
		       "  assayd                                   with " CONFIG_DEFAULT_PATH
		       "\n"
		       "  assayd -t service:nginx.service          one service only\n"
		       "  assayd --oneshot -t pid:1234 --for 10s -d /tmp/a.db\n"
		       "  assayd --print-config > assayd.conf      a settings file to edit\n\n"
		       "SIGTERM flushes and ends, SIGHUP reads the settings again, SIGUSR1 and "
		       "SIGUSR2 pause and resume sampling.",
	};
	struct options options = { .ready_fd = -1 };
	struct parse parse = { .options = &options };

	argp_err_exit_status = 2;
	config_defaults(&options.config);
	if (getenv("DEBUGINFOD_URLS"))
		note(&parse, config_set(&options.config, "debuginfod",
					getenv("DEBUGINFOD_URLS")));
	argp_parse(&argp, argc, argv, 0, NULL, &parse);

	struct err *err = parse.err ? parse.err : apply(&options, &parse);

	vec_each(&parse.settings, setting)
		free(*setting);
	vec_fini(&parse.settings);
	if (err) {
		options_fini(&options);
		return err;
	}
	*ret_options = options;
	return NULL;
}

struct err *options_ready(const struct options *options, uint64_t run_id)
{
	char line[32];

	if (options->ready_fd < 0)
		return NULL;
	snprintf(line, sizeof(line), "ready 0x%016llx\n", (unsigned long long)run_id);
	TRY(err_wrap(file_write_all(options->ready_fd, line, strlen(line)),
		     "--ready-fd"));
	close(options->ready_fd);
	return NULL;
}

void options_fini(struct options *options)
{
	config_fini(&options->config);
}
