// SPDX-License-Identifier: Apache-2.0
/*
 * Each unit has at most two attachments: its entries (and ret instructions), and its
 * uretprobes, because that is a property of a link. Counters are read before and after
 * every step, so what a unit costs is known whatever else happens.
 */
#include "daemon/probes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/vec.h"
#include "model/command.h"
#include "probe/govern.h"
#include "probe/slots.h"

#define STEP_NS	    100000000ull
#define SMOOTH_NS   1000000000.0 /* ticks are few: the targets' CPU is a mean */
#define OWN_NS	    30e9
#define BEGIN_NS    5000000000ull
#define WEIGHT_STEP 0.01 /* a smaller change is not told to the kernel */

struct probe {
	uint32_t slot;
	uint64_t off, semaphore_off, va, module_id;
	uint64_t function_va, function_bytes;
	enum plan_cost cost;
	bool is_uretprobe;
	struct abi_probe plan;
	struct abi_probe_count last;
	double hits_per_s; /* while attached, recent */
	char *name, *function;
	const char *spec; /* interned below */
};

enum { ENTRIES, RETURNS, LINKS };

struct unit {
	uint64_t idle_hits; /* of an unlinked file, when they were last looked at */
	uint64_t idle_ns;   /* and since when there were no more */
	int number;	    /* of the governor */
	int fd;		    /* of the file; -1: gone */
	uint64_t inode;
	bool is_attached, is_broken;
	uint64_t since_ns; /* attached since then, or measured last */
	uint32_t links[LINKS];
	uint64_t hot_ns;
	double weight;
	VEC(struct probe *) probes;
};

struct probes {
	struct probes_config config;
	struct slots *slots;
	struct govern *govern;
	struct calibration cost;
	VEC(struct unit *) units;
	struct intern *specs;
	const char *slot_spec[ABI_MAX_SLOTS];
	uint64_t target_ns, fixed_ns, own_ns; /* collected since the last step */
	uint64_t began_ns;		      /* the first step */
	double own;			      /* CPUs of the agent, mean of OWN_NS */
	double cpus;			      /* that the targets use, recent mean */
	double cpus_now;		      /* or now, where that is more */
	uint64_t calibrated_ns, put_ns, stepped_ns;
	struct probes_gaps gaps; /* when they were last asked for */
};

static void calibrate(struct probes *probes, bool *ret_multi)
{
	struct err *err =
		broker_calibrate(probes->config.broker, &probes->cost, ret_multi);

	probes->calibrated_ns = clock_ns();
	if (!err)
		return;
	log_warn("%s, the cost of probes is a guess", err->text);
	err_free(err);
	if (!probes->cost.hit_ns[0])
		probes->cost =
			(struct calibration){ { [CALIBRATE_EMULATED] = PLAN_EMULATED_NS,
						[CALIBRATE_STEPPED] = PLAN_STEPPED_NS,
						[CALIBRATE_RETURN] = PLAN_RETURN_NS,
						[CALIBRATE_RECORD] = PLAN_RECORD_NS } };
}

struct err *probes_new(const struct probes_config *config, struct probes **ret_probes)
{
	CLEANUP(probes_free) struct probes *probes = mem_alloc(sizeof(*probes));
	struct govern_config govern = { .budget = config->budget, .key = config->key };
	bool is_multi = false;

	probes->config = *config;
	probes->specs = intern_new();
	TRY(slots_open(config->fds, &probes->slots));
	calibrate(probes, &is_multi);
	govern.no_windows = !is_multi;
	probes->govern = govern_new(&govern);
	probes->stepped_ns = clock_ns();
	*ret_probes = take(probes);
	return NULL;
}

/* Switching. */

/* The resource that a unit is about; 0: requests. */
static uint64_t resource_of(const struct unit *unit)
{
	const struct abi_probe *plan =
		unit->probes.count ? &unit->probes.data[0]->plan : NULL;

	return plan && plan->verb >= ABI_WAIT_BEGIN ? plan->resource_id : 0;
}

static void attach_link(struct probes *probes, struct unit *unit, int link,
			struct err **err)
{
	CLEANUP(free)
	struct attach_point *points = mem_array(unit->probes.count, sizeof(*points));
	struct attach_request request = { .file_fd = unit->fd,
					  .is_return = link == RETURNS,
					  .points = points };

