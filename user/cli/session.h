/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

/* What attach, record, replay and run share: start the agent, wait for it, report. */

#include "cli/agent.h"
#include "cli/report.h"

/* session_db() - an absolute path for assayd; the default's folder is made. Allocated. */
struct err *session_db(const struct cli *cli, char **ret_path);
/* session_pidfile() - where an agent in the background writes its pid if nothing else is
 * said: $ASSAY_PIDFILE, else assay-attach.pid in /run or $XDG_RUNTIME_DIR. Allocated. */
char *session_pidfile(void);
/* session_is_running() - the process that @pidfile names is an agent. */
bool session_is_running(const char *pidfile);
/* session_path() - @path made absolute; allocated. */
char *session_path(const char *path);

/* session_start() - agent_start(); when that fails for want of a privilege or a kernel
 * feature, the error is the one that says what to do. */
struct err *session_start(const struct agent_config *config, struct agent **ret_agent);

/**
 * session_wait() - until the agent ends. Ctrl-C asks it to flush and end.
 * @what: for the progress line; @for_ns: how long it samples, 0 unknown.
 * Return: what agent_result() says.
 */
struct err *session_wait(const struct cli *cli, struct agent *agent, const char *what,
			 uint64_t for_ns);

/* session_report() - types and fields of one run. */
struct err *session_report(struct cli *cli, const char *db_path, uint64_t run_id);

#endif
