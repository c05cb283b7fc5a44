// SPDX-License-Identifier: Apache-2.0
/*
 * Two clocks. At every step a unit that cost more than a burst in one interval is taken
 * off: a function may turn hot within a second. The rest is slow and has hysteresis: units
 * leave ON when the sum exceeds the budget, dearest first, until 80% are left; one comes
 * back when the sum with it stayed below half of the budget for ten seconds.
 */
#include "probe/govern.h"

#include <string.h>

#include "core/intern.h"
#include "core/mem.h"

#define KEEP	    0.8 /* of the budget is aimed at: what it costs is estimated */
#define RETURN	    0.5 /* of the budget, for a unit to come back */
#define TRIFLE	    0.02 /* of the budget: not worth to be switched off, whatever else is */
#define WINDOW_PART 0.2	 /* of the budget at least is for windows */
#define PULSE_PART  0.25 /* of the mean is the last short window */
#define SMOOTH_NS   1000000000.0
#define FIXED_NS    10000000000.0 /* what is not switched comes in bursts: a flush */

struct unit {
	struct govern_unit now;
	uint64_t calm_since_ns; /* fits since then; 0: does not */
	uint64_t retry_ns;	/* length of the next pause */
	uint64_t back_ns;	/* CUT: end of the pause */
	bool is_used;
	bool is_trial;	     /* the next window is the shortest: it was cut */
	bool was_trial;	     /* and the last one was */
	uint64_t spent_slot; /* it has had, or may not have, the window of this slot */
	double measured_ns;  /* for so long */
	double last_share;   /* of the last interval alone; 0 when it was acted upon */
	uint32_t order;	     /* among the windowed */
};

struct govern {
	struct govern_config config;
	double fixed, fixed_ns; /* mean share; over so long, up to FIXED_NS */
	double chance;		/* of a window in this slot: decided once, as it begins */
	struct unit units[GOVERN_MAX_UNITS];
	int count; /* used ones are below */
	uint32_t windowed;
	uint64_t slot; /* of the last step */
};

struct govern *govern_new(const struct govern_config *config)
{
	struct govern *govern = mem_alloc(sizeof(*govern));

	govern->config = *config;
	if (!govern->config.budget)
		govern->config.budget = GOVERN_BUDGET;
	if (!govern->config.burst)
		govern->config.burst = GOVERN_BURST;
	if (!govern->config.slot_ns)
		govern->config.slot_ns = GOVERN_SLOT_NS;
	if (!govern->config.window_ns)
		govern->config.window_ns = GOVERN_WINDOW_NS;
	return govern;
}

void govern_free(struct govern *govern)
{
	free(govern);
}

int govern_add(struct govern *govern, double expected_share)
{
	for (int i = 0; i < GOVERN_MAX_UNITS; i++) {
		struct unit *unit = &govern->units[i];

		if (unit->is_used)
			continue;
		*unit = (struct unit){ .is_used = true, .retry_ns = GOVERN_RETRY_NS };
		unit->now = (struct govern_unit){ .state = GOVERN_ON,
						  .is_wanted = true,
						  .share = expected_share,
						  .duty = 1,
						  .weight = 1 };
		if (i >= govern->count)
			govern->count = i + 1;
		return i;
	}
	return -1;
}

void govern_del(struct govern *govern, int unit)
{
	govern->units[unit].is_used = false;
}

void govern_fixed(struct govern *govern, double share, uint64_t interval_ns)
{
	double ns = (double)interval_ns;

	govern->fixed_ns += ns;
	if (govern->fixed_ns > FIXED_NS)
		govern->fixed_ns = FIXED_NS;
	if (ns > govern->fixed_ns)
		ns = govern->fixed_ns;
	if (ns > 0)
		govern->fixed += ns / govern->fixed_ns * (share - govern->fixed);
}

void govern_measure(struct govern *govern, int at, uint64_t cost_ns, uint64_t target_ns,
		    uint64_t interval_ns)
{
	struct unit *unit = &govern->units[at];
	double floor_ns = GOVERN_FLOOR * (double)interval_ns;

	if (!interval_ns)
		return;
	double base_ns = (double)target_ns > floor_ns ? (double)target_ns : floor_ns;
	double share = (double)cost_ns / base_ns;
	double part = (double)interval_ns / (SMOOTH_NS + (double)interval_ns);

	unit->last_share = share;
	/* A plain mean at first. */
	if (unit->measured_ns < SMOOTH_NS)
		part = (double)interval_ns / (unit->measured_ns + (double)interval_ns);
	else if (unit->now.pulse_ns && part < PULSE_PART)
		part = PULSE_PART;
	unit->measured_ns += (double)interval_ns;
	unit->now.share += part * (share - unit->now.share);
}

#define each_unit(govern, unit)                                \
	for (struct unit *unit = (govern)->units;              \
	     unit < (govern)->units + (govern)->count; unit++) \
		if (unit->is_used)

