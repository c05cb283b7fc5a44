/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_SIDEBAND_H
#define PROBE_SIDEBAND_H

/* perf's side-band, as both halves must agree on it: how it is opened and what it says. */

#include <stddef.h>

#include "core/err.h"
#include "core/str.h"

struct perf_event_attr;

/* sideband_bytes() - of one mapping: the control page and the ring. */
size_t sideband_bytes(void);

/*
 * sideband_attr() - executable mappings of all processes. Build-ids are not asked for: the
 * kernel then marks the records of other perf events as well as having one, which have an
 * inode in that place, and perf record beside us aborts.
 */
void sideband_attr(struct perf_event_attr *ret_attr);

/**
 * sideband_convert() - one record of perf's side-band as a record of bpf/abi.h.
 * @data: a whole perf record, header included, as it stands in the ring.
 * Appends nothing for a record that we do not want.
 * Errors: ERR_FORMAT when the record contradicts its own size.
 */
struct err *sideband_convert(const void *data, size_t bytes, struct str *out);

#endif
