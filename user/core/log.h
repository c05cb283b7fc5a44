/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_LOG_H
#define CORE_LOG_H

/*
 * One line per message on standard error: what failed, on what, what happens next.
 * Under journald (JOURNAL_STREAM set) a line starts with its priority, "<4>".
 * Only daemon/, cli/ and the mains log; libraries return errors.
 */

enum log_level {
	LOG_ERROR = 3,
	LOG_WARNING = 4,
	LOG_NOTICE = 5,
	LOG_INFO = 6,
	LOG_DEBUG = 7
};

/* log_open() - @program goes in front of each line when a person reads it. */
void log_open(const char *program, enum log_level level);
void log_set_level(enum log_level level);
/* log_level_parse() - error, warning, notice, info, debug; -1 for anything else. */
int log_level_parse(const char *name);
void log_put(enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#define log_error(...)	log_put(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)	log_put(LOG_WARNING, __VA_ARGS__)
#define log_notice(...) log_put(LOG_NOTICE, __VA_ARGS__)
#define log_info(...)	log_put(LOG_INFO, __VA_ARGS__)
#define log_debug(...)	log_put(LOG_DEBUG, __VA_ARGS__)

#endif
