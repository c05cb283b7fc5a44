/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_BATCH_H
#define STORE_BATCH_H

/* Facts that wait for the next transaction, with their strings and arrays. */

#include <stddef.h>

#include "core/cleanup.h"
#include "model/fact.h"

#define BATCH_MAX_TEXT	 4096 /* bytes of one string; the rest is cut off */
#define BATCH_MAX_FRAMES 512  /* of one stack; the frames at the root are cut off */

struct batch;

struct batch *batch_new(void);
void batch_free(struct batch *batch); /* NULL is fine */
CLEANUP_DEFINE(batch_free, struct batch *)

void batch_add(struct batch *batch, const struct fact *fact);
size_t batch_count(const struct batch *batch);
size_t batch_bytes(const struct batch *batch);
/* batch_at() - in the order of the adds; valid until the next add or clear. */
const struct fact *batch_at(const struct batch *batch, size_t index);
void batch_clear(struct batch *batch);

#endif
