// SPDX-License-Identifier: Apache-2.0
/*
 * The same functions write down what was asked and ask it again, so that both see the
 * module in the same way. Far things (what is at an address, apart from the unit) are
 * looked up once per module.
 */
#include "types/mark.h"

#include <string.h>

#include "core/intern.h"
#include "core/mem.h"
#include "types/answer.h"
#include "types/mark_far.h"

#define MAX_PARTS   UINT16_MAX
#define MAX_TABLE   CFG_MAX_TABLE
#define NEIGHBOURS  4096 /* bytes: any field that leads so close may have been meant */
#define MAX_SOURCES 8
#define LOWEST_LINK 0x10000 /* programs linked below have no absolute addresses */

struct part {
	uint64_t lo, hi;
	uint32_t number; /* by function, then range */
};

struct own_data {
	uint64_t va;
	uint32_t number;
};

struct marker {
	struct recover *recover;
	struct mark_far *far;
	uint64_t image_lo, image_hi; /* of absolute addresses; both 0: none */
	uint64_t frames;	     /* frame_digest_all() */
	uint32_t unit;
	VEC(struct part) parts;	   /* by number */
	VEC(struct part) sorted;   /* by address */
	VEC(struct own_data) data; /* by address */
	VEC(uint8_t) code;	   /* scratch */
	struct mark_far_set set;   /* of the unit under way */
	bool is_bad;		   /* it cannot be kept */
	struct dwarf_asked asked;
	VEC(struct mark_mask) masks;
	VEC(uint64_t) shapes, names, numbers;
};

struct marker *marker_new(struct recover *recover)
{
	struct marker *marker = mem_alloc(sizeof(*marker));
	size_t count;
	const struct elf_segment *segments = elf_segments(recover->main, &count);
	uint64_t lo = UINT64_MAX, hi = 0;

	marker->recover = recover;
	marker->far = mark_far_new(recover);
	marker->frames = frame_digest_all(recover->main, recover->debug);
	for (size_t i = 0; i < count; i++) {
		if (segments[i].kind != ELF_LOAD)
			continue;
		lo = segments[i].va < lo ? segments[i].va : lo;
		if (segments[i].va + segments[i].mem_bytes > hi)
			hi = segments[i].va + segments[i].mem_bytes;
	}
	if (lo >= LOWEST_LINK && lo < hi) {
		marker->image_lo = lo;
		marker->image_hi = hi;
	}
	return marker;
}

void marker_free(struct marker *marker)
{
	if (!marker)
		return;
	mark_far_free(marker->far);
	mark_far_set_fini(&marker->set);
	vec_fini(&marker->parts);
	vec_fini(&marker->sorted);
	vec_fini(&marker->data);
	vec_fini(&marker->code);
	vec_fini(&marker->asked.vas);
	vec_fini(&marker->asked.tls);
	vec_fini(&marker->masks);
	vec_fini(&marker->shapes);
	vec_fini(&marker->names);
	vec_fini(&marker->numbers);
	free(marker);
}

/* ---- the key */

static const struct part *part_at(const struct marker *marker, uint64_t va)
{
	size_t lo = 0, hi = marker->sorted.count;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (marker->sorted.data[middle].lo <= va)
			lo = middle + 1;
		else
			hi = middle;
	}
	if (!lo || va >= marker->sorted.data[lo - 1].hi)
		return NULL;
	return &marker->sorted.data[lo - 1];
}

static uint64_t place_of(const struct part *part, uint64_t va)
{
	return ((uint64_t)part->number + 1) << 40 | (va - part->lo);
}

/* What debug information says about code is about the unit's own. */
static uint64_t place(void *ctx, uint64_t va)
{
	const struct marker *marker = ctx;
	const struct part *part = part_at(marker, va);

	if (part)
		return place_of(part, va);
	part = part_at(marker, va - 1); /* the end of a range */
	return part ? place_of(part, va) : 1;
}