	vec_each(&unit->probes, item) {
		const struct probe *probe = *item;

		if (probe->is_uretprobe == request.is_return)
			points[request.count++] =
				(struct attach_point){ probe->off, probe->semaphore_off,
						       probe->slot };
	}
	if (request.count && !*err)
		*err = broker_attach(probes->config.broker, &request, &unit->links[link]);
}

static void set_slot(struct probes *probes, const struct probe *probe, bool is_open)
{
	struct abi_probe plan = probe->plan;

	if (!is_open)
		plan.verb = 0; /* hits are counted, and nothing else */
	err_free(slots_set(probes->slots, probe->slot, &plan));
}

/*
 * Links take their time to come and go. What is told is exact all the same: all slots of
 * a unit open when the last link is there, and close before the first one goes.
 */
static void open_slots(struct probes *probes, struct unit *unit, bool is_open)
{
	vec_each(&unit->probes, probe)
		set_slot(probes, *probe, is_open);
	diagnosis_switch(probes->config.diagnosis, resource_of(unit), is_open);
}

/*
 * Returns first. The kernel waits until no call is under way that it must see return, and
 * gives up on a thread's calls only when it has met no uretprobe for 100 ms: a thread that
 * goes on hitting ours inside of a call that takes long would keep us waiting for ever.
 */
static void detach(struct probes *probes, struct unit *unit)
{
	if (unit->is_attached)
		open_slots(probes, unit, false);
	for (int link = LINKS - 1; link >= 0; link--) {
		if (unit->links[link])
			err_free(broker_detach(probes->config.broker, unit->links[link]));
		unit->links[link] = 0;
	}
	unit->is_attached = false;
}

static void tell_weight(struct probes *probes, struct unit *unit, double weight)
{
	double change = weight - unit->weight;

	if (change * change < WEIGHT_STEP * WEIGHT_STEP * weight * weight)
		return;
	unit->weight = weight;
	vec_each(&unit->probes, item) {
		struct probe *probe = *item;

		probe->plan.weight_milli = (uint32_t)(weight * ABI_WEIGHT_ONE);
		if (unit->is_attached)
			set_slot(probes, probe, true);
	}
}

/* Returns first: an end without a begin is only counted, the opposite would linger. */
static void attach(struct probes *probes, struct unit *unit)
{
	struct err *err = NULL;

	attach_link(probes, unit, RETURNS, &err);
	attach_link(probes, unit, ENTRIES, &err);
	unit->is_attached = true;
	unit->since_ns = clock_ns();
	/* Not before: hits while a link was made belong to no measured time. */
	vec_each(&unit->probes, item)
		(*item)->last = slots_count(probes->slots, (*item)->slot);
	open_slots(probes, unit, true);
	if (!err)
		return;
	log_warn("probe %s %s: %s, leaving it out", unit->probes.data[0]->spec,
		 unit->probes.data[0]->name, err->text);
	err_free(err);
	detach(probes, unit);
	unit->is_broken = true;
}

/* Adding. */

static uint32_t cost_of(const struct probes *probes, const struct probe *probe)
{
	return calibration_hit_ns(&probes->cost, probe->cost, &probe->plan);
}

static bool is_stream(const struct plan_point *point)
{
	return point->abi.verb == ABI_STREAM_CALL || point->abi.verb == ABI_STREAM_OPEN;
}

static bool is_request(const struct plan_point *point)
{
	return point->abi.verb < ABI_WAIT_BEGIN || is_stream(point);
}

static bool belongs(const struct plan_point *point, const struct plan_point *other)
{
	if (is_request(point) || is_request(other))
		return is_request(point) && is_request(other);
	return point->abi.resource_id == other->abi.resource_id &&
	       (point->abi.resource_id || point->probe == other->probe);
}

/* Of no use: what it would tell, nobody asks for. */
static bool is_idle(const struct probes *probes, const struct plan_point *point)
{
	return probes->config.no_streams && is_stream(point);
}