static void cut(struct unit *unit, uint64_t now_ns)
{
	unit->now.state = GOVERN_CUT;
	unit->now.became_hot_ns = now_ns;
	unit->back_ns = now_ns + unit->retry_ns;
	unit->retry_ns *= 2;
	if (unit->retry_ns > GOVERN_RETRY_MAX)
		unit->retry_ns = GOVERN_RETRY_MAX;
}

/* How long a unit of this share may be on in any GOVERN_BURST_NS. */
static double allowed_ns(const struct govern *govern, double share)
{
	return (double)GOVERN_BURST_NS * govern->config.burst / share;
}

static void to_windows(struct unit *unit)
{
	unit->now.state = GOVERN_WINDOWED;
	unit->calm_since_ns = 0;
}

/* What it cost in its last interval: for how long may it be on at all? One short window
 * says little, so there the mean counts. */
static void judge_last(struct govern *govern, struct unit *unit, uint64_t now_ns)
{
	double share = unit->last_share;
	bool was_pulse = unit->now.pulse_ns && !unit->was_trial;

	unit->last_share = 0;
	if (was_pulse && share > unit->now.share)
		share = unit->now.share;
	if (share <= govern->config.burst)
		return;
	if (allowed_ns(govern, share) < (double)GOVERN_SHORT_NS) {
		cut(unit, now_ns);
		return;
	}
	if (unit->now.state == GOVERN_ON)
		unit->now.became_hot_ns = now_ns;
	to_windows(unit);
	/* A mean that does not know of it yet would leave it its long windows. */
	if (unit->now.share < share)
		unit->now.share = share;
	unit->spent_slot = now_ns / govern->config.slot_ns;
}

static void cut_or_retry(struct govern *govern, uint64_t now_ns)
{
	each_unit(govern, unit)
	{
		if (unit->now.state != GOVERN_CUT) {
			judge_last(govern, unit, now_ns);
		} else if (now_ns >= unit->back_ns) {
			to_windows(unit);
			unit->is_trial = true;
		}
	}
}

static double sum_of(struct govern *govern, enum govern_state state)
{
	double sum = 0;

	each_unit(govern, unit) if (unit->now.state == state) sum += unit->now.share;
	return sum;
}

static struct unit *dearest(struct govern *govern)
{
	struct unit *found = NULL;

	each_unit(govern, unit) if (unit->now.state == GOVERN_ON &&
				    (!found || unit->now.share > found->now.share))
		found = unit;
	return found;
}

static void make_room(struct govern *govern)
{
	double limit = govern->config.budget, sum = govern->fixed;

	/* What a unit costs is not known within its first second; bursts are. */
	each_unit(govern, unit) if (unit->now.state == GOVERN_ON &&
				    unit->measured_ns >= SMOOTH_NS) sum +=
		unit->now.share;
	if (sum <= limit)
		return;
	for (struct unit *unit; sum > KEEP * limit && (unit = dearest(govern));) {
		if (unit->now.share < TRIFLE * limit)
			return;
		sum -= unit->now.share;
		to_windows(unit);
	}
}

static void take_back(struct govern *govern, uint64_t now_ns)
{
	double limit = RETURN * govern->config.budget;
	double trifle = TRIFLE * govern->config.budget / 2;
	double sum = govern->fixed + sum_of(govern, GOVERN_ON);

	each_unit(govern, unit)
	{
		if (unit->now.state != GOVERN_WINDOWED)
			continue;
		if (unit->measured_ns < SMOOTH_NS ||
		    (sum + unit->now.share > limit && unit->now.share > trifle)) {
			unit->calm_since_ns = 0;
			continue;
		}
		if (!unit->calm_since_ns)
			unit->calm_since_ns = now_ns;
		if (now_ns - unit->calm_since_ns < GOVERN_CALM_NS)
			continue;
		unit->now.state = GOVERN_ON;
		unit->retry_ns = GOVERN_RETRY_NS;
		sum += unit->now.share;
	}
}

/* Windows. */

/* What limits the window of a unit that is too dear for a whole one; 0: nothing. */
static uint64_t pulse_of(const struct govern *govern, const struct unit *unit)
{
	if (unit->is_trial)
		return GOVERN_SHORT_NS;
	if (unit->now.share <= govern->config.burst)
		return 0;
	double ns = allowed_ns(govern, unit->now.share);

	return ns > (double)GOVERN_SHORT_NS ? (uint64_t)ns : GOVERN_SHORT_NS;
}

/* Its cost over a whole window, as a share. */
static double window_share(const struct govern *govern, const struct unit *unit)
{
	uint64_t pulse_ns = pulse_of(govern, unit);

	if (!pulse_ns)
		return unit->now.share;
	return unit->now.share * (double)pulse_ns / (double)govern->config.window_ns;
}

/* How many windowed units from the @first on are on together: one at least. A unit whose
 * window is cut short has it alone. */
static uint32_t fit(const struct govern *govern, const double *shares, uint32_t first)
{
	double sum = 0;
	uint32_t taken = 0;

	while (taken < govern->windowed) {
		sum += shares[(first + taken) % govern->windowed];
		if (taken && sum > govern->config.burst)
			break;
		taken++;
	}
	return taken;
}

