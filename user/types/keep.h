/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_KEEP_H
#define TYPES_KEEP_H

/*
 * Answers of units kept from an earlier run, of this build or of another one. Of this
 * very build they hold as they are; of another one when the unit's mark does
 * (types/mark.h). An entry of core/pack: head, mark, answers.
 */

#include "types/result.h"

struct keep;

/* keep_new() - @pack: bytes of an earlier run, "" none; taken. @content: of the files. */
struct keep *keep_new(struct recover *recover, struct str *pack, uint64_t version,
		      uint64_t content);
void keep_free(struct keep *keep); /* NULL is fine */

/* keep_find() - kept answers of @unit; their bytes live until keep_free(). */
bool keep_find(struct keep *keep, uint32_t unit, struct result *ret_result);
/* The four of marker_*(), when keep_find() found none. keep_end() takes the answers as
 * result_write() gave them. */
void keep_begin(struct keep *keep);
void keep_types(struct keep *keep);
void keep_code(struct keep *keep);
void keep_end(struct keep *keep, const struct str *answers);

/* keep_take() - up to about @limit bytes of what was found out since the last call, as
 * pack; false: there is nothing more. */
bool keep_take(struct keep *keep, size_t limit, struct str *out);
/* keep_all() - after a whole pass: when most of the old was not used, what is new comes
 * with what was, to stand alone. */
void keep_all(struct keep *keep);

#endif
