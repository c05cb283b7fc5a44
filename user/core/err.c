// SPDX-License-Identifier: Apache-2.0
/* One allocation for the object, one for its text; a wrap rebuilds the text. */
#include "core/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

static struct err *err_make(enum err_code code, int errnum, char *text)
{
	struct err *err = mem_alloc(sizeof(*err));

	err->code = code;
	err->errnum = errnum;
	err->text = text;
	return err;
}

struct err *err_new(enum err_code code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *text = mem_vprintf(fmt, ap);
	va_end(ap);
	return err_make(code, 0, text);
}

static enum err_code code_of_errno(int errnum)
{
	switch (errnum) {
	case EPERM:
	case EACCES:
		return ERR_PERMISSION;
	case ENOENT:
	case ESRCH:
		return ERR_NOT_FOUND;
	case EOPNOTSUPP:
	case ENOSYS:
		return ERR_UNSUPPORTED;
	case EPIPE:
	case ECONNRESET:
		return ERR_CLOSED;
	default:
		return ERR_IO;
	}
}

struct err *err_errno(int errnum, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *where = mem_vprintf(fmt, ap);
	va_end(ap);
	char *text = mem_printf("%s: %s", where, strerror(errnum));
	free(where);
	return err_make(code_of_errno(errnum), errnum, text);
}

struct err *err_wrap(struct err *err, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return NULL;
	va_start(ap, fmt);
	char *where = mem_vprintf(fmt, ap);
	va_end(ap);
	char *text = mem_printf("%s: %s", where, err->text);
	free(where);
	free(err->text);
	err->text = text;
	return err;
}

void err_free(struct err *err)
{
	if (!err)
		return;
	free(err->text);
	free(err);
}