/* The share of slots that have a window: what is left of the budget over what one costs. */
static double slot_chance(struct govern *govern, double in_window)
{
	const struct govern_config *config = &govern->config;
	double left = KEEP * config->budget - govern->fixed - sum_of(govern, GOVERN_ON);
	double part = (double)config->window_ns / (double)config->slot_ns;

	if (left < WINDOW_PART * config->budget)
		left = WINDOW_PART * config->budget;
	double chance = in_window > 0 ? left / (in_window * part) : 1;

	return chance < 1 ? chance : 1;
}

/* Uniform in [0, 1) from the slot's hash; @which: an independent draw. */
static double draw(const struct govern *govern, uint64_t slot, uint64_t which)
{
	uint64_t words[2] = { slot, which };

	return (double)(hash_bytes(words, sizeof(words), govern->config.key) >> 11) /
	       9007199254740992.0;
}

static bool in_window(const struct govern *govern, uint64_t now_ns, double chance)
{
	const struct govern_config *config = &govern->config;
	uint64_t slot = now_ns / config->slot_ns, at_ns = now_ns % config->slot_ns;

	if (draw(govern, slot, 0) >= chance)
		return false;
	double room = (double)(config->slot_ns - config->window_ns);
	uint64_t begin_ns = (uint64_t)(draw(govern, slot, 1) * room);

	return at_ns >= begin_ns && at_ns < begin_ns + config->window_ns;
}

/* Every rotation is equally likely, so a unit's chance is in how many it takes part. */
static void set_duties(struct govern *govern, const double *shares, double chance)
{
	CLEANUP(free) uint32_t *parts = mem_array(govern->windowed, sizeof(*parts));

	for (uint32_t first = 0; first < govern->windowed; first++)
		for (uint32_t i = 0, n = fit(govern, shares, first); i < n; i++)
			parts[(first + i) % govern->windowed]++;
	each_unit(govern, unit)
	{
		if (unit->now.state != GOVERN_WINDOWED)
			continue;
		uint64_t on_ns = unit->now.pulse_ns ?: govern->config.window_ns;
		double part = (double)on_ns / (double)govern->config.slot_ns;

		unit->now.duty = part * chance * parts[unit->order] / govern->windowed;
		unit->now.weight = 1 / unit->now.duty;
	}
}

static void decide_windows(struct govern *govern, uint64_t now_ns)
{
	CLEANUP(free) double *shares = mem_array(govern->windowed, sizeof(*shares));
	CLEANUP(free) double *costs = mem_array(govern->windowed, sizeof(*costs));
	uint64_t slot = now_ns / govern->config.slot_ns;
	uint32_t windowed = govern->windowed;
	double mean = 0;

	each_unit(govern, unit)
	{
		if (unit->now.state != GOVERN_WINDOWED)
			continue;
		unit->now.pulse_ns = pulse_of(govern, unit);
		/* More than fits with any other: alone. */
		shares[unit->order] =
			unit->now.pulse_ns ? 2 * govern->config.burst : unit->now.share;
		costs[unit->order] = window_share(govern, unit);
	}
	for (uint32_t first = 0; first < windowed; first++)
		for (uint32_t i = 0, n = fit(govern, shares, first); i < n; i++)
			mean += costs[(first + i) % windowed] / windowed;
	if (slot != govern->slot)
		govern->chance = slot_chance(govern, mean);
	uint32_t first = (uint32_t)(draw(govern, slot, 2) * windowed);
	uint32_t taken = in_window(govern, now_ns, govern->chance)
				 ? fit(govern, shares, first)
				 : 0;

	each_unit(govern, unit) if (unit->now.state == GOVERN_WINDOWED)
		unit->now.is_wanted = unit->spent_slot != slot &&
				      (unit->order + windowed - first) % windowed < taken;
	set_duties(govern, shares, govern->chance);
	govern->slot = slot;
}

void govern_pulsed(struct govern *govern, int at)
{
	struct unit *unit = &govern->units[at];

	unit->spent_slot = govern->slot;
	unit->was_trial = unit->is_trial;
	unit->is_trial = false;
}

static void settle(struct govern *govern)
{
	govern->windowed = 0;
	each_unit(govern, unit)
	{
		bool is_on = unit->now.state == GOVERN_ON;

		unit->now.pulse_ns = 0;
		if (unit->now.state == GOVERN_WINDOWED && !govern->config.no_windows) {
			unit->order = govern->windowed++;
			continue;
		}
		unit->now.is_wanted = is_on;
		unit->now.duty = unit->now.weight = is_on ? 1 : 0;
	}
}

void govern_step(struct govern *govern, uint64_t now_ns)
{
	cut_or_retry(govern, now_ns);
	make_room(govern);
	take_back(govern, now_ns);
	settle(govern);
	if (govern->windowed)
		decide_windows(govern, now_ns);
}

struct govern_unit govern_unit(const struct govern *govern, int unit)
{
	return govern->units[unit].now;
}

const char *govern_state_name(enum govern_state state)
{
	static const char *const names[] = { "", "on", "windows", "cut" };

	return names[state];
}
