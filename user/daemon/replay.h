/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_REPLAY_H
#define DAEMON_REPLAY_H

/*
 * A recorded stream read back into a database: no privileges, no broker, no probes. Files
 * that still exist here with the build-id of then are explained, others stay unnamed.
 */

#include "core/err.h"
#include "daemon/options.h"

/**
 * replay_run() - feed options->replay into the database of the settings.
 * A stream that ends within a record is replayed up to there; the error says so and
 * what was readable is kept.
 */
struct err *replay_run(const struct options *options);

#endif
