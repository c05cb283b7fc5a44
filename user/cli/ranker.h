/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_RANKER_H
#define CLI_RANKER_H

/*
 * Somebody else's judgement of candidates: a program that reads JSON and writes JSON. The
 * schema stands in assay-discover(1).
 */

#include "cli/discovery.h"

#define RANKER_MAX_BYTES (64u << 20) /* of its answer */

/**
 * ranker_run() - @command by the shell; its standard error is ours.
 * Errors: ERR_FORMAT for an answer that is not of the schema, ERR_INVALID for an unknown
 * event, ERR_LIMIT, ERR_CLOSED when it fails or Ctrl-C ends it. @discovery is then as far
 * as it was taken over.
 */
struct err *ranker_run(const char *command, const char *binary,
		       struct discovery *discovery);

#endif
