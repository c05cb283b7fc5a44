// SPDX-License-Identifier: Apache-2.0
#include "job/candidates.h"

#define LEAST_BYTES 48 /* of a candidate */

static void put_one(struct str *out, const struct event_candidate *candidate)
{
	wire_put_u8(out, (uint8_t)candidate->event);
	wire_put_u8(out, candidate->is_verified);
	wire_put_u32(out, (uint32_t)candidate->object);
	wire_put_u64(out, candidate->va);
	wire_put_u64(out, candidate->bytes);
	wire_put_double(out, candidate->confidence);
	wire_put_str(out, candidate->symbol);
	wire_put_str(out, candidate->function);
	wire_put_str(out, candidate->resource);
	wire_put_u32(out, (uint32_t)candidate->evidence_count);
	for (size_t i = 0; i < candidate->evidence_count; i++)
		wire_put_str(out, candidate->evidence[i]);
}

static void read_one(struct wire *in, struct event_candidate *candidate)
{
	candidate->event = (enum candidate_event)wire_u8(in);
	candidate->is_verified = wire_u8(in);
	candidate->object = (int)wire_u32(in);
	candidate->va = wire_u64(in);
	candidate->bytes = wire_u64(in);
	candidate->confidence = wire_double(in);
	candidate->symbol = wire_str(in);
	candidate->function = wire_str(in);
	candidate->resource = wire_str(in);
	candidate->evidence_count = wire_count(in, CANDIDATE_MAX_EVIDENCE, 4);
	for (size_t i = 0; i < candidate->evidence_count; i++)
		candidate->evidence[i] = wire_str(in);
	if (candidate->event >= CANDIDATE_EVENTS ||
	    candidate->object < CANDIDATE_RESULT || candidate->object > 5 ||
	    !(candidate->confidence >= 0 && candidate->confidence <= 1))
		in->bad = true;
}

void candidates_put(struct str *out, const struct job_candidates *candidates)
{
	wire_put_u64(out, candidates->done);
	wire_put_u64(out, candidates->total);
	wire_put_u32(out, (uint32_t)candidates->count);
	for (size_t i = 0; i < candidates->count; i++)
		put_one(out, &candidates->data[i]);
}

void candidates_read(struct wire *in, struct arena *arena,
		     struct job_candidates *ret_candidates)
{
	ret_candidates->done = wire_u64(in);
	ret_candidates->total = wire_u64(in);
	ret_candidates->count = wire_count(in, CANDIDATES_MAX_REPLY, LEAST_BYTES);
	struct event_candidate *data = arena_array(
		arena, ret_candidates->count ? ret_candidates->count : 1, sizeof(*data));

	for (size_t i = 0; i < ret_candidates->count; i++)
		read_one(in, &data[i]);
	ret_candidates->data = data;
}
