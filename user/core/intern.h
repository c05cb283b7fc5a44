/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_INTERN_H
#define CORE_INTERN_H

/* string <-> small id. Id 0 is the empty string; ids count up without gaps. */

#include <stdint.h>

#include "core/cleanup.h"

struct intern;

struct intern *intern_new(void);
void intern_free(struct intern *intern); /* NULL is fine */
CLEANUP_DEFINE(intern_free, struct intern *)

uint32_t intern_id(struct intern *intern, const char *text);
/* intern_text() - valid until intern_free(); "" for an id never given. */
const char *intern_text(const struct intern *intern, uint32_t id);
uint32_t intern_count(const struct intern *intern);

/* hash_bytes(), hash_text() - stable 64-bit ids that merge across hosts: XXH3, never 0. */
uint64_t hash_bytes(const void *bytes, size_t length, uint64_t seed);
uint64_t hash_text(const char *text, uint64_t seed);

#endif
