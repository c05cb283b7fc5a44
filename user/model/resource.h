/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MODEL_RESOURCE_H
#define MODEL_RESOURCE_H

/* What kinds of resources there are, and of problems with them. */

enum resource_kind {
	RESOURCE_OTHER,
	RESOURCE_LOCK,	 /* one at a time, or shared against exclusive */
	RESOURCE_CACHE,	 /* waits are its misses */
	RESOURCE_POOL,	 /* interchangeable pieces: workers, connections, slots */
	RESOURCE_SLOTS,	 /* places with a state, told by levels */
	RESOURCE_BUFFER, /* holds amounts for somebody */
	RESOURCE_LOG,	 /* what is kept until nobody can need it: undo, row versions */
	RESOURCE_LOOP,	 /* the one thread of an event loop */
	RESOURCE_PIN,	 /* transactions, snapshots: while held, others cannot shrink */
	RESOURCE_GAUGE,	 /* only shown: no rule is about it */
	RESOURCE_KINDS,
};

/* What the key of a resource's probes names. */
enum resource_key { KEY_THREAD, KEY_CLIENT, KEY_CONNECTION, KEY_PEER, RESOURCE_KEYS };

const char *resource_kind_name(enum resource_kind kind); /* "lock" */
/* resource_kind_parse() - -1 for no such word. */
int resource_kind_parse(const char *word);
const char *resource_key_name(enum resource_key key); /* "thread" */
int resource_key_parse(const char *word);

/* As in reports and in JSON; the order is that of the rules. */
enum fault_class {
	FAULT_NONE,
	FAULT_CONTENTION,
	FAULT_POLICY,
	FAULT_PROVISION,
	FAULT_STATE,
	FAULT_GROWTH,
	FAULT_LEAK,
	FAULT_CLASSES,
};
const char *fault_class_name(enum fault_class class); /* "contention" */

#endif
