// SPDX-License-Identifier: Apache-2.0
#include "job/message.h"

static struct err *finish(const struct wire *in, const char *what)
{
	if (in->bad || in->pos != in->size)
		return err_new(ERR_FORMAT, "%s: the message is damaged", what);
	return NULL;
}

static void put_id(struct str *out, const struct build_id *id)
{
	wire_put_bytes(out, id->bytes, id->size);
}

static struct build_id read_id(struct wire *in)
{
	struct build_id id = { 0 };
	size_t length;
	const void *bytes = wire_bytes(in, &length);

	if (length > BUILD_ID_MAX) {
		in->bad = true;
	} else if (length) {
		memcpy(id.bytes, bytes, length);
		id.size = (uint8_t)length;
	}
	return id;
}

void message_put_open(struct str *out, const struct message_open *open)
{
	wire_put_u64(out, open->module_id);
	wire_put_u64(out, open->slide);
	wire_put_u8(out, open->has_main);
	wire_put_u8(out, open->has_debug);
	wire_put_u8(out, open->has_alt);
	wire_put_u8(out, open->has_kallsyms);
	wire_put_u8(out, open->has_pack);
	wire_put_u8(out, open->keeps);
}

struct err *message_read_open(struct wire *in, struct message_open *ret_open)
{
	ret_open->module_id = wire_u64(in);
	ret_open->slide = wire_u64(in);
	ret_open->has_main = wire_u8(in);
	ret_open->has_debug = wire_u8(in);
	ret_open->has_alt = wire_u8(in);
	ret_open->has_kallsyms = wire_u8(in);
	ret_open->has_pack = wire_u8(in);
	ret_open->keeps = wire_u8(in);
	return finish(in, "open");
}

void message_put_vas(struct str *out, const struct message_vas *vas)
{
	wire_put_u64(out, vas->module_id);
	wire_put_u32(out, (uint32_t)vas->count);
	for (size_t i = 0; i < vas->count; i++)
		wire_put_u64(out, vas->vas[i]);
}

struct err *message_read_vas(struct wire *in, struct arena *arena,
			     struct message_vas *ret_vas)
{
	ret_vas->module_id = wire_u64(in);
	ret_vas->count = wire_count(in, MESSAGE_MAX_VAS, sizeof(uint64_t));
	uint64_t *vas = arena_array(arena, ret_vas->count, sizeof(*vas));

	for (size_t i = 0; i < ret_vas->count; i++)
		vas[i] = wire_u64(in);
	ret_vas->vas = vas;
	return finish(in, "symbols");
}

void message_put_unwind(struct str *out, const struct message_unwind *unwind)
{
	wire_put_u32(out, (uint32_t)unwind->range_count);
	for (size_t i = 0; i < unwind->range_count; i++) {
		const struct job_range *range = &unwind->ranges[i];

		wire_put_u64(out, range->start);
		wire_put_u64(out, range->end);
		wire_put_u64(out, range->bias);
		wire_put_u64(out, range->module_id);
	}
	for (int i = 0; i < 17; i++)
		wire_put_u64(out, unwind->stack.regs[i]);
	wire_put_u8(out, unwind->stack.cut);
	wire_put_bytes(out, unwind->stack.bytes, unwind->stack.byte_count);
}

struct err *message_read_unwind(struct wire *in, struct arena *arena,
				struct message_unwind *ret_unwind)
{
	uint64_t last_end = 0;

	ret_unwind->range_count = wire_count(in, MESSAGE_MAX_RANGES, 32);
	struct job_range *ranges =
		arena_array(arena, ret_unwind->range_count, sizeof(*ranges));

	for (size_t i = 0; i < ret_unwind->range_count; i++) {
		ranges[i].start = wire_u64(in);
		ranges[i].end = wire_u64(in);
		ranges[i].bias = wire_u64(in);
		ranges[i].module_id = wire_u64(in);
		if (ranges[i].start < last_end || ranges[i].end < ranges[i].start)
			return err_new(ERR_INVALID, "unwind: ranges are not sorted");
		last_end = ranges[i].end;
	}
	ret_unwind->ranges = ranges;
	for (int i = 0; i < 17; i++)
		ret_unwind->stack.regs[i] = wire_u64(in);
	ret_unwind->stack.cut = wire_u8(in);
	ret_unwind->stack.bytes = wire_bytes(in, &ret_unwind->stack.byte_count);
	return finish(in, "unwind");
}

