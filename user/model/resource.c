// SPDX-License-Identifier: Apache-2.0
#include "model/resource.h"

#include <string.h>

static const char *const kinds[RESOURCE_KINDS] = {
	[RESOURCE_OTHER] = "other", [RESOURCE_LOCK] = "lock",
	[RESOURCE_CACHE] = "cache", [RESOURCE_POOL] = "pool",
	[RESOURCE_SLOTS] = "slots", [RESOURCE_BUFFER] = "buffer",
	[RESOURCE_LOG] = "log",	    [RESOURCE_LOOP] = "loop",
	[RESOURCE_PIN] = "pin",	    [RESOURCE_GAUGE] = "gauge",
};

static const char *const keys[RESOURCE_KEYS] = {
	[KEY_THREAD] = "thread",
	[KEY_CLIENT] = "client",
	[KEY_CONNECTION] = "connection",
	[KEY_PEER] = "peer",
};

static const char *const classes[FAULT_CLASSES] = {
	[FAULT_NONE] = "none",
	[FAULT_CONTENTION] = "contention",
	[FAULT_POLICY] = "inefficient_policy",
	[FAULT_PROVISION] = "under_provisioned",
	[FAULT_STATE] = "inconsistent_state",
	[FAULT_GROWTH] = "unbounded_growth",
	[FAULT_LEAK] = "leak",
};

static int find(const char *const *words, int count, const char *word)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(words[i], word))
			return i;
	return -1;
}

const char *resource_kind_name(enum resource_kind kind)
{
	return (unsigned)kind < RESOURCE_KINDS ? kinds[kind] : "";
}

int resource_kind_parse(const char *word)
{
	return find(kinds, RESOURCE_KINDS, word);
}

const char *resource_key_name(enum resource_key key)
{
	return (unsigned)key < RESOURCE_KEYS ? keys[key] : "";
}

int resource_key_parse(const char *word)
{
	return find(keys, RESOURCE_KEYS, word);
}

const char *fault_class_name(enum fault_class class)
{
	return (unsigned)class < FAULT_CLASSES ? classes[class] : "";
}
