/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKER_RECORDS_H
#define WORKER_RECORDS_H

/* A file of perf record as replies of JOB_RECORDS. */

#include "core/err.h"
#include "job/channel.h"

#define RECORDS_REPLY_BYTES (512 * 1024) /* of records in one reply, about */

/* records_send() - all of @fd; a damaged file is a reply that says so, not an error. */
struct err *records_send(struct channel *channel, uint64_t job, int fd);

#endif