static struct err *add_point(struct probes *probes, struct unit *unit, uint64_t module_id,
			     const struct plan *plan, const struct plan_point *point)
{
	struct probe *probe = mem_alloc(sizeof(*probe));
	uint32_t spec = intern_id(probes->specs, plan->spec->name);

	vec_push(&unit->probes, probe);
	probe->off = point->off;
	probe->semaphore_off = point->semaphore_off;
	probe->va = point->va;
	probe->function_va = point->function_va;
	probe->function_bytes = point->function_bytes;
	probe->module_id = module_id;
	probe->cost = (enum plan_cost)point->cost;
	probe->is_uretprobe = point->is_uretprobe;
	probe->plan = point->abi;
	probe->plan.cost_ns = cost_of(probes, probe);
	probe->name = mem_strdup(plan->probes[point->probe].spec->id);
	probe->function = mem_strdup(point->function);
	probe->spec = intern_text(probes->specs, spec);
	probe->slot = ABI_MAX_SLOTS;
	TRY(slots_put(probes->slots, &probe->plan, &probe->slot));
	set_slot(probes, probe, false);
	probes->slot_spec[probe->slot] = probe->spec;
	diagnosis_place(probes->config.diagnosis, probe->slot, probe->function);
	return NULL;
}

static void unit_free(struct probes *probes, struct unit *unit)
{
	detach(probes, unit);
	vec_each(&unit->probes, item) {
		struct probe *probe = *item;

		if (probe->slot < ABI_MAX_SLOTS)
			slots_del(probes->slots, probe->slot);
		free(probe->name);
		free(probe->function);
		free(probe);
	}
	vec_fini(&unit->probes);
	if (unit->number >= 0)
		govern_del(probes->govern, unit->number);
	if (unit->fd >= 0)
		close(unit->fd);
	free(unit);
}

void probes_free(struct probes *probes)
{
	if (!probes)
		return;
	vec_each(&probes->units, unit)
		unit_free(probes, *unit);
	vec_fini(&probes->units);
	govern_free(probes->govern);
	slots_free(probes->slots);
	intern_free(probes->specs);
	free(probes);
}

static struct err *add_unit(struct probes *probes, uint64_t module_id, int file_fd,
			    const struct plan *plan, size_t first)
{
	struct unit *unit = mem_alloc(sizeof(*unit));
	struct stat info;

	unit->weight = 1;
	unit->idle_ns = clock_ns();
	unit->number = govern_add(probes->govern, 0);
	unit->fd = fcntl(file_fd, F_DUPFD_CLOEXEC, 0);
	vec_push(&probes->units, unit);
	if (unit->number < 0 || unit->fd < 0) {
		unit->is_broken = true;
		return err_new(ERR_LIMIT, "too many probes");
	}
	unit->inode = fstat(unit->fd, &info) ? 0 : info.st_ino;
	for (size_t i = first; i < plan->point_count; i++)
		if (belongs(&plan->points[first], &plan->points[i]) &&
		    !is_idle(probes, &plan->points[i]))
			TRY(add_point(probes, unit, module_id, plan, &plan->points[i]));
	attach(probes, unit);
	return NULL;
}

/* Names that stand in the spec come in no record. */
static void put_methods(struct probes *probes, const struct plan *plan)
{
	for (size_t i = 0; i < plan->point_count; i++) {
		const struct plan_point *point = &plan->points[i];
		const char *name = plan->probes[point->probe].spec->name_text;
		struct fact fact = { .kind = FACT_METHOD };

		if (!name || !point->abi.method_id)
			continue;
		fact.method = (struct fact_method){ point->abi.method_id,
						    plan->spec->name, name };
		sink_put(probes->config.sink, &fact);
	}
}

/* Else a begin without its end makes no request, and nobody knows why. */
static void tell_missing(const struct plan *plan)
{
	for (size_t i = 0; i < plan->probe_count; i++)
		if (*plan->probes[i].reason)
			log_notice("probe %s %s: %s, leaving it out", plan->spec->name,
				   plan->probes[i].spec->id, plan->probes[i].reason);
}

