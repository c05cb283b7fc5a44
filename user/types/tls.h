/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_TLS_H
#define TYPES_TLS_H

/*
 * Thread-local variables behind addresses that are computed: the thread pointer, read
 * from fs:0, plus an offset that is a constant or stands in the GOT.
 */

#include "types/facts.h"

/* tls_slots() - what the loader, or the linker, puts into the GOT for thread-local
 * variables of this module. */
void tls_slots(struct recover *recover);
/* tls_address() - is @ref such an address, or with @has_segment what fs is added to?
 * @ret_offset: in this module's TLS block. */
bool tls_address(const struct facts *facts, struct flow_ref ref, bool has_segment,
		 uint64_t *ret_offset);

#endif
