/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_ERR_H
#define CORE_ERR_H

/*
 * core/ - what every program needs and C lacks: errors with a text, memory that
 * aborts instead of failing, three containers, bounded file reads, an event loop.
 * It knows nothing of assay.
 */

#include <stdarg.h>

enum err_code {
	ERR_IO = 1,	 /* a system call failed */
	ERR_NOT_FOUND,	 /* the thing asked for is not there */
	ERR_FORMAT,	 /* foreign bytes are not what they claim to be */
	ERR_LIMIT,	 /* a size exceeds a named limit */
	ERR_PERMISSION,	 /* a capability or right is missing */
	ERR_UNSUPPORTED, /* this kernel, CPU or build cannot do it */
	ERR_INVALID,	 /* the caller's or the user's words are off */
	ERR_BUSY,	 /* somebody else holds it */
	ERR_CLOSED,	 /* the peer is gone */
};

/**
 * struct err - what an operator must read. NULL is success.
 * @code: coarse class, for the caller that reacts to one.
 * @errnum: errno of the system call behind it, or 0.
 * @text: one line without a final stop; callers put the place in front of it.
 */
struct err {
	enum err_code code;
	int errnum;
	char *text;
};

struct err *err_new(enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* err_errno() - "TEXT: strerror(errnum)"; EPERM and EACCES become ERR_PERMISSION. */
struct err *err_errno(int errnum, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* err_wrap() - put "TEXT: " before the text of @err; NULL stays NULL. */
struct err *err_wrap(struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

void err_free(struct err *err); /* NULL is fine */

/* The only macro that returns. */
#define TRY(expr)                              \
	do {                                   \
		struct err *try_err_ = (expr); \
		if (try_err_)                  \
			return try_err_;       \
	} while (0)

#endif
