/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COST_NORMAL_H
#define COST_NORMAL_H

/*
 * cost/ - what requests cost, as a pure library: names made fit to be stored, messages
 * joined by identity, spans assembled to trees, trees merged by structure, sums weighed
 * with standard errors. It knows no event, file, database or clock; who uses it feeds
 * plain structs. The daemon uses what must happen before data leaves it (normal, join,
 * slot), the command line the rest (tree, estimate).
 */

#include <stddef.h>

#define NORMAL_MAX_BYTES 160 /* of a normal name, NUL included */

enum normal_flags {
	NORMAL_QUOTED_NAMES = 1, /* "x" is a name in this dialect of SQL, not a literal */
	NORMAL_CUT = 2,		 /* @text is only the begin of the name */
	NORMAL_HASH = 4,	 /* store "#" and 16 digits and no text at all */
};

/**
 * normal_name() - the kind of request that a name stands for.
 * @text: @bytes of the application's, any bytes.
 * @ret_name: room for NORMAL_MAX_BYTES, printable ASCII, NUL-terminated.
 * SQL (known by its first word): literals and parameters become ?, a list of them (?),
 * comments go, white space is one blank. A path (begins with / or SCHEME://): the query
 * and fragment go, a segment that is a number, an id or escaped becomes :id. A URL's
 * host stays, its user and password do not. Anything else is a name already, of which
 * only long runs of digits are replaced.
 */
void normal_name(const char *text, size_t bytes, unsigned flags, char *ret_name);

#endif
