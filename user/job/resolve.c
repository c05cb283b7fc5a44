// SPDX-License-Identifier: Apache-2.0
#include "job/resolve.h"

static struct err *finish(const struct wire *in)
{
	if (in->bad || in->pos != in->size)
		return err_new(ERR_FORMAT, "resolve: the message is damaged");
	return NULL;
}

static void put_probe(struct str *out, const struct resolve_probe *probe)
{
	wire_put_u8(out, probe->by);
	wire_put_str(out, probe->text);
	wire_put_u64(out, probe->va);
	wire_put_u64(out, probe->bytes);
	wire_put_u8(out, probe->wants_entry);
	wire_put_u8(out, probe->wants_return);
	wire_put_u8(out, probe->needs_result);
	wire_put_u8(out, probe->reads_memory);
	wire_put_u32(out, probe->live);
	wire_put_u32(out, (uint32_t)probe->field_count);
	for (size_t i = 0; i < probe->field_count; i++) {
		wire_put_u8(out, probe->fields[i].arg);
		wire_put_str(out, probe->fields[i].path);
	}
}

void resolve_put_request(struct str *out, const struct resolve_request *request)
{
	wire_put_u64(out, request->module_id);
	wire_put_u32(out, (uint32_t)request->count);
	for (size_t i = 0; i < request->count; i++)
		put_probe(out, &request->probes[i]);
}

static void read_probe(struct wire *in, struct arena *arena, struct resolve_probe *probe)
{
	struct resolve_field *fields;

	probe->by = wire_u8(in);
	probe->text = wire_str(in);
	probe->va = wire_u64(in);
	probe->bytes = wire_u64(in);
	probe->wants_entry = wire_u8(in);
	probe->wants_return = wire_u8(in);
	probe->needs_result = wire_u8(in);
	probe->reads_memory = wire_u8(in);
	probe->live = wire_u32(in);
	probe->field_count = wire_count(in, RESOLVE_MAX_FIELDS, 5);
	fields = arena_array(arena, probe->field_count, sizeof(*fields));
	for (size_t i = 0; i < probe->field_count; i++) {
		fields[i].arg = wire_u8(in);
		fields[i].path = wire_str(in);
	}
	probe->fields = fields;
	in->bad |= probe->by < RESOLVE_SYMBOL || probe->by > RESOLVE_VA;
}

struct err *resolve_read_request(struct wire *in, struct arena *arena,
				 struct resolve_request *ret_request)
{
	struct resolve_probe *probes;

	ret_request->module_id = wire_u64(in);
	ret_request->count = wire_count(in, RESOLVE_MAX_PROBES, 33);
	probes = arena_array(arena, ret_request->count, sizeof(*probes));
	for (size_t i = 0; i < ret_request->count; i++)
		read_probe(in, arena, &probes[i]);
	ret_request->probes = probes;
	return finish(in);
}

static void put_sites(struct str *out, const struct resolve_target *target)
{
	wire_put_u32(out, (uint32_t)target->site_count);
	for (size_t i = 0; i < target->site_count; i++) {
		const struct resolve_site *site = &target->sites[i];

		wire_put_u64(out, site->va);
		wire_put_u64(out, site->off);
		wire_put_u8(out, site->insn);
		wire_put_u8(out, site->is_emulated);
		wire_put_u8(out, site->is_return);
		wire_put_u8(out, site->by_frame);
		wire_put_u32(out, (uint32_t)site->pushed);
	}
}

static void put_args(struct str *out, const struct resolve_target *target)
{
	wire_put_u32(out, (uint32_t)target->arg_count);
	for (size_t i = 0; i < target->arg_count; i++) {
		const struct resolve_arg *arg = &target->args[i];

		wire_put_u8(out, arg->where);
		wire_put_u8(out, arg->bytes);
		wire_put_u8(out, arg->reg);
		wire_put_u8(out, arg->is_signed);
		wire_put_u64(out, (uint64_t)arg->offset);
	}
}

static void put_fields(struct str *out, const struct resolve_target *target)
{
	wire_put_u32(out, (uint32_t)target->field_count);
	for (size_t i = 0; i < target->field_count; i++) {
		const struct resolve_offsets *field = &target->fields[i];

		for (int j = 0; j < RESOLVE_MAX_ARROWS; j++)
			wire_put_u32(out, field->offsets[j]);
		wire_put_u8(out, field->count);
		wire_put_u8(out, field->bytes);
		wire_put_u8(out, field->is_signed);
		wire_put_str(out, field->reason);
	}
}

