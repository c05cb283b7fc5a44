/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MODEL_IDS_H
#define MODEL_IDS_H

/*
 * model/ - the nouns that everybody shares, and no behaviour: what a module, process,
 * answer and fact are. Ids are stable 64-bit hashes (core/intern.h), so that databases
 * of many hosts merge without renumbering. 0 is "none".
 */

#include <stdint.h>
#include <string.h>

#include "core/intern.h"

#define BUILD_ID_MAX 20

struct build_id {
	uint8_t bytes[BUILD_ID_MAX];
	uint8_t size; /* 0: the file has none */
};

enum module_kind { MODULE_FILE = 1, MODULE_VDSO, MODULE_KERNEL, MODULE_KMOD };

/* module_id_of() - hash of the build-id; 0 when there is none. */
static inline uint64_t module_id_of(const struct build_id *id)
{
	return id->size ? hash_bytes(id->bytes, id->size, 0) : 0;
}

/* process_id_of() - pids come back, so a process is its pid and start time on one boot. */
static inline uint64_t process_id_of(uint64_t boot_id, uint32_t pid, uint64_t start_ns)
{
	uint64_t key[3] = { boot_id, pid, start_ns };

	return hash_bytes(key, sizeof(key), 1);
}

#endif
