// SPDX-License-Identifier: Apache-2.0
/*
 * assayd starts as root, makes what only root can (folders, the control socket, the
 * pid file), and splits: the parent becomes the broker, the child drops everything and
 * becomes the daemon.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/fdpass.h"
#include "core/file.h"
#include "core/log.h"
#include "core/mem.h"
#include "daemon/broker.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/privilege.h"
#include "daemon/replay.h"

static struct err *check_privileges(void)
{
	CLEANUP(free) char *missing = privilege_missing();

	if (missing)
		return err_new(ERR_PERMISSION, "missing %s: run as root", missing);
	return NULL;
}

static struct err *write_pidfile(const char *path)
{
	CLEANUP(free) char *text = mem_printf("%d\n", (int)getpid());

	return err_wrap(file_replace(path, text, strlen(text), 0644), "pid file");
}

static struct err *prepare(const struct options *options, int *ret_control_fd)
{
	const struct config *config = &options->config;

	TRY(check_privileges());
	TRY(privilege_folder(config->db, config->user));
	if (!options->oneshot && *config->socket) {
		TRY(privilege_folder(config->socket, NULL));
		TRY(control_listen(config->socket, ret_control_fd));
	}
	return options->pidfile ? write_pidfile(options->pidfile) : NULL;
}

static struct err *be_daemon(struct daemon_setup *setup)
{
	const struct config *config = &setup->options->config;

	TRY(privilege_drop(config->user, config->db));
	return daemon_run(setup);
}

static int report(struct err *err)
{
	if (!err)
		return 0;
	log_error("%s", err->text);
	err_free(err);
	return 1;
}

static const char *or_null(const char *text)
{
	return *text ? text : NULL;
}

static struct err *split(struct daemon_setup *setup, int *ret_status)
{
	const struct options *options = setup->options;
	int rpc[2], signals[2];

	TRY(fdpass_pair(rpc));
	if (pipe2(signals, O_CLOEXEC))
		return err_errno(errno, "pipe");
	pid_t pid = fork();

	if (pid < 0)
		return err_errno(errno, "fork");
	if (!pid) {
		close(rpc[0]);
		close(signals[1]);
		setup->rpc_fd = rpc[1];
		setup->signal_fd = signals[0];
		_exit(report(be_daemon(setup)));
	}
	close(rpc[1]);
	close(signals[0]);
	if (setup->control_fd >= 0)
		close(setup->control_fd);
	if (options->ready_fd >= 0)
		close(options->ready_fd);
	return broker_serve(rpc[0], signals[1], pid, or_null(options->config.worker),
			    ret_status);
}

int main(int argc, char **argv)
{
	CLEANUP(options_fini) struct options options;
	struct daemon_setup setup = {
		.argc = argc, .argv = argv, .options = &options, .control_fd = -1
	};
	int status = 0;

	log_open("assayd", LOG_INFO);
	struct err *err = options_parse(argc, argv, &options);

	if (err) {
		report(err);
		memset(&options, 0, sizeof(options));
		return 2;
	}
	if (options.print_config) {
		config_print(&options.config, stdout);
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	log_set_level((enum log_level)log_level_parse(options.config.log_level));
	if (options.replay)
		return report(replay_run(&options));
	err = prepare(&options, &setup.control_fd);
	if (!err)
		err = split(&setup, &status);
	if (options.pidfile)
		unlink(options.pidfile);
	if (!options.oneshot && *options.config.socket && setup.control_fd >= 0)
		unlink(options.config.socket);
	return err ? report(err) : status;
}
