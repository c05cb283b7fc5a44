/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_NUMBER_H
#define CLI_NUMBER_H

/*
 * Numbers as people read them: three digits that count and a unit. Only tables and
 * sentences use these; JSON and TSV get the exact figures. All results are allocated.
 */

#include <stdint.h>

char *number_count(uint64_t count);   /* 9999, 12.3k, 4.57M */
char *number_share(double ratio);     /* 0.1234 -> "12.3%"; NaN -> "-" */
char *number_ns(uint64_t ns);	      /* 950 ns, 1.25 ms, 12.3 s, 5m 12s, 3h 05m */
char *number_bytes(uint64_t bytes);   /* 56 B, 4.00 KiB, 12.3 MiB */
char *number_time(uint64_t epoch_ns); /* local time: 2026-11-30 23:15:31 */

#endif