static int by_lo(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static int by_va(const void *a, const void *b)
{
	const struct own_data *x = a, *y = b;

	if (x->va != y->va)
		return x->va < y->va ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static bool list_parts(struct marker *marker)
{
	struct recover *recover = marker->recover;
	size_t all, count;
	const struct dwarf_function *every = dwarf_functions(recover->dwarf, &all);
	const uint32_t *functions = answer_functions(recover, marker->unit, &count);

	vec_clear(&marker->parts);
	vec_clear(&marker->sorted);
	for (size_t i = 0; i < count; i++) {
		const struct dwarf_function *function = &every[functions[i]];

		for (uint32_t r = 0; r < function->range_count; r++) {
			struct part part = { function->ranges[r].lo,
					     function->ranges[r].hi,
					     (uint32_t)marker->parts.count };

			vec_push(&marker->parts, part);
			vec_push(&marker->sorted, part);
		}
	}
	if (marker->sorted.count)
		qsort(marker->sorted.data, marker->sorted.count,
		      sizeof(*marker->sorted.data), by_lo);
	for (size_t i = 1; i < marker->sorted.count; i++)
		if (marker->sorted.data[i].lo < marker->sorted.data[i - 1].hi)
			return false; /* damaged */
	return marker->parts.count && marker->parts.count < MAX_PARTS;
}

/* How the parts lie to each other, what they are called, how they are unwound. */
static uint64_t digest_parts(struct marker *marker, uint64_t hash)
{
	struct recover *recover = marker->recover;
	uint64_t base = dwarf_unit_base(recover->dwarf, marker->unit);

	vec_each(&marker->sorted, part) {
		const struct elf_function *symbol =
			elf_function_at(recover->symbols, part->lo);
		uint64_t words[] = { part->number, part->hi - part->lo,
				     base ? part->lo - base : 0,
				     frame_digest(recover->main, part->lo, part->hi) };

		if (!words[3])
			marker->is_bad = true;
		if (symbol)
			hash = hash_text(symbol->name, hash);
		hash = hash_bytes(words, sizeof(words), hash);
	}
	return hash;
}

bool marker_key(struct marker *marker, uint32_t unit, uint64_t *ret_key)
{
	struct recover *recover = marker->recover;
	struct dwarf_digest digest = { .hash = 0 };
	uint64_t words[] = { MARK_VERSION,
			     0,
			     marker->frames,
			     recover->tls_bytes,
			     recover->options.dwarf_only,
			     (uint64_t)elf_machine(recover->main),
			     marker->image_hi != 0 };

	marker->unit = unit;
	marker->is_bad = false;
	vec_clear(&marker->data);
	if (!list_parts(marker) ||
	    !dwarf_digest(recover->dwarf, unit, place, marker, &digest)) {
		vec_fini(&digest.data);
		marker->is_bad = true;
		return false;
	}
	for (size_t i = 0; i < digest.data.count; i++)
		vec_push(&marker->data,
			 ((struct own_data){ digest.data.data[i], (uint32_t)i }));
	if (marker->data.count)
		qsort(marker->data.data, marker->data.count, sizeof(*marker->data.data),
		      by_va);
	vec_fini(&digest.data);
	words[1] = digest.hash;
	*ret_key = digest_parts(marker, hash_bytes(words, sizeof(words), 0));
	return !marker->is_bad;
}

/* ---- code */

static size_t width_of(const struct mark_mask *mask)
{
	return mask->kind == MARK_ABSOLUTE8 ? 8 : mask->kind == MARK_SHORT ? 1 : 4;
}

static bool field_at(struct marker *marker, const struct mark_mask *mask,
		     const uint8_t **ret_field)
{
	const struct part *part;
	size_t room, bytes = width_of(mask);

	if (mask->part >= marker->parts.count)
		return false;
	part = &marker->parts.data[mask->part];
	if (part->hi - part->lo < bytes || mask->rel > part->hi - part->lo - bytes)
		return false;
	*ret_field = elf_bytes_at(marker->recover->main, part->lo + mask->rel, &room);
	return *ret_field && room >= bytes;
}

/* Where the field leads. */
static bool target_of(struct marker *marker, const struct mark_mask *mask,
		      uint64_t *ret_va)
{
	const uint8_t *field;
	int32_t value;

	if (!field_at(marker, mask, &field))
		return false;
	if (mask->kind == MARK_ABSOLUTE8) {
		memcpy(ret_va, field, 8);
		return true;
	}
	if (mask->kind == MARK_SHORT)
		value = (int8_t)*field;
	else
		memcpy(&value, field, sizeof(value));
	*ret_va = mask->kind == MARK_ABSOLUTE4
			  ? (uint32_t)value
			  : marker->parts.data[mask->part].lo + mask->rel + mask->end +
				    (uint64_t)(int64_t)value;
	return true;
}

/* Masks come in order of parts. */
static bool hash_code(struct marker *marker, const struct mark_mask *masks, size_t count,
		      uint64_t *ret_hash)
{
	uint64_t hash = 1;
	size_t next = 0;

	vec_each(&marker->parts, part) {
		size_t room, bytes = part->hi - part->lo;
		const uint8_t *code =
			elf_bytes_at(marker->recover->main, part->lo, &room);

		if (!code || room < bytes)
			return false;
		vec_reserve(&marker->code, bytes);
		memcpy(marker->code.data, code, bytes);
		for (; next < count && masks[next].part == part->number; next++) {
			size_t wide = width_of(&masks[next]);

			if (bytes < wide || masks[next].rel > bytes - wide)
				return false;
			memset(marker->code.data + masks[next].rel, 0, wide);
		}
		hash = hash_bytes(marker->code.data, bytes, hash);
	}
	*ret_hash = hash;
	return next == count;
}

/* ---- what is near: seen from the unit */

static uint64_t near_table(struct marker *marker, uint64_t va, unsigned bytes)
{
	uint64_t hash = bytes, value;
	uint64_t last = marker->recover->read_last;

	for (uint32_t i = 0; i < MAX_TABLE; i++) {
		const struct part *part;

		if (!module_read(marker->recover, va + (uint64_t)i * bytes, bytes,
				 &value))
			break;
		if (bytes == 4)
			value = va + (uint64_t)(int64_t)(int32_t)value;
		part = part_at(marker, value);
		if (!part)
			break;
		value = place_of(part, value);
		hash = hash_bytes(&value, sizeof(value), hash);
	}
	marker->recover->read_last = last;
	return hash;
}

/* The unit's own variable at @va: its number and the distance. */
static bool near_data(const struct marker *marker, uint64_t va, const uint64_t *bytes,
		      uint64_t *ret_hash)
{
	size_t lo = 0, hi = marker->data.count;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (marker->data.data[middle].va <= va)
			lo = middle + 1;
		else
			hi = middle;
	}
	for (; lo > 0; lo--) {
		const struct own_data *own = &marker->data.data[lo - 1];
		uint64_t words[] = { own->number, va - own->va };

		if (own->va != marker->data.data[lo - 1].va)
			break;
		if (va - own->va < bytes[own->number]) {
			*ret_hash = hash_bytes(words, sizeof(words), 2);
			return true;
		}
		/* several DIEs of one variable */
		if (lo < 2 || marker->data.data[lo - 2].va != own->va)
			break;
	}
	return false;
}

static uint64_t near_hash(struct marker *marker, uint64_t va, const uint64_t *bytes)
{
	const struct part *part = part_at(marker, va);
	uint64_t hash = 0, tables[2];

	if (part)
		return place_of(part, va);
	near_data(marker, va, bytes, &hash);
	if (elf_is_code(marker->recover->main, va))
		return hash;
	tables[0] = near_table(marker, va, 4);
	tables[1] = near_table(marker, va, 8);
	return hash_bytes(tables, sizeof(tables), hash);
}

/* Everything that was asked, in order. */
static bool hash_answers(struct marker *marker, const struct mark *mark,
			 uint64_t *ret_hash)
{
	uint64_t hash = 1, va;

	mark_far_begin(marker->far, &marker->set);
	for (uint32_t i = 0; i < mark->head.masks; i++) {
		uint64_t words[2] = { 0 };

		if (!target_of(marker, &mark->masks[i], &va))
			return false;
		words[0] = near_hash(marker, va, mark->data);
		if (!part_at(marker, va))
			words[1] = mark_far_at(marker->far, &marker->set, va);
		hash = hash_bytes(words, sizeof(words), hash);
	}
	for (uint32_t i = 0; i < mark->head.asked; i++) {
		const struct mark_asked *asked = &mark->asked[i];
		uint64_t words[2] = { 0 };

		va = (uint64_t)asked->distance;
		if (asked->mask < mark->head.masks) {
			if (!target_of(marker, &mark->masks[asked->mask], &va))
				return false;
			va += (uint64_t)asked->distance;
		}
		if (asked->mask == MARK_TLS) {
			words[1] = mark_far_tls(marker->far, &marker->set, va);
		} else {
			words[0] = near_hash(marker, va, mark->data);
			if (!part_at(marker, va))
				words[1] = mark_far_at(marker->far, &marker->set, va);
		}
		hash = hash_bytes(words, sizeof(words), hash);
	}
	for (uint32_t i = 0; i < mark->head.names; i++) {
		uint64_t found = mark_far_name(marker->far, &marker->set, mark->names[i]);

		hash = hash_bytes(&found, sizeof(found), hash);
	}
	return mark_far_end(marker->far, &marker->set, mark->shapes, mark->head.shapes,
			    hash, ret_hash);
}

bool marker_holds(struct marker *marker, const struct mark *mark)
{
	uint64_t hash;

	if (marker->is_bad || mark->head.data != marker->data.count ||
	    !hash_code(marker, mark->masks, mark->head.masks, &hash) ||
	    hash != mark->head.code)
		return false;
	return hash_answers(marker, mark, &hash) && hash == mark->head.answers;
}

/* ---- writing down */

void marker_begin(struct marker *marker)
{
	vec_clear(&marker->asked.vas);
	vec_clear(&marker->asked.tls);
	memset(marker->asked.recent, 0, sizeof(marker->asked.recent));
	vec_clear(&marker->masks);
	vec_clear(&marker->shapes);
	vec_clear(&marker->names);
	vec_clear(&marker->numbers);
	dwarf_listen(marker->recover->dwarf, &marker->asked);
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

struct numbers {
	uint64_t *data;
	size_t count, room;
};

static void sort_unique(struct numbers *numbers)
{
	size_t kept = 0;

	if (numbers->count)
		qsort(numbers->data, numbers->count, sizeof(*numbers->data), by_number);
	for (size_t i = 0; i < numbers->count; i++)
		if (!kept || numbers->data[kept - 1] != numbers->data[i])
			numbers->data[kept++] = numbers->data[i];
	numbers->count = kept;
}

#define SORT_UNIQUE(vec)                                                              \
	do {                                                                          \
		struct numbers numbers_ = { (vec)->data, (vec)->count, (vec)->room }; \
		sort_unique(&numbers_);                                               \
		(vec)->count = numbers_.count;                                        \
	} while (0)

void marker_types(struct marker *marker)
{
	struct recover *recover = marker->recover;
	const void *own = dwarf_unit_of(recover->dwarf, marker->unit);

	for (uint32_t i = 1; i < dtypes_count(recover->types); i++)
		if (dtype_is_aggregate(recover->types, i) &&
		    dtype_get(recover->types, i)->ref.unit == own)
			vec_push(&marker->shapes, dtype_get(recover->types, i)->hash);
	SORT_UNIQUE(&marker->shapes);
}

/* The field of the instruction that leads to @va, and what kind it is. */
static bool find_field(const struct insn *insn, const uint8_t *code, uint64_t va,
		       struct mark_mask *ret_mask)
{
	for (unsigned at = insn->bytes - 4u; insn->bytes > 4 && at >= 1; at--) {
		int32_t value;

		memcpy(&value, code + at, sizeof(value));
		if (insn->va + insn->bytes + (uint64_t)(int64_t)value != va)
			continue;
		ret_mask->kind = MARK_RELATIVE;
		ret_mask->rel = at;
		ret_mask->end = (uint8_t)(insn->bytes - at);
		return true;
	}
	/* a short jump to the function next door */
	if (!insn->target ||
	    insn->va + insn->bytes + (uint64_t)(int8_t)code[insn->bytes - 1] != va)
		return false;
	ret_mask->kind = MARK_SHORT;
	ret_mask->rel = insn->bytes - 1u;
	ret_mask->end = 1;
	return true;
}

static void add_mask(struct marker *marker, const struct part *part,
		     const struct insn *insn, struct mark_mask mask)
{
	mask.part = (uint16_t)part->number;
	mask.rel += (uint32_t)(insn->va - part->lo);
	vec_push(&marker->masks, mask);
}

/* An address relative to the instruction. Jumps within the part move with it. */
static void mark_relative(struct marker *marker, const struct part *part,
			  const struct insn *insn, const uint8_t *code, uint64_t va)
{
	struct mark_mask mask = { 0 };

	if (va >= part->lo && va < part->hi)
		return;
	if (find_field(insn, code, va, &mask))
		add_mask(marker, part, insn, mask);
	else
		marker->is_bad = true;
}

/* Absolute addresses, in programs that have them. */
static void mark_absolute(struct marker *marker, const struct part *part,
			  const struct insn *insn, const uint8_t *code)
{
	for (unsigned at = 1; at + 4 <= insn->bytes; at++) {
		uint64_t wide = 0;
		uint32_t value;

		memcpy(&value, code + at, sizeof(value));
		if (at + 8 <= insn->bytes)
			memcpy(&wide, code + at, sizeof(wide));
		if (wide >= marker->image_lo && wide < marker->image_hi) {
			add_mask(marker, part, insn,
				 (struct mark_mask){ .rel = at, .kind = MARK_ABSOLUTE8 });
			return;
		}
		if (value >= marker->image_lo && value < marker->image_hi) {
			add_mask(marker, part, insn,
				 (struct mark_mask){ .rel = at, .kind = MARK_ABSOLUTE4 });
			return;
		}
	}
}

static void mark_insn(struct marker *marker, const struct insn *insn)
{
	const struct part *part = part_at(marker, insn->va);
	size_t room, before = marker->masks.count;
	const uint8_t *code = elf_bytes_at(marker->recover->main, insn->va, &room);

	if (!part || !code || room < insn->bytes) {
		marker->is_bad = true;
		return;
	}
	if (insn->target)
		mark_relative(marker, part, insn, code, insn->target);
	for (unsigned i = 0; i < insn->mem_count; i++)
		if (insn->mems[i].base == INSN_REG_IP && marker->masks.count == before)
			mark_relative(marker, part, insn, code,
				      (uint64_t)insn->mems[i].disp);
	if (marker->image_hi && marker->masks.count == before)
		mark_absolute(marker, part, insn, code);
	for (unsigned i = 0; i < insn->arg_count; i++)
		if (insn->args[i].kind == INSN_IMM && insn->args[i].imm > NEIGHBOURS &&
		    marker->masks.count == before)
			vec_push(&marker->numbers, (uint64_t)insn->args[i].imm);
}

void marker_code(struct marker *marker)
{
	if (marker->is_bad)
		return;
	vec_each(&marker->recover->code.insns, insn)
		mark_insn(marker, insn);
}

struct target {
	uint64_t va;
	uint32_t mask;
};

static int by_target(const void *a, const void *b)
{
	const struct target *x = a, *y = b;

	if (x->va != y->va)
		return x->va < y->va ? -1 : 1;
	return x->mask < y->mask ? -1 : x->mask > y->mask;
}

static int by_field(const void *a, const void *b)
{
	const struct mark_mask *x = a, *y = b;

	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return x->rel < y->rel ? -1 : x->rel > y->rel;
}

struct asked_list {
	struct mark_asked *data;
	size_t count, room;
};

/* From which fields an address may have been computed: those that lead close to it. False
 * when there are none. */
static bool place_asked(const struct target *targets, size_t count, uint64_t va,
			struct asked_list *out)
{
	size_t lo = 0, hi = count, begin = out->count, first = begin;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (targets[middle].va <= va)
			lo = middle + 1;
		else
			hi = middle;
	}
	if (lo && targets[lo - 1].va == va)
		return true; /* asked with the field itself */
	for (size_t i = lo; i-- > 0 && out->count - first < MAX_SOURCES;) {
		if (va - targets[i].va > NEIGHBOURS && out->count > first)
			break;
		vec_push(out, ((struct mark_asked){ (int64_t)(va - targets[i].va),
						    targets[i].mask, 0 }));
	}
	first = out->count;
	for (size_t i = lo; i < count && out->count - first < MAX_SOURCES; i++) {
		if (targets[i].va - va > NEIGHBOURS)
			break;
		vec_push(out, ((struct mark_asked){ (int64_t)(va - targets[i].va),
						    targets[i].mask, 0 }));
	}
	return out->count > begin;
}

/* A number in the code, not known to be an address, is close to what was asked for. */
static bool is_number(const struct marker *marker, uint64_t va)
{
	size_t lo = 0, hi = marker->numbers.count;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (marker->numbers.data[middle] + NEIGHBOURS < va)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo < marker->numbers.count && marker->numbers.data[lo] <= va + NEIGHBOURS;
}

/* One field for each address that fields lead to. */
static size_t list_targets(struct marker *marker, struct target *targets)
{
	size_t kept = 0;

	for (size_t i = 0; i < marker->masks.count; i++) {
		targets[i].mask = (uint32_t)i;
		if (!target_of(marker, &marker->masks.data[i], &targets[i].va))
			marker->is_bad = true;
	}
	if (marker->masks.count)
		qsort(targets, marker->masks.count, sizeof(*targets), by_target);
	for (size_t i = 0; i < marker->masks.count; i++)
		if (!kept || targets[kept - 1].va != targets[i].va)
			targets[kept++] = targets[i];
	return kept;
}

static void list_asked(struct marker *marker, struct asked_list *out)
{
	struct target *targets = mem_array(marker->masks.count + 1, sizeof(*targets));
	size_t count = list_targets(marker, targets);

	SORT_UNIQUE(&marker->asked.vas);
	SORT_UNIQUE(&marker->asked.tls);
	SORT_UNIQUE(&marker->numbers);
	vec_each(&marker->asked.vas, va) {
		if (part_at(marker, *va))
			continue; /* the unit's own, wherever it came from */
		if (!place_asked(targets, count, *va, out) || is_number(marker, *va))
			vec_push(out,
				 ((struct mark_asked){ (int64_t)*va, MARK_NONE, 0 }));
	}
	vec_each(&marker->asked.tls, offset)
		vec_push(out, ((struct mark_asked){ (int64_t)*offset, MARK_TLS, 0 }));
	free(targets);
}

/* Structs that were only declared where somebody looked for the definition. */
static void list_names(struct marker *marker)
{
	const struct dtypes *types = marker->recover->types;

	for (uint32_t i = 1; i < dtypes_count(types); i++) {
		const struct dtype *type = dtype_get(types, i);

		if (type->kind == DTYPE_INCOMPLETE && type->target != DTYPE_UNRESOLVED &&
		    type->name)
			vec_push(&marker->names, hash_text(type->name, 0));
	}
	SORT_UNIQUE(&marker->names);
}

static void add_table(struct str *out, const void *data, size_t count, size_t size)
{
	if (count)
		str_add_bytes(out, data, count * size);
}

static bool finish(struct marker *marker, struct mark *mark, struct str *out)
{
	if (marker->is_bad ||
	    !hash_code(marker, mark->masks, mark->head.masks, &mark->head.code) ||
	    !hash_answers(marker, mark, &mark->head.answers))
		return false;
	add_table(out, &mark->head, 1, sizeof(mark->head));
	add_table(out, mark->masks, mark->head.masks, sizeof(*mark->masks));
	add_table(out, mark->asked, mark->head.asked, sizeof(*mark->asked));
	add_table(out, mark->data, mark->head.data, sizeof(*mark->data));
	add_table(out, mark->shapes, mark->head.shapes, sizeof(*mark->shapes));
	add_table(out, mark->names, mark->head.names, sizeof(*mark->names));
	return true;
}

bool marker_end(struct marker *marker, struct str *out)
{
	struct recover *recover = marker->recover;
	uint64_t *bytes = mem_array(marker->data.count + 1, sizeof(*bytes));
	struct asked_list asked = { 0 };
	struct mark mark = { .data = bytes };
	bool is_kept;

	dwarf_listen(recover->dwarf, NULL);
	vec_each(&marker->data, own)
		bytes[own->number] = dwarf_static_bytes(recover->dwarf, own->va);
	list_names(marker);
	if (marker->masks.count)
		qsort(marker->masks.data, marker->masks.count,
		      sizeof(*marker->masks.data), by_field);
	list_asked(marker, &asked);
	mark.masks = marker->masks.data;
	mark.asked = asked.data;
	mark.shapes = marker->shapes.data;
	mark.names = marker->names.data;
	mark.head = (struct mark_head){ .masks = (uint32_t)marker->masks.count,
					.asked = (uint32_t)asked.count,
					.data = (uint32_t)marker->data.count,
					.shapes = (uint32_t)marker->shapes.count,
					.names = (uint32_t)marker->names.count };
	is_kept = finish(marker, &mark, out);
	vec_fini(&asked);
	free(bytes);
	return is_kept;
}

/* ---- reading */

bool mark_open(const void *bytes, size_t size, struct mark *ret_mark)
{
	struct mark mark;
	const uint8_t *at = bytes;
	uint64_t need = sizeof(mark.head);

	if (size < need)
		return false;
	memcpy(&mark.head, at, sizeof(mark.head));
	need += (uint64_t)mark.head.masks * sizeof(*mark.masks) +
		(uint64_t)mark.head.asked * sizeof(*mark.asked) +
		((uint64_t)mark.head.data + mark.head.shapes + mark.head.names) * 8;
	if (need != size)
		return false;
	at += sizeof(mark.head);
	mark.masks = (const void *)at;
	at += mark.head.masks * sizeof(*mark.masks);
	mark.asked = (const void *)at;
	at += mark.head.asked * sizeof(*mark.asked);
	mark.data = (const void *)at;
	mark.shapes = mark.data + mark.head.data;
	mark.names = mark.shapes + mark.head.shapes;
	*ret_mark = mark;
	return true;
}