void message_put_sites(struct str *out, const struct message_sites *sites)
{
	wire_put_u64(out, sites->module_id);
	wire_put_u32(out, (uint32_t)sites->count);
	for (size_t i = 0; i < sites->count; i++) {
		wire_put_u64(out, sites->sites[i].va);
		wire_put_u8(out, sites->sites[i].skid);
	}
}

struct err *message_read_sites(struct wire *in, struct arena *arena,
			       struct message_sites *ret_sites)
{
	ret_sites->module_id = wire_u64(in);
	ret_sites->count = wire_count(in, JOB_MAX_SITES, 9);
	struct job_site *sites = arena_array(arena, ret_sites->count, sizeof(*sites));

	for (size_t i = 0; i < ret_sites->count; i++) {
		sites[i].va = wire_u64(in);
		sites[i].skid = wire_u8(in);
	}
	ret_sites->sites = sites;
	return finish(in, "sites");
}

void message_put_fetch(struct str *out, const struct message_fetch *fetch)
{
	wire_put_str(out, fetch->urls);
	put_id(out, &fetch->id);
}

struct err *message_read_fetch(struct wire *in, struct message_fetch *ret_fetch)
{
	ret_fetch->urls = wire_str(in);
	ret_fetch->id = read_id(in);
	return finish(in, "debug file");
}

void message_put_error(struct str *out, const struct err *err)
{
	char text[MESSAGE_MAX_TEXT];

	/* Foreign names may be part of the text: keep it one printable line. */
	size_t length = strnlen(err->text, sizeof(text) - 1);

	for (size_t i = 0; i < length; i++)
		text[i] = (unsigned char)err->text[i] < ' ' ? '?' : err->text[i];
	text[length] = '\0';
	wire_put_u32(out, err->code);
	wire_put_u32(out, (uint32_t)err->errnum);
	wire_put_str(out, text);
}

struct err *message_read_error(struct wire *in)
{
	uint32_t code = wire_u32(in);
	uint32_t errnum = wire_u32(in);
	const char *text = wire_str(in);
	struct err *bad = finish(in, "error");

	if (bad)
		return bad;
	if (code < ERR_IO || code > ERR_CLOSED)
		code = ERR_FORMAT;
	struct err *err = err_new(code, "%.*s", MESSAGE_MAX_TEXT, text);

	err->errnum = (int)errnum;
	return err;
}

static void put_identity(struct str *out, const struct job_identity *identity)
{
	put_id(out, &identity->build_id);
	wire_put_u8(out, identity->is_executable);
	wire_put_u8(out, identity->has_dwarf);
	wire_put_u8(out, identity->has_symtab);
	wire_put_u8(out, identity->has_cfi);
	wire_put_str(out, identity->soname);
	wire_put_str(out, identity->debuglink);
	wire_put_u32(out, identity->debuglink_crc);
	wire_put_str(out, identity->altlink);
	put_id(out, &identity->altlink_id);
	wire_put_u32(out, (uint32_t)identity->segment_count);
	for (size_t i = 0; i < identity->segment_count; i++) {
		wire_put_u64(out, identity->segments[i].off);
		wire_put_u64(out, identity->segments[i].va);
		wire_put_u64(out, identity->segments[i].file_bytes);
	}
}

static void read_identity(struct wire *in, struct job_identity *identity)
{
	identity->build_id = read_id(in);
	identity->is_executable = wire_u8(in);
	identity->has_dwarf = wire_u8(in);
	identity->has_symtab = wire_u8(in);
	identity->has_cfi = wire_u8(in);
	identity->soname = wire_str(in);
	identity->debuglink = wire_str(in);
	identity->debuglink_crc = wire_u32(in);
	identity->altlink = wire_str(in);
	identity->altlink_id = read_id(in);
	identity->segment_count = wire_count(in, JOB_MAX_SEGMENTS, 24);
	for (size_t i = 0; i < identity->segment_count; i++) {
		identity->segments[i].off = wire_u64(in);
		identity->segments[i].va = wire_u64(in);
		identity->segments[i].file_bytes = wire_u64(in);
	}
}

