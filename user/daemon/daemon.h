/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

/* The unprivileged process: loop, store, control socket, one session after another. */

#include "core/err.h"
#include "daemon/options.h"

#define DAEMON_EXPLAIN_NS 120000000000ull /* a oneshot waits this long for answers */

/* What main() prepared while there were privileges. */
struct daemon_setup {
	int argc; /* for SIGHUP: the command line is applied again */
	char **argv;
	struct options *options;
	int rpc_fd;	/* to the broker; taken */
	int signal_fd;	/* bytes of enum broker_signal; borrowed */
	int control_fd; /* listening; taken; -1 none */
};

/**
 * daemon_run() - until told to stop.
 * SIGTERM and SIGINT flush and end within a second; a oneshot ends sampling at the
 * first and gives up on explanations at the second.
 */
struct err *daemon_run(const struct daemon_setup *setup);

#endif
