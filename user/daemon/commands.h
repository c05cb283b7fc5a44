/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_COMMANDS_H
#define DAEMON_COMMANDS_H

/* What the daemon answers on its control socket: a table, verb by verb. */

#include "core/str.h"
#include "model/command.h"

/* commands_answer() - a control_fn; @daemon is a struct daemon. */
void commands_answer(void *daemon, const struct command *command, struct str *reply);

#endif