struct err *probes_add(struct probes *probes, uint64_t module_id, int file_fd,
		       const struct plan *plan)
{
	if (probes->units.count >= PROBES_MAX_FILES)
		return err_new(ERR_LIMIT, "more than %d sets of probes",
			       PROBES_MAX_FILES);
	put_methods(probes, plan);
	tell_missing(plan);
	diagnosis_declare(probes->config.diagnosis, plan);
	for (size_t i = 0; i < plan->point_count; i++) {
		bool is_first = !is_idle(probes, &plan->points[i]);

		for (size_t j = 0; j < i; j++)
			is_first &= is_idle(probes, &plan->points[j]) ||
				    !belongs(&plan->points[j], &plan->points[i]);
		if (is_first)
			TRY(add_unit(probes, module_id, file_fd, plan, i));
	}
	log_info("%zu probes of spec %s are on", plan->point_count, plan->spec->name);
	return NULL;
}

/* Steps. */

static uint64_t measure(struct probes *probes, struct unit *unit, uint64_t interval_ns)
{
	uint64_t cost_ns = 0;

	vec_each(&unit->probes, item) {
		struct probe *probe = *item;
		struct abi_probe_count now = slots_count(probes->slots, probe->slot);
		uint64_t hits = now.hits - probe->last.hits;

		probe->last = now;
		probe->hits_per_s = (double)hits * 1e9 / (double)interval_ns;
		cost_ns += hits * cost_of(probes, probe);
	}
	return cost_ns;
}

static void put_unit(struct probes *probes, const struct unit *unit)
{
	struct govern_unit now = govern_unit(probes->govern, unit->number);

	vec_each(&unit->probes, item) {
		const struct probe *probe = *item;
		struct abi_probe_count count = slots_count(probes->slots, probe->slot);
		uint64_t id[5] = { probe->module_id, probe->va, probe->plan.spec_id,
				   probe->plan.probe_id, unit->inode };
		struct fact fact = { .kind = FACT_PROBE };

		fact.probe = (struct fact_probe){
			.run_id = probes->config.run_id,
			.probe_id = hash_bytes(id, sizeof(id), probe->is_uretprobe),
			.module_id = probe->module_id,
			.va = probe->va,
			.spec = probe->spec,
			.name = probe->name,
			.function = probe->function,
			.state = govern_state_name(now.state),
			.hits = count.hits,
			.skipped = count.skipped + count.foreign,
			.unread = count.unknown,
			.dropped = count.dropped,
			.hit_ns = cost_of(probes, probe),
			.share = now.share,
			.duty = now.duty,
			.hot_ns = now.became_hot_ns,
		};
		sink_put(probes->config.sink, &fact);
	}
}

static void note_hot(struct probes *probes, struct unit *unit,
		     const struct govern_unit *now)
{
	if (now->became_hot_ns == unit->hot_ns)
		return;
	unit->hot_ns = now->became_hot_ns;
	log_warn("probe %s %s became hot, it is off but for windows",
		 unit->probes.data[0]->spec, unit->probes.data[0]->name);
	put_unit(probes, unit);
}

static void measure_unit(struct probes *probes, struct unit *unit, uint64_t now_ns)
{
	uint64_t for_ns = now_ns - unit->since_ns;

	govern_measure(probes->govern, unit->number, measure(probes, unit, for_ns),
		       (uint64_t)(probes->cpus_now * (double)for_ns), for_ns);
	unit->since_ns = now_ns;
}

/* On for less than a step. Waiting here is shorter than attaching and detaching. */
static void pulse(struct probes *probes, struct unit *unit, uint64_t pulse_ns)
{
	struct timespec wait = { .tv_nsec = (long)pulse_ns };

	attach(probes, unit);
	govern_pulsed(probes->govern, unit->number);
	if (!unit->is_attached)
		return;
	nanosleep(&wait, NULL);
	measure_unit(probes, unit, clock_ns());
	detach(probes, unit);
}

static void switch_unit(struct probes *probes, struct unit *unit)
{
	struct govern_unit now = govern_unit(probes->govern, unit->number);

	note_hot(probes, unit, &now);
	if (now.weight)
		tell_weight(probes, unit, now.weight);
	if (now.is_wanted && now.pulse_ns && !unit->is_attached)
		pulse(probes, unit, now.pulse_ns);
	else if (now.is_wanted && !unit->is_attached)
		attach(probes, unit);
	else if (!now.is_wanted && unit->is_attached)
		detach(probes, unit);
}

