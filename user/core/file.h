/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_FILE_H
#define CORE_FILE_H

/* Bounded reads and atomic replacement. A file that is larger than @max is ERR_LIMIT. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct err *file_read(const char *path, size_t max, char **ret_text, size_t *ret_bytes);
struct err *file_read_fd(int fd, size_t max, char **ret_text, size_t *ret_bytes);

/* file_pread() - all of a regular file by pread(), whatever its position: as above.
 * Errors: ERR_LIMIT when it is larger than @max, ERR_IO. */
struct err *file_pread(int fd, size_t max, char **ret_text, size_t *ret_bytes);

/* file_replace() - write beside @path, fsync, rename over it. */
struct err *file_replace(const char *path, const void *data, size_t bytes, unsigned mode);

/* file_mkdirs() - every missing folder above and at @path, mode 0750. */
struct err *file_mkdirs(const char *path);

/* file_write_all(), file_read_exact() - whole buffers on pipes and sockets, EINTR handled. */
struct err *file_write_all(int fd, const void *data, size_t bytes);
struct err *file_read_exact(int fd, void *data, size_t bytes);

/* file_beside() - DIR-OF-THIS-PROGRAM/NAME if it can be executed, else @fallback; allocated. */
char *file_beside(const char *name, const char *fallback);

/* clock_ns() - CLOCK_MONOTONIC, the one clock of every record; realtime_ns() for people. */
uint64_t clock_ns(void);
uint64_t realtime_ns(void);

/* number_parse() - a whole unsigned decimal or 0x number and nothing else. */
bool number_parse(const char *text, uint64_t *ret_value);

/* duration_parse() - "10", "10s", "500ms", "5m", "2h", "1d" to ns; bare numbers are seconds. */
struct err *duration_parse(const char *text, uint64_t *ret_ns);

/* size_parse() - "4096", "64K", "64M", "1G" to bytes. */
struct err *size_parse(const char *text, uint64_t *ret_bytes);

#endif
