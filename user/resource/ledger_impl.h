/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RESOURCE_LEDGER_IMPL_H
#define RESOURCE_LEDGER_IMPL_H

/* The ledger's own structs, for the files of this folder only. */

#include "core/map.h"
#include "core/mem.h"
#include "core/vec.h"
#include "resource/ledger.h"

#define MAX_HOLDERS 16 /* of one object that are remembered, recent ones included */
#define MAX_WAITS   4  /* one inside the other */

/* What happened in one bucket. */
struct sums {
	float wait_s, hold_s;
	float walked_s;	 /* waits that the walk saw: all of the time, not in windows */
	float blame_s;	 /* of a task: others waited for it */
	float covered_s; /* of wait_s: while requests were watched */
	uint32_t waits, acquires, fresh, uses, refusals,
		releases; /* fresh: new objects */
};

struct resource {
	struct resource_info info;
	uint32_t app; /* pid of the application's first process */
	struct sums past[LEDGER_BUCKETS];
	double balance, acquired, released;
	double grown;			  /* LOG: what it has grown by in this bucket */
	float balances[LEDGER_BUCKETS];	  /* at the end of the bucket */
	float pinned[LEDGER_BUCKETS];	  /* grown since the oldest pin, likewise */
	float on_s[LEDGER_BUCKETS];	  /* how long its probes were on */
	uint32_t through[LEDGER_BUCKETS]; /* ms of its waits due to another resource */
	const struct resource *through_what;
	double rate;		   /* LOG: growth per second when it was watched last */
	const struct task *pinner; /* with the oldest pin */
	uint64_t pinned_ns;	   /* since when that is so */
	double pin_base;	   /* balance at that time */
	uint32_t made[LEDGER_BUCKETS];	     /* tasks that took part for the first time */
	uint32_t holders_max;		     /* most tasks that ever held it at once */
	uint32_t holders_now;		     /* tasks that hold it */
	const char *wait_place, *hold_place; /* functions; "" unknown */
};

struct wait {
	struct resource *resource;
	uint64_t object, blocker;
	uint64_t since_ns, walked_ns;
	uint8_t mode;
	bool is_walked; /* no probe told of it */
};

struct task {
	uint32_t app, pid, tid;
	uint64_t key;
	enum resource_key kind;	     /* what @key is */
	char text[ABI_NAME_MAX + 1]; /* of the request it serves, or served last */
	char name[ABI_NAME_MAX + 1]; /* that the spec gives it: an address */
	uint64_t request_ns;	     /* since when it serves one; 0: it does not */
	uint64_t walked_ns;	     /* busy time is accounted for until then */
	uint64_t last_ns;
	float busy_s[LEDGER_BUCKETS];
	struct wait waits[MAX_WAITS];
	uint32_t wait_count;
	uint32_t holds;	   /* in the map */
	uint32_t doubtful; /* of these */
};

struct cell {
	struct resource *resource;
	struct task *task;
	struct sums past[LEDGER_BUCKETS];
	float balances[LEDGER_BUCKETS];
	double balance, acquired, released;
	uint32_t holds; /* objects held now */
	uint64_t last_ns;
};

struct holder {
	struct task *task;
	uint64_t since_ns, until_ns; /* until: 0 holds it now */
	uint8_t mode;
};

struct object {
	struct resource *resource;
	uint64_t id;
	char name[ABI_NAME_MAX + 1];
	double balance;
	int64_t level;
	uint64_t level_ns; /* since when; 0: no level was told */
	uint64_t last_ns;
	uint32_t level_pid; /* who told it */
	struct holder holders[MAX_HOLDERS];
	float wait_s[2]; /* in this bucket and the last */
};

struct hold {
	double amount;
	uint64_t since_ns, walked_ns;
	uint32_t count;
	uint8_t mode;
	bool is_doubtful; /* its end may have been missed */
	bool is_walked;	  /* no probe told of it */
	bool is_gauge;	  /* its amount is absolute: true also if something was missed */
};

struct hold_key {
	struct resource *resource;
	uint64_t object;
	struct task *task;
};

struct method {
	uint32_t app;
	uint64_t method_id;
	char text[ABI_NAME_MAX + 1];
	float total_s[LEDGER_BUCKETS];
	uint32_t count[LEDGER_BUCKETS];
	float base_s; /* its mean when all was well; 0: not known yet */
	uint64_t last_ns;
};

struct pending_switch {
	uint64_t resource_id, time_ns;
	bool on;
};

/* Somebody waited for somebody, in this bucket or the last. */
struct edge_key {
	const struct task *waiter, *blocker;
};
struct edge {
	const struct resource *resource;
	uint64_t object;
	float wait_s[2];
	bool is_inferred;
};

