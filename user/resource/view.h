/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RESOURCE_VIEW_H
#define RESOURCE_VIEW_H

/* One resource as the rules see it: lists of victims and culprits, largest first. */

#include "resource/diagnose.h"
#include "resource/ledger_impl.h"

#define VIEW_MAX 64

struct suspect {
	const struct task *task;
	const struct method *method; /* instead of a task */
	double value;		     /* seconds lost; or what the blame is counted in */
	double share;
	uint64_t count;
};

struct suspects {
	struct suspect list[VIEW_MAX];
	size_t count;
	size_t all;   /* how many there were */
	double total; /* of all values */
};

struct view {
	const struct ledger *ledger;
	const struct resource *resource;
	unsigned window;  /* complete buckets that are looked at */
	double watched_s; /* of these; waits are scaled up to the whole */
	struct suspects victims, culprits;
	uint64_t since_ns;
	const struct object *object; /* the one that matters; or NULL */
};

/* suspects_add() - keep the largest VIEW_MAX. */
void suspects_add(struct suspects *to, const struct suspect *one);

/* Who suffers: fill view->victims. */
void victims_waiting(struct view *view);
void victims_refused(struct view *view);
void victims_slowed(struct view *view);
void victims_blocked(struct view *view);
void victims_stopped(struct view *view);
void victims_fed(struct view *view);

/* Who causes it: fill view->culprits, with shares of the total. */
void culprits_blamed(struct view *view);
void culprits_holding(struct view *view);
void culprits_owning(struct view *view);
void culprits_pinning(struct view *view);
void culprits_acquiring(struct view *view);
void culprits_outlasting(struct view *view);

/* What must be so; each may set view->since_ns. */
bool trend_lasts(struct view *view);
bool trend_full(struct view *view);
bool trend_hoards(struct view *view);
bool trend_pinned(struct view *view);
bool trend_owned(struct view *view);
bool trend_scans(struct view *view);
void culprits_crowding(struct view *view);
bool trend_keeps(struct view *view);
bool trend_crowds(struct view *view);
bool trend_exhausted(struct view *view);
bool trend_stale(struct view *view);
bool trend_any(struct view *view);

#endif
