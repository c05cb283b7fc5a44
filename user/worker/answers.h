/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKER_ANSWERS_H
#define WORKER_ANSWERS_H

/*
 * Jobs that ask for types: SITES and MODULE. Answers go out in replies of bounded size,
 * each with the layouts of the types it names.
 */

#include <stdint.h>

#include "core/err.h"
#include "job/channel.h"
#include "job/message.h"
#include "types/recover.h"

#define ANSWERS_PER_REPLY   4000
#define ANSWERS_REPLY_BYTES (4 * 1024 * 1024) /* names and fields, roughly */
#define ANSWERS_KEPT_BYTES  (6 * 1024 * 1024)
#define ANSWERS_MAX_FIELDS  65536	 /* of one type; the rest is left out */
#define ANSWERS_PROGRESS_NS 250000000ull /* of CPU between replies */

/* Where the replies of one job go. */
struct answers_job {
	struct channel *channel;
	uint64_t job, module_id;
	enum job_kind kind;
};

/**
 * answers_sites(), answers_module() (share @index of @count) - all replies of the job, the last one included.
 * Errors: those of recover_all(), to be sent by the caller; and ERR_CLOSED.
 */
struct err *answers_sites(const struct answers_job *job, struct recover *recover,
			  const struct message_sites *sites);
struct err *answers_module(const struct answers_job *job, struct recover *recover,
			   uint32_t index, uint32_t count);

/* answers_type_id() - stable hash of name, size and members. */
uint64_t answers_type_id(const struct fact_type *type, const struct fact_field *fields,
			 size_t count);

#endif
