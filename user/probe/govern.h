/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_GOVERN_H
#define PROBE_GOVERN_H

/*
 * Which probes are on right now, so that all of them together stay below a budget: pure
 * policy, fed with measured costs and the time. A unit is what only makes sense
 * together, such as begin and end of a request, and is switched together.
 *
 *	ON        always
 *	WINDOWED  on in windows only: the units that cost most, when the budget is short
 *	CUT       off, because even the shortest window would cost more than it may; tried
 *	          again later, in one such window, after a time that doubles each time
 *
 * What costs more than a burst while it is on goes to windows at once. A single unit
 * that costs more than @burst there has shorter ones, of which @burst of GOVERN_BURST_NS
 * is the cost; where that would be less than GOVERN_SHORT_NS, it is cut.
 *
 * Windows: realtime is cut into slots. A keyed hash of the slot's number decides whether
 * a window lies in it and where, the same on every host that has the key, whatever the
 * applications do. In one window as many units are on as may cost @burst together; the
 * others have theirs in the next ones. How likely a window is is decided once per slot:
 * asked again and again, the most generous answer would count.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"

#define GOVERN_MAX_UNITS 2048
#define GOVERN_BUDGET	 0.01
#define GOVERN_BURST	 0.10
#define GOVERN_BURST_NS	 100000000ull /* over which a burst is measured */
#define GOVERN_SHORT_NS	 20000000ull  /* attaching and detaching take as long */
#define GOVERN_SLOT_NS	 3000000000ull
#define GOVERN_WINDOW_NS 300000000ull
#define GOVERN_CALM_NS	 10000000000ull /* so long must a unit fit before it is ON again */
#define GOVERN_RETRY_NS	 5000000000ull	/* first pause after a cut */
#define GOVERN_RETRY_MAX 640000000000ull /* and the longest */
#define GOVERN_FLOOR	 0.5 /* of one CPU: an idle target counts as this busy */

/* Zero is a good default everywhere. */
struct govern_config {
	double budget, burst; /* shares of the targets' CPU */
	uint64_t slot_ns, window_ns;
	uint64_t key;	 /* the fleet's */
	bool no_windows; /* a kernel that takes too long to detach: WINDOWED is off */
};

enum govern_state { GOVERN_ON = 1, GOVERN_WINDOWED, GOVERN_CUT };

/* What is known of one unit. */
struct govern_unit {
	enum govern_state state;
	bool is_wanted;	   /* should be attached now */
	uint64_t pulse_ns; /* but for no longer than this, once per window; 0: no limit */
	double share;	   /* of the targets' CPU while attached, recent mean */
	double duty;	   /* share of the time in which it is attached */
	double weight;	   /* 1 / duty: what one event stands for; 0 when it is cut */
	uint64_t became_hot_ns; /* time of the last cut, 0 never */
};

struct govern;

struct govern *govern_new(const struct govern_config *config);
void govern_free(struct govern *govern); /* NULL is fine */
CLEANUP_DEFINE(govern_free, struct govern *)

/* govern_add() - @expected_share: of CPU, a guess for the time before the first
 * measurement. Return its number, or -1 when there are GOVERN_MAX_UNITS. */
int govern_add(struct govern *govern, double expected_share);
void govern_del(struct govern *govern, int unit);

/* govern_fixed() - the share that all cost in the last @interval_ns which is never
 * switched: ticks for example. Its mean over ten seconds counts. */
void govern_fixed(struct govern *govern, double share, uint64_t interval_ns);

/**
 * govern_measure() - what a unit cost while it was attached for all of @interval_ns.
 * @cost_ns:   hits x calibrated cost.
 * @target_ns: CPU of the targets in that time.
 */
void govern_measure(struct govern *govern, int unit, uint64_t cost_ns, uint64_t target_ns,
		    uint64_t interval_ns);

/* govern_pulsed() - the unit had the short window that it was wanted for. */
void govern_pulsed(struct govern *govern, int unit);

/* govern_step() - decide anew; every 100 ms. @now_ns: realtime, as slots are. */
void govern_step(struct govern *govern, uint64_t now_ns);

struct govern_unit govern_unit(const struct govern *govern, int unit);

/* govern_state_name() - "on", "windows", "cut". */
const char *govern_state_name(enum govern_state state);

#endif