static uint64_t hits_of(const struct probes *probes, const struct unit *unit)
{
	uint64_t hits = 0;

	vec_each(&unit->probes, probe)
		hits += slots_count(probes->slots, (*probe)->slot).hits;
	return hits;
}

/* A file without a name, as an upgrade leaves behind, that nobody seems to run any more. */
static bool is_abandoned(const struct probes *probes, struct unit *unit, uint64_t now_ns)
{
	uint64_t hits = hits_of(probes, unit);
	struct stat info;

	if (fstat(unit->fd, &info) || info.st_nlink || hits != unit->idle_hits)
		unit->idle_ns = now_ns;
	unit->idle_hits = hits;
	return now_ns - unit->idle_ns >= PROBES_ABANDONED_NS;
}

static void drop_abandoned(struct probes *probes, uint64_t now_ns)
{
	for (size_t i = probes->units.count; i-- > 0;) {
		struct unit *unit = probes->units.data[i];

		if (!is_abandoned(probes, unit, now_ns))
			continue;
		unit_free(probes, unit);
		probes->units.data[i] = probes->units.data[--probes->units.count];
	}
}

/* The kernel charges our own hits to requests at this price. */
static void calibrate_again(struct probes *probes)
{
	bool ignored;

	calibrate(probes, &ignored);
	vec_each(&probes->units, unit) {
		vec_each(&(*unit)->probes, item) {
			struct probe *probe = *item;

			probe->plan.cost_ns = cost_of(probes, probe);
			set_slot(probes, probe, (*unit)->is_attached);
		}
	}
}

static void put_all(struct probes *probes, uint64_t now_ns)
{
	if (now_ns - probes->calibrated_ns >= PROBES_CALIBRATE_NS)
		calibrate_again(probes);
	if (now_ns - probes->put_ns < PROBES_PUT_NS)
		return;
	probes->put_ns = now_ns;
	vec_each(&probes->units, unit)
		put_unit(probes, *unit);
	drop_abandoned(probes, now_ns);
}

static void measure_all(struct probes *probes, uint64_t now_ns)
{
	vec_each(&probes->units, unit)
		if ((*unit)->is_attached && now_ns - (*unit)->since_ns >= STEP_NS / 2)
			measure_unit(probes, *unit, now_ns);
}

/* Of the last interval, or of the last second when that was more. */
static double cpus_now(struct probes *probes, uint64_t interval_ns)
{
	double now = (double)probes->target_ns / (double)interval_ns;
	double part = (double)interval_ns / (SMOOTH_NS + (double)interval_ns);

	probes->cpus += part * (now - probes->cpus);
	if (now < probes->cpus)
		now = probes->cpus;
	return now > GOVERN_FLOOR ? now : GOVERN_FLOOR;
}

/* CPUs that the agent itself uses, as a mean over OWN_NS: what it takes to begin, or to
 * learn a new module, is no reason to switch probes. */
static void measure_own(struct probes *probes, uint64_t now_ns, uint64_t interval_ns)
{
	double now = (double)probes->own_ns / (double)interval_ns;
	double part = (double)interval_ns / (OWN_NS + (double)interval_ns);

	if (!probes->began_ns)
		probes->began_ns = now_ns;
	if (now_ns - probes->began_ns > BEGIN_NS)
		probes->own += part * (now - probes->own);
}

/*
 * The share of what is never switched. What the agent itself uses does not slow its targets
 * as long as there is CPU to spare: of a whole CPU the budget is for both together, below
 * that what is left of it is the agent's alone.
 */
static double fixed_share(const struct probes *probes, uint64_t interval_ns)
{
	double hooks = (double)probes->fixed_ns / (double)interval_ns;
	double own = probes->own;

	if (probes->cpus_now < 1)
		own -= probes->config.budget * (1 - probes->cpus_now);
	return (hooks + (own > 0 ? own : 0)) / probes->cpus_now;
}

