// SPDX-License-Identifier: Apache-2.0
#include "cli/discovery.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"
#include "core/vec.h"

#define SPEC_PROBES    128 /* of one variant, as probe/spec.h has it */
#define SPEC_RESOURCES 64
#define SPEC_MODE      0666

struct discovery {
	VEC(struct event_candidate) all;
	struct arena *arena;
};

struct discovery *discovery_new(void)
{
	struct discovery *discovery = mem_alloc(sizeof(*discovery));

	discovery->arena = arena_new();
	return discovery;
}

void discovery_free(struct discovery *discovery)
{
	if (!discovery)
		return;
	vec_fini(&discovery->all);
	arena_free(discovery->arena);
	free(discovery);
}

void discovery_add(struct discovery *discovery, const struct event_candidate *candidate)
{
	struct arena *arena = discovery->arena;
	struct event_candidate copy = *candidate;

	copy.symbol = arena_strdup(arena, candidate->symbol);
	copy.function = arena_strdup(arena, candidate->function);
	copy.resource = arena_strdup(arena, candidate->resource);
	for (size_t i = 0; i < candidate->evidence_count; i++)
		copy.evidence[i] = arena_strdup(arena, candidate->evidence[i]);
	vec_push(&discovery->all, copy);
}

const struct event_candidate *discovery_all(const struct discovery *discovery,
					    size_t *ret_count)
{
	*ret_count = discovery->all.count;
	return discovery->all.data;
}

struct err *discovery_judge(struct discovery *discovery, size_t id,
			    const struct discovery_opinion *opinion)
{
	struct event_candidate *candidate = &discovery->all.data[id];
	struct arena *arena = discovery->arena;

	if (opinion->event) {
		enum candidate_event event = candidate_event_named(opinion->event);

		if (event == CANDIDATE_EVENTS)
			return err_new(ERR_INVALID, "there is no event '%s'",
				       opinion->event);
		candidate->event = event;
	}
	if (opinion->confidence >= 0)
		candidate->confidence = opinion->confidence;
	if (opinion->resource)
		candidate->resource = arena_strdup(arena, opinion->resource);
	if (opinion->note && candidate->evidence_count < CANDIDATE_MAX_EVIDENCE)
		candidate->evidence[candidate->evidence_count++] =
			arena_printf(arena, "ranker: %s", opinion->note);
	return NULL;
}

static int by_confidence(const void *a, const void *b)
{
	const struct event_candidate *x = a, *y = b;

	if (x->confidence != y->confidence)
		return x->confidence > y->confidence ? -1 : 1;
	return x->va != y->va ? (x->va < y->va ? -1 : 1) : (int)x->event - (int)y->event;
}

void discovery_filter(struct discovery *discovery, const struct discovery_filter *filter)
{
	size_t kept = 0;

	vec_each(&discovery->all, candidate) {
		if (candidate->confidence < filter->min_confidence ||
		    (filter->resource &&
		     strcmp(candidate->resource, filter->resource) != 0))
			continue;
		discovery->all.data[kept++] = *candidate;
	}
	discovery->all.count = kept;
	if (kept)
		qsort(discovery->all.data, kept, sizeof(*discovery->all.data),
		      by_confidence);
}

const char *discovery_object(const struct event_candidate *candidate)
{
	static const char *const args[] = {
		"arg1", "arg2", "arg3", "arg4", "arg5", "arg6"
	};

	if (candidate->object >= 0)
		return args[candidate->object];
	return candidate->object == CANDIDATE_RESULT ? "ret" : "-";
}

char *discovery_evidence(const struct event_candidate *candidate)
{
	struct str text = { 0 };

	for (size_t i = 0; i < candidate->evidence_count; i++)
		str_printf(&text, "%s%s", i ? "; " : "", candidate->evidence[i]);
	return str_take(&text);
}

/* The spec file. */

struct listed {
	const char *resource;
	unsigned events[CANDIDATE_EVENTS];
};

struct spec_list {
	VEC(const struct event_candidate *) probes;
	VEC(struct listed) resources;
};

static struct listed *list_resource(struct spec_list *list, const char *name)
{
	vec_each(&list->resources, listed)
		if (!strcmp(listed->resource, name))
			return listed;
	if (list->resources.count == SPEC_RESOURCES)
		return NULL;
	vec_push(&list->resources, ((struct listed){ .resource = name }));
	return &list->resources.data[list->resources.count - 1];
}