static void put_symbols(struct str *out, const struct job_symbol *symbols, size_t count)
{
	wire_put_u32(out, (uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		wire_put_u64(out, symbols[i].va);
		wire_put_u64(out, symbols[i].function_va);
		wire_put_u64(out, symbols[i].function_bytes);
		wire_put_str(out, symbols[i].function);
		wire_put_str(out, symbols[i].function_file);
		wire_put_str(out, symbols[i].file);
		wire_put_u32(out, symbols[i].function_line);
		wire_put_u32(out, symbols[i].line);
	}
}

static void read_symbols(struct wire *in, struct arena *arena, struct job_reply *reply)
{
	size_t count = wire_count(in, MESSAGE_MAX_VAS, 47);
	struct job_symbol *symbols = arena_array(arena, count, sizeof(*symbols));

	for (size_t i = 0; i < count; i++) {
		symbols[i].va = wire_u64(in);
		symbols[i].function_va = wire_u64(in);
		symbols[i].function_bytes = wire_u64(in);
		symbols[i].function = wire_str(in);
		symbols[i].function_file = wire_str(in);
		symbols[i].file = wire_str(in);
		symbols[i].function_line = wire_u32(in);
		symbols[i].line = wire_u32(in);
	}
	reply->symbols.data = symbols;
	reply->symbols.count = count;
}

static void put_listing(struct str *out, const struct job_insn *insns, size_t count)
{
	wire_put_u32(out, (uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		wire_put_u64(out, insns[i].va);
		wire_put_u8(out, insns[i].bytes);
		wire_put_u8(out, insns[i].is_memory);
		wire_put_str(out, insns[i].text);
		wire_put_str(out, insns[i].file);
		wire_put_u32(out, insns[i].line);
	}
}

static void read_listing(struct wire *in, struct arena *arena, struct job_reply *reply)
{
	size_t count = wire_count(in, JOB_MAX_LISTING, 24);
	struct job_insn *insns = arena_array(arena, count, sizeof(*insns));

	for (size_t i = 0; i < count; i++) {
		insns[i].va = wire_u64(in);
		insns[i].bytes = wire_u8(in);
		insns[i].is_memory = wire_u8(in);
		insns[i].text = wire_str(in);
		insns[i].file = wire_str(in);
		insns[i].line = wire_u32(in);
	}
	reply->listing.data = insns;
	reply->listing.count = count;
}

static void put_unwound(struct str *out, const struct job_unwound *unwound)
{
	wire_put_u8(out, unwound->complete);
	wire_put_u32(out, (uint32_t)unwound->count);
	for (size_t i = 0; i < unwound->count; i++) {
		wire_put_u64(out, unwound->frames[i].module_id);
		wire_put_u64(out, unwound->frames[i].va);
	}
}

static void read_unwound(struct wire *in, struct arena *arena,
			 struct job_unwound *unwound)
{
	unwound->complete = wire_u8(in);
	unwound->count = wire_count(in, JOB_MAX_FRAMES, 16);
	struct fact_frame *frames = arena_array(arena, unwound->count, sizeof(*frames));

	for (size_t i = 0; i < unwound->count; i++) {
		frames[i].module_id = wire_u64(in);
		frames[i].va = wire_u64(in);
	}
	unwound->frames = frames;
}

static void put_types(struct str *out, const struct job_answers *answers)
{
	wire_put_u32(out, (uint32_t)answers->type_count);
	for (size_t i = 0; i < answers->type_count; i++) {
		wire_put_u64(out, answers->types[i].type_id);
		wire_put_str(out, answers->types[i].name);
		wire_put_u64(out, answers->types[i].bytes);
	}
	wire_put_u32(out, (uint32_t)answers->field_count);
	for (size_t i = 0; i < answers->field_count; i++) {
		wire_put_u64(out, answers->fields[i].type_id);
		wire_put_u64(out, answers->fields[i].offset);
		wire_put_u64(out, answers->fields[i].bytes);
		wire_put_str(out, answers->fields[i].path);
	}
}

static void read_types(struct wire *in, struct arena *arena, struct job_answers *answers)
{
	answers->type_count = wire_count(in, MESSAGE_MAX_TYPES, 21);
	struct fact_type *types = arena_array(arena, answers->type_count, sizeof(*types));

	for (size_t i = 0; i < answers->type_count; i++) {
		types[i].type_id = wire_u64(in);
		types[i].name = wire_str(in);
		types[i].bytes = wire_u64(in);
	}
	answers->field_count = wire_count(in, MESSAGE_MAX_FIELDS, 29);
	struct fact_field *fields =
		arena_array(arena, answers->field_count, sizeof(*fields));

	for (size_t i = 0; i < answers->field_count; i++) {
		fields[i].type_id = wire_u64(in);
		fields[i].offset = wire_u64(in);
		fields[i].bytes = wire_u64(in);
		fields[i].path = wire_str(in);
	}
	answers->types = types;
	answers->fields = fields;
}

static void put_answer(struct str *out, const struct fact_answer *fact)
{
	const struct answer *answer = &fact->answer;

	wire_put_u64(out, fact->module_id);
	wire_put_u64(out, fact->type_id);
	wire_put_u8(out, fact->skid != 0);
	wire_put_u64(out, answer->va);
	wire_put_u64(out, answer->insn_va);
	wire_put_u8(out, (uint8_t)answer->verdict);
	wire_put_u8(out, (uint8_t)answer->access);
	wire_put_u8(out, answer->is_frame);
	wire_put_u32(out, answer->width);
	wire_put_str(out, answer->type);
	wire_put_u64(out, answer->type_bytes);
	wire_put_u64(out, (uint64_t)answer->offset);
	wire_put_str(out, answer->path);
	wire_put_u64(out, answer->field_offset);
	wire_put_u64(out, answer->field_bytes);
	wire_put_double(out, answer->confidence);
}

static void read_answer(struct wire *in, struct fact_answer *fact)
{
	struct answer *answer = &fact->answer;

	fact->module_id = wire_u64(in);
	fact->type_id = wire_u64(in);
	fact->skid = wire_u8(in);
	answer->va = wire_u64(in);
	answer->insn_va = wire_u64(in);
	answer->verdict = wire_u8(in);
	answer->access = wire_u8(in);
	answer->is_frame = wire_u8(in);
	answer->width = wire_u32(in);
	answer->type = wire_str(in);
	answer->type_bytes = wire_u64(in);
	answer->offset = (int64_t)wire_u64(in);
	answer->path = wire_str(in);
	answer->field_offset = wire_u64(in);
	answer->field_bytes = wire_u64(in);
	answer->confidence = wire_double(in);
	if ((unsigned)answer->verdict >= VERDICTS ||
	    (unsigned)answer->access > ACCESS_BOTH)
		in->bad = true;
	/* Written so that a NaN is refused too. */
	if (!(answer->confidence >= 0 && answer->confidence <= 1))
		in->bad = true;
}

static void put_stats(struct str *out, const struct job_stats *stats)
{
	wire_put_u64(out, stats->functions);
	wire_put_u64(out, stats->instructions);
	wire_put_u64(out, stats->memory_instructions);
	wire_put_u64(out, stats->claims);
	for (int i = 0; i < VERDICTS; i++)
		wire_put_u64(out, stats->by_verdict[i]);
	for (int i = 0; i < VERDICTS; i++)
		wire_put_u64(out, stats->by_verdict_stack[i]);
	wire_put_u64(out, stats->cpu_ns);
	wire_put_u64(out, stats->peak_bytes);
	wire_put_u64(out, stats->units);
	wire_put_u64(out, stats->kept_units);
}

static void read_stats(struct wire *in, struct job_stats *stats)
{
	stats->functions = wire_u64(in);
	stats->instructions = wire_u64(in);
	stats->memory_instructions = wire_u64(in);
	stats->claims = wire_u64(in);
	for (int i = 0; i < VERDICTS; i++)
		stats->by_verdict[i] = wire_u64(in);
	for (int i = 0; i < VERDICTS; i++)
		stats->by_verdict_stack[i] = wire_u64(in);
	stats->cpu_ns = wire_u64(in);
	stats->peak_bytes = wire_u64(in);
	stats->units = wire_u64(in);
	stats->kept_units = wire_u64(in);
}

static void put_sites_reply(struct str *out, const struct job_reply *reply)
{
	const struct job_answers *answers = &reply->sites.answers;

	put_types(out, answers);
	wire_put_u32(out, (uint32_t)answers->answer_count);
	for (size_t i = 0; i < answers->answer_count; i++)
		put_answer(out, &answers->answers[i]);
	wire_put_u32(out, reply->sites.done);
	wire_put_u32(out, reply->sites.total);
	put_stats(out, &reply->sites.stats);
	wire_put_bytes(out, reply->sites.kept, reply->sites.kept_bytes);
}

static void read_sites_reply(struct wire *in, struct arena *arena,
			     struct job_reply *reply)
{
	struct job_answers *answers = &reply->sites.answers;

	read_types(in, arena, answers);
	answers->answer_count = wire_count(in, MESSAGE_MAX_ANSWERS, 86);
	struct fact_answer *facts =
		arena_array(arena, answers->answer_count, sizeof(*facts));

	for (size_t i = 0; i < answers->answer_count; i++)
		read_answer(in, &facts[i]);
	answers->answers = facts;
	reply->sites.done = wire_u32(in);
	reply->sites.total = wire_u32(in);
	read_stats(in, &reply->sites.stats);
	reply->sites.kept = wire_bytes(in, &reply->sites.kept_bytes);
}

static void put_records(struct str *out, const struct job_records *records)
{
	const uint64_t numbers[] = {
		records->done,	   records->total,
		records->samples,  records->foreign,
		records->lost,	   records->late,
		records->start_ns, (uint64_t)records->realtime_offset_ns
	};

	wire_put_bytes(out, records->data, records->bytes);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		wire_put_u64(out, numbers[i]);
	wire_put_str(out, records->host);
	wire_put_str(out, records->kernel);
	wire_put_str(out, records->arch);
	wire_put_str(out, records->version);
	wire_put_str(out, records->events);
	wire_put_str(out, records->damage);
}

static void read_records(struct wire *in, struct job_records *records)
{
	records->data = wire_bytes(in, &records->bytes);
	records->done = wire_u64(in);
	records->total = wire_u64(in);
	records->samples = wire_u64(in);
	records->foreign = wire_u64(in);
	records->lost = wire_u64(in);
	records->late = wire_u64(in);
	records->start_ns = wire_u64(in);
	records->realtime_offset_ns = (int64_t)wire_u64(in);
	records->host = wire_str(in);
	records->kernel = wire_str(in);
	records->arch = wire_str(in);
	records->version = wire_str(in);
	records->events = wire_str(in);
	records->damage = wire_str(in);
}

void message_put_reply(struct str *out, const struct job_reply *reply)
{
	switch (reply->kind) {
	case JOB_IDENTIFY:
		put_identity(out, &reply->identity);
		break;
	case JOB_SYMBOLS:
		put_symbols(out, reply->symbols.data, reply->symbols.count);
		break;
	case JOB_UNWIND:
		put_unwound(out, &reply->unwound);
		break;
	case JOB_SITES:
	case JOB_MODULE:
		put_sites_reply(out, reply);
		break;
	case JOB_LISTING:
		put_listing(out, reply->listing.data, reply->listing.count);
		break;
	case JOB_PROBES:
		resolve_put_reply(out, &reply->probes);
		break;
	case JOB_RECORDS:
		put_records(out, &reply->records);
		break;
	case JOB_DISCOVER:
		candidates_put(out, &reply->candidates);
		break;
	case JOB_DEBUG_FILE:
		break;
	}
}

struct err *message_read_reply(struct wire *in, struct arena *arena, enum job_kind kind,
			       struct job_reply *ret_reply)
{
	ret_reply->kind = kind;
	switch (kind) {
	case JOB_IDENTIFY:
		read_identity(in, &ret_reply->identity);
		break;
	case JOB_SYMBOLS:
		read_symbols(in, arena, ret_reply);
		break;
	case JOB_UNWIND:
		read_unwound(in, arena, &ret_reply->unwound);
		break;
	case JOB_SITES:
	case JOB_MODULE:
		read_sites_reply(in, arena, ret_reply);
		break;
	case JOB_LISTING:
		read_listing(in, arena, ret_reply);
		break;
	case JOB_PROBES:
		return resolve_read_reply(in, arena, &ret_reply->probes);
	case JOB_RECORDS:
		read_records(in, &ret_reply->records);
		break;
	case JOB_DISCOVER:
		candidates_read(in, arena, &ret_reply->candidates);
		break;
	case JOB_DEBUG_FILE:
		break;
	}
	return finish(in, "reply");
}