struct ledger {
	struct map *infos;     /* resource_id -> struct resource_info */
	struct map *resources; /* (resource_id, app) -> struct resource * */
	struct map *tasks;     /* task_key -> struct task * */
	struct map *cells;     /* (resource, task) -> struct cell * */
	struct map *objects;   /* (resource, object) -> struct object * */
	struct map *holds;     /* hold_key -> struct hold */
	struct map *methods;   /* (app, method_id) -> struct method * */
	struct map *apps;      /* pid -> struct app */
	struct map *keys;      /* (pid, key) -> struct task * */
	struct map *edges;     /* edge_key -> struct edge */
	struct map *switched;  /* resource_id -> struct coverage */
	VEC(struct pending_switch) pending;
	char *places[ABI_MAX_SLOTS];
	uint64_t bucket_ns; /* begin of the current one; 0: none yet */
	uint64_t now_ns;
	uint64_t first_ns; /* of the first event */
	unsigned at;	   /* index of the current bucket */
	unsigned unput;	   /* complete buckets that ledger_put() has not seen */
	float requests_on_s[LEDGER_BUCKETS]; /* how long those of requests were on */
	unsigned complete; /* how many complete buckets there are, at most all but one */
	uint64_t events, lost;
	size_t pending_at;
};

struct app {
	uint32_t app;
	char comm[ABI_COMM_BYTES + 1];
};

struct coverage {
	bool on;
	uint64_t since_ns;	/* of the last change */
	uint64_t on_ns, off_ns; /* the last time it was on: from, to (0: still) */
};

/* Index of the bucket @back before the current one; 1 is the last complete one. */
static inline unsigned bucket_back(const struct ledger *ledger, unsigned back)
{
	return (ledger->at + LEDGER_BUCKETS - back) % LEDGER_BUCKETS;
}

/* ledger_table.c: find or make. NULL: no room, counted as lost. */
struct resource *resource_of(struct ledger *ledger, uint64_t resource_id, uint32_t app);
struct resource *resource_find(const struct ledger *ledger, uint64_t resource_id,
			       uint32_t app);
struct cell *cell_of(struct ledger *ledger, struct resource *resource, struct task *task);
struct cell *cell_find(const struct ledger *ledger, const struct resource *resource,
		       const struct task *task);
struct object *object_of(struct ledger *ledger, struct resource *resource, uint64_t id);
struct object *object_find(const struct ledger *ledger, const struct resource *resource,
			   uint64_t id);
struct task *task_of(struct ledger *ledger, uint32_t pid, uint32_t tid, uint64_t key);
struct method *method_of(struct ledger *ledger, uint32_t app, uint64_t method_id);
uint32_t app_of(const struct ledger *ledger, uint32_t pid);
void app_learn(struct ledger *ledger, const struct abi_task *task);
/* table_sweep() - forget what has been quiet for all kept buckets. */
void table_sweep(struct ledger *ledger);

/*
 * hold.c: holdings begin, end, and are accounted for. hold_release() is of one object,
 * hold_release_all() of a resource, or of everything when that is NULL. hold_set(): a
 * gauge. hold_forget(): @task does something anew, so what is in doubt is over.
 */
void hold_acquire(struct ledger *ledger, struct resource *resource, struct task *task,
		  const struct abi_resource *record);
void hold_release(struct ledger *ledger, struct resource *resource, struct task *task,
		  const struct abi_resource *record);
void hold_release_all(struct ledger *ledger, struct resource *resource, struct task *task,
		      uint64_t now_ns);
void hold_set(struct ledger *ledger, struct resource *resource, struct task *task,
	      const struct abi_resource *record);
void hold_forget(struct ledger *ledger, struct task *task, uint64_t now_ns);
void hold_account(struct ledger *ledger, const struct hold_key *key, struct hold *hold,
		  uint64_t now_ns);

/* walked.c: whether an event of the walk is news; it gets the object that it is about. */
bool walked_counts(const struct ledger *ledger, const struct resource *resource,
		   struct task *task, struct abi_resource *record);

#define RARE_NS 1000000000ull
/* Nobody has had to do with it for a while: it is new here, or seldom wanted. */
static inline bool is_rare(const struct object *object, uint64_t now_ns)
{
	return object && (!object->last_ns || now_ns > object->last_ns + RARE_NS);
}

static inline const char *place_of(const struct ledger *ledger, uint32_t slot)
{
	return slot < ABI_MAX_SLOTS && ledger->places[slot] ? ledger->places[slot] : "";
}

/* ledger.c */
const struct coverage *coverage_of(const struct ledger *ledger, uint64_t resource_id);

/* bucket.c: the current bucket is over, the next one begins. */
void bucket_close(struct ledger *ledger);

/* blame.c: @wait of @task has lasted from @from_ns to @to_ns: who is to blame? */
void blame_wait(struct ledger *ledger, struct task *task, const struct wait *wait,
		uint64_t from_ns, uint64_t to_ns);

#endif
