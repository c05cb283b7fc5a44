// SPDX-License-Identifier: Apache-2.0
/*
 * One function from bytes to instructions, blocks and scopes. Cold parts are decoded
 * with the hot one, in order of va.
 */
#include "types/module.h"

#include <string.h>

/* C library functions that never return, for callers whose prototypes do not say so. */
static const char *const noreturn[] = {
	"abort",
	"exit",
	"_exit",
	"_Exit",
	"quick_exit",
	"__assert_fail",
	"__stack_chk_fail",
	"longjmp",
	"siglongjmp",
	"_longjmp",
	"__longjmp_chk",
	"__fortify_fail",
	"__chk_fail",
	"pthread_exit",
	"err",
	"errx",
	"verr",
	"verrx",
	"__cxa_throw",
	"__cxa_rethrow",
	"_Unwind_Resume",
	"__cxa_bad_cast",
};

static bool is_noreturn_name(const char *name)
{
	size_t length = strcspn(name, "@");

	for (size_t i = 0; i < sizeof(noreturn) / sizeof(*noreturn); i++)
		if (strlen(noreturn[i]) == length && !memcmp(noreturn[i], name, length))
			return true;
	return false;
}

static bool call_returns(void *ctx, const struct insn *insn)
{
	struct recover *recover = ctx;
	struct dwarf_proto proto;

	if (!insn->target)
		return true;
	if (module_callee(recover, insn, &proto) &&
	    (proto.is_noreturn || is_noreturn_name(proto.name)))
		return false;

	const struct elf_function *symbol =
		recover->symbols ? elf_function_at(recover->symbols, insn->target) : NULL;

	return !symbol || symbol->va != insn->target || !is_noreturn_name(symbol->name);
}

static int by_lo(const void *a, const void *b)
{
	const struct dwarf_range *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static void decode_range(struct recover *recover, struct code *code, uint64_t lo,
			 uint64_t hi)
{
	size_t room;
	const uint8_t *bytes = elf_bytes_at(recover->main, lo, &room);

	if (!bytes)
		return;
	if (room > hi - lo)
		room = hi - lo;
	while (room && code->insns.count < TYPES_MAX_INSNS) {
		struct insn *insn = vec_add(&code->insns);
		size_t used = insn_decode(recover->decoder, bytes, room, lo, insn);

		kernel_rewrite(recover->kernel, insn);

		bytes += used;
		room -= used;
		lo += used;
	}
}

static void decode(struct recover *recover, struct code *code)
{
	const struct dwarf_function *function = code->function;
	VEC(struct dwarf_range) ranges = { 0 };
	uint64_t done = 0;

	for (uint32_t i = 0; i < function->range_count; i++)
		vec_push(&ranges, function->ranges[i]);
	qsort(ranges.data, ranges.count, sizeof(*ranges.data), by_lo);
	vec_each(&ranges, range) {
		if (range->lo < done)
			continue; /* overlapping ranges: damaged */
		decode_range(recover, code, range->lo, range->hi);
		done = range->hi;
	}
	vec_fini(&ranges);
}

void code_clear(struct code *code)
{
	vec_clear(&code->insns);
	vec_clear(&code->scopes.vars);
	vec_clear(&code->scopes.calls);
	vec_clear(&code->decisions);
	cfg_free(code->cfg);
	code->cfg = NULL;
	code->function = NULL;
	code->is_decided = false;
}

void code_fini(struct code *code)
{
	code_clear(code);
	vec_fini(&code->insns);
	vec_fini(&code->decisions);
	dwarf_scopes_fini(&code->scopes);
}

void code_load(struct recover *recover, const struct dwarf_function *function)
{
	struct code *code = &recover->code;

	if (code->function == function && !code->is_decided)
		return;
	code_clear(code);
	code->function = function;
	decode(recover, code);
	dwarf_scopes(recover->dwarf, function, &code->scopes);

	struct cfg_input input = {
		.insns = code->insns.data,
		.count = code->insns.count,
		.entry_va = function->va,
		.ctx = recover,
		.returns = call_returns,
		.read = module_read,
	};

	code->cfg = cfg_build(&input);
}

size_t code_find(const struct code *code, uint64_t va)
{
	size_t lo = 0, hi = code->insns.count;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (code->insns.data[middle].va < va)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo < code->insns.count && code->insns.data[lo].va == va ? lo : SIZE_MAX;
}
