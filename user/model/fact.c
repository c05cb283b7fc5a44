// SPDX-License-Identifier: Apache-2.0
#include "model/fact.h"

static const char *const reasons[LOSS_REASONS] = {
	[LOSS_RING] = "ring",
	[LOSS_SIDEBAND] = "sideband",
	[LOSS_REORDER] = "reorder",
	[LOSS_LATE] = "late",
	[LOSS_FORMAT] = "format",
	[LOSS_NO_PROCESS] = "no-process",
	[LOSS_NO_MAPPING] = "no-mapping",
	[LOSS_ANONYMOUS] = "anonymous",
	[LOSS_NO_MODULE] = "no-module",
	[LOSS_LIMIT] = "limit",
	[LOSS_UNWIND] = "unwind",
	[LOSS_STORE] = "store",
	[LOSS_CRASH] = "crash",
	[LOSS_NO_BEGIN] = "no-begin",
	[LOSS_NO_END] = "no-end",
	[LOSS_CONTEXT] = "context",
	[LOSS_UNREAD] = "unread",
};

/* In the order of enum abi_kind and enum abi_source in bpf/abi.h. */
static const char *const kinds[] = { "none",   "task",	  "mmap", "module",
				     "access", "tick",	  "span", "resource",
				     "loss",   "message", "sleep" };
static const char *const sources[] = { "none",	     "clock",	   "ibs",
				       "pebs-load",  "pebs-store", "page-fault",
				       "breakpoint", "cycles",	   "precise" };

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

const char *loss_reason_name(enum loss_reason reason)
{
	return (unsigned)reason < LOSS_REASONS && reasons[reason] ? reasons[reason]
								  : "unknown";
}

const char *loss_kind_name(uint32_t abi_kind)
{
	return abi_kind < COUNT(kinds) ? kinds[abi_kind] : "unknown";
}

const char *source_name(uint32_t abi_source)
{
	return abi_source < COUNT(sources) ? sources[abi_source] : "unknown";
}