void resolve_put_reply(struct str *out, const struct resolve_reply *reply)
{
	wire_put_u8(out, reply->throws);
	wire_put_u32(out, (uint32_t)reply->target_count);
	for (size_t i = 0; i < reply->target_count; i++) {
		const struct resolve_target *target = &reply->targets[i];

		wire_put_u32(out, target->probe);
		wire_put_u64(out, target->va);
		wire_put_u64(out, target->bytes);
		wire_put_u64(out, target->off);
		wire_put_u64(out, target->semaphore_off);
		wire_put_u8(out, target->is_emulated);
		wire_put_str(out, target->name);
		wire_put_str(out, target->return_reason);
		put_sites(out, target);
		put_args(out, target);
		put_fields(out, target);
	}
	wire_put_u32(out, (uint32_t)reply->failure_count);
	for (size_t i = 0; i < reply->failure_count; i++) {
		wire_put_u32(out, reply->failures[i].probe);
		wire_put_str(out, reply->failures[i].reason);
	}
}

static void read_sites(struct wire *in, struct arena *arena,
		       struct resolve_target *target)
{
	struct resolve_site *sites;

	target->site_count = wire_count(in, RESOLVE_MAX_SITES, 24);
	sites = arena_array(arena, target->site_count, sizeof(*sites));
	for (size_t i = 0; i < target->site_count; i++) {
		sites[i].va = wire_u64(in);
		sites[i].off = wire_u64(in);
		sites[i].insn = wire_u8(in);
		sites[i].is_emulated = wire_u8(in);
		sites[i].is_return = wire_u8(in);
		sites[i].by_frame = wire_u8(in);
		sites[i].pushed = (int32_t)wire_u32(in);
		in->bad |= sites[i].insn >= RESOLVE_INSNS || sites[i].pushed < -1;
	}
	target->sites = sites;
}

static void read_args(struct wire *in, struct arena *arena, struct resolve_target *target)
{
	struct resolve_arg *args;

	target->arg_count = wire_count(in, RESOLVE_MAX_ARGS, 12);
	args = arena_array(arena, target->arg_count, sizeof(*args));
	for (size_t i = 0; i < target->arg_count; i++) {
		args[i].where = wire_u8(in);
		args[i].bytes = wire_u8(in);
		args[i].reg = wire_u8(in);
		args[i].is_signed = wire_u8(in);
		args[i].offset = (int64_t)wire_u64(in);
		in->bad |= args[i].where > RESOLVE_CONSTANT || args[i].reg > 16;
	}
	target->args = args;
}

static void read_fields(struct wire *in, struct arena *arena,
			struct resolve_target *target)
{
	struct resolve_offsets *fields;

	target->field_count = wire_count(in, RESOLVE_MAX_FIELDS, 24);
	fields = arena_array(arena, target->field_count, sizeof(*fields));
	for (size_t i = 0; i < target->field_count; i++) {
		for (int j = 0; j < RESOLVE_MAX_ARROWS; j++)
			fields[i].offsets[j] = wire_u32(in);
		fields[i].count = wire_u8(in);
		fields[i].bytes = wire_u8(in);
		fields[i].is_signed = wire_u8(in);
		fields[i].reason = wire_str(in);
		in->bad |= fields[i].count > RESOLVE_MAX_ARROWS;
	}
	target->fields = fields;
}

static void read_target(struct wire *in, struct arena *arena,
			struct resolve_target *target)
{
	target->probe = wire_u32(in);
	target->va = wire_u64(in);
	target->bytes = wire_u64(in);
	target->off = wire_u64(in);
	target->semaphore_off = wire_u64(in);
	target->is_emulated = wire_u8(in);
	target->name = wire_str(in);
	target->return_reason = wire_str(in);
	read_sites(in, arena, target);
	read_args(in, arena, target);
	read_fields(in, arena, target);
	in->bad |= target->probe >= RESOLVE_MAX_PROBES;
}

struct err *resolve_read_reply(struct wire *in, struct arena *arena,
			       struct resolve_reply *ret_reply)
{
	struct resolve_target *targets;
	struct resolve_failure *failures;

	ret_reply->throws = wire_u8(in);
	ret_reply->target_count =
		wire_count(in, RESOLVE_MAX_PROBES * RESOLVE_MAX_MATCHES, 59);
	targets = arena_array(arena, ret_reply->target_count, sizeof(*targets));
	for (size_t i = 0; i < ret_reply->target_count && !in->bad; i++)
		read_target(in, arena, &targets[i]);
	ret_reply->failure_count = wire_count(in, RESOLVE_MAX_PROBES, 9);
	failures = arena_array(arena, ret_reply->failure_count, sizeof(*failures));
	for (size_t i = 0; i < ret_reply->failure_count; i++) {
		failures[i].probe = wire_u32(in);
		failures[i].reason = wire_str(in);
		in->bad |= failures[i].probe >= RESOLVE_MAX_PROBES;
	}
	ret_reply->targets = targets;
	ret_reply->failures = failures;
	return finish(in);
}