/* A function that waits and acquires is one probe: the wait is around the acquiring. */
static void list_probes(const struct discovery *discovery, struct spec_list *list)
{
	vec_each(&discovery->all, candidate) {
		if (list->probes.count == SPEC_PROBES)
			return;
		struct listed *listed = list_resource(list, candidate->resource);

		if (!listed)
			continue;
		listed->events[candidate->event]++;
		vec_push(&list->probes, candidate);
	}
}

static void put_quoted(struct str *out, const char *text)
{
	str_add_char(out, '\'');
	for (; *text; text++) {
		if (*text == '\'')
			str_add_char(out, '\'');
		str_add_char(out, (unsigned char)*text < ' ' ? ' ' : *text);
	}
	str_add_char(out, '\'');
}

static void put_head(struct str *out, const char *binary, const struct build_id *build_id)
{
	CLEANUP(free) char *hex = str_hex(build_id->bytes, build_id->size);
	const char *name = strrchr(binary, '/') ? strrchr(binary, '/') + 1 : binary;

	str_add(out, "# Written by assay discover: candidates, not the truth. Look at "
		     "each, drop what is none,\n# and try the rest under load: assay "
		     "spec test. The comments are the evidence.\nspec: ");
	put_quoted(out, name);
	str_add(out, "\nvariants:\n  - name: discovered\n    match:\n      - path: ");
	CLEANUP(free) char *path = mem_printf("*/%s", name);

	put_quoted(out, path);
	if (build_id->size)
		str_printf(out, "\n        build_id: %s", hex);
	str_add(out, "\n    resources:\n");
}

static void put_probe(struct str *out, const struct event_candidate *candidate,
		      size_t number)
{
	bool is_paired = candidate->event == CANDIDATE_WAIT ||
			 candidate->object == CANDIDATE_RESULT;

	str_printf(out, "      # %.2f: %s\n", candidate->confidence, candidate->function);
	for (size_t i = 0; i < candidate->evidence_count; i++)
		str_printf(out, "      #   %s\n", candidate->evidence[i]);
	str_printf(out, "      - id: %s-%zu\n        function: ",
		   candidate_event_name(candidate->event), number);
	put_quoted(out, candidate->symbol);
	if (is_paired)
		str_add(out, "\n        at: paired");
	str_printf(out, "\n        verb: resource.%s\n        resource: ",
		   candidate_event_name(candidate->event));
	put_quoted(out, candidate->resource);
	if (candidate->object != CANDIDATE_NO_OBJECT)
		str_printf(out, "\n        object: %s", discovery_object(candidate));
	str_printf(out, "\n        temperature: %s\n",
		   candidate->event == CANDIDATE_USE ? "hot" : "warm");
}

static void put_spec(struct str *out, const struct spec_list *list, const char *binary,
		     const struct build_id *build_id)
{
	size_t number = 0;

	put_head(out, binary, build_id);
	vec_each(&list->resources, listed) {
		str_add(out, "      - name: ");
		put_quoted(out, listed->resource);
		str_printf(out, "\n        kind: %s\n",
			   strstr(listed->resource, "lock") ||
					   strstr(listed->resource, "mutex")
				   ? "lock"
			   : strstr(listed->resource, "cache") ? "cache"
			   : strstr(listed->resource, "pool")  ? "pool"
			   : strstr(listed->resource, "log")   ? "log"
							       : "other");
	}
	str_add(out, "    probes:\n");
	vec_each(&list->probes, candidate)
		put_probe(out, *candidate, ++number);
}

static struct err *write_new(const char *path, const struct str *text)
{
	CLEANUP(close)
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, SPEC_MODE);

	if (fd < 0 && errno == EEXIST)
		return err_new(ERR_INVALID,
			       "%s is there already; name another file or remove it",
			       path);
	if (fd < 0)
		return err_errno(errno, "%s", path);
	struct err *err = file_write_all(fd, str_text(text), text->length);

	if (err)
		unlink(path);
	return err_wrap(err, "%s", path);
}

struct err *discovery_write_spec(const struct discovery *discovery, const char *binary,
				 const struct build_id *build_id, const char *path)
{
	CLEANUP(str_fini) struct str text = { 0 };
	struct spec_list list = { 0 };

	if (!discovery->all.count)
		return err_new(ERR_NOT_FOUND,
			       "%s: nothing was found to write a spec of; "
			       "try a lower --min-confidence",
			       binary);
	list_probes(discovery, &list);
	put_spec(&text, &list, binary, build_id);
	vec_fini(&list.probes);
	vec_fini(&list.resources);
	return write_new(path, &text);
}
