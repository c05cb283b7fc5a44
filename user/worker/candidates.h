/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKER_CANDIDATES_H
#define WORKER_CANDIDATES_H

/* What discovery finds as replies of JOB_DISCOVER. */

#include "discover/discover.h"
#include "job/channel.h"

struct err *candidates_send(struct channel *channel, uint64_t job,
			    const struct discover_files *files);

#endif
