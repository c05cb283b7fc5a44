/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_DAEMON_IMPL_H
#define DAEMON_DAEMON_IMPL_H

/* The daemon's own struct, for daemon.c and commands.c only. */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/options.h"
#include "daemon/session.h"
#include "store/db.h"
#include "store/jobs.h"
#include "store/retain.h"
#include "store/writer.h"

struct daemon {
	struct options *options;
	int argc;
	char **argv;
	struct loop *loop;
	struct db *db;
	struct writer *writer;
	struct retain *retain;
	struct jobs *jobs; /* a pass over what lacks an answer; NULL between two */
	struct broker *broker;
	struct workers *workers;
	struct session *session; /* NULL between a failed reload and the next */
	struct control *control;
	uint64_t start_ns, end_ns, give_up_ns, complained_ns, catch_up_ns;
	uint64_t seconds; /* ticks of the one-second timer */
	bool ending;
};

struct err *daemon_open_session(struct daemon *daemon);
struct err *daemon_reload(struct daemon *daemon); /* has logged the error it returns */
void daemon_end(struct daemon *daemon);

#endif