void probes_step(struct probes *probes, const struct hooks_step *step)
{
	uint64_t now_ns = clock_ns(), interval_ns = now_ns - probes->stepped_ns;

	probes->target_ns += step->target_ns;
	probes->fixed_ns += step->fixed_ns;
	probes->own_ns += step->own_ns;
	if (interval_ns < STEP_NS * 9 / 10) /* timers are not exact */
		return;
	probes->cpus_now = cpus_now(probes, interval_ns);
	measure_own(probes, now_ns, interval_ns);
	measure_all(probes, now_ns);
	govern_fixed(probes->govern, fixed_share(probes, interval_ns), interval_ns);
	govern_step(probes->govern, realtime_ns());
	vec_each(&probes->units, item)
		if (!(*item)->is_broken)
			switch_unit(probes, *item);
	probes->target_ns = probes->fixed_ns = probes->own_ns = 0;
	probes->stepped_ns = now_ns;
	put_all(probes, now_ns);
}

struct probes_gaps probes_gaps(struct probes *probes)
{
	struct probes_gaps now = { 0 }, since;

	vec_each(&probes->units, unit) {
		vec_each(&(*unit)->probes, item) {
			struct abi_probe_count count =
				slots_count(probes->slots, (*item)->slot);

			now.unread += count.silent_unread;
			now.untracked += count.silent_untracked;
		}
	}
	/* Units that have gone take theirs along. */
	since.unread =
		now.unread > probes->gaps.unread ? now.unread - probes->gaps.unread : 0;
	since.untracked = now.untracked > probes->gaps.untracked
				  ? now.untracked - probes->gaps.untracked
				  : 0;
	probes->gaps = now;
	return since;
}

/* Only pairs: what begins elsewhere may be over in there. */
static bool is_inside(const struct probe *probe, uint64_t module_id, uint64_t va)
{
	return probe->module_id == module_id && va >= probe->function_va &&
	       va - probe->function_va < probe->function_bytes &&
	       probe->plan.flags & ABI_PROBE_PAIRED &&
	       !(probe->plan.flags & ABI_PROBE_RETURN) &&
	       probe->plan.verb >= ABI_WAIT_BEGIN;
}

void probes_inside(const struct probes *probes, uint64_t module_id, uint64_t va,
		   probes_inside_fn each, void *ctx)
{
	vec_each(&probes->units, unit) {
		vec_each(&(*unit)->probes, probe) {
			if (is_inside(*probe, module_id, va))
				each(ctx, &(*probe)->plan, (*probe)->slot);
		}
	}
}

const char *probes_framework(const struct probes *probes, uint32_t slot)
{
	return slot < ABI_MAX_SLOTS && probes->slot_spec[slot] ? probes->slot_spec[slot]
							       : "";
}

static void add_share(struct str *reply, const char *key, double share)
{
	CLEANUP(free) char *text = mem_printf("%.6f", share);

	command_add(reply, key, text);
}

static void probe_status(const struct probes *probes, const struct unit *unit,
			 const struct probe *probe, struct str *reply)
{
	struct govern_unit now = govern_unit(probes->govern, unit->number);
	struct abi_probe_count count = slots_count(probes->slots, probe->slot);

	reply_ok(reply);
	command_add(reply, "what", "probe");
	command_add(reply, "spec", probe->spec);
	command_add(reply, "probe", probe->name);
	command_add(reply, "function", probe->function);
	command_add(reply, "state",
		    unit->is_broken ? "refused" : govern_state_name(now.state));
	command_add_number(reply, "attached", unit->is_attached);
	command_add_number(reply, "hits", count.hits);
	command_add_number(reply, "hits_per_s", (uint64_t)probe->hits_per_s);
	command_add_number(reply, "hit_ns", cost_of(probes, probe));
	add_share(reply, "share", now.share);
	add_share(reply, "duty", now.duty);
	add_share(reply, "weight", now.weight);
	command_add_number(reply, "skipped", count.skipped);
	command_add_number(reply, "foreign", count.foreign);
	command_add_number(reply, "unpaired", count.unpaired);
	command_add_number(reply, "unread", count.unknown);
	command_add_number(reply, "dropped", count.dropped);
	command_end(reply);
}

void probes_status(const struct probes *probes, struct str *reply)
{
	vec_each(&probes->units, unit)
		vec_each(&(*unit)->probes, probe)
			probe_status(probes, *unit, *probe, reply);
}
