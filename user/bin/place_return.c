// SPDX-License-Identifier: Apache-2.0
/*
 * The sweep finds every ret of the function proper. Jumps out of it are told apart by
 * the unwind rules: where the CFA is rsp + 8 on arrival, the frame is gone and it is a
 * tail call (or code of a function without frame, see below); any other target is a
 * part of this function that was moved away, and is followed.
 *
 * A conditional jump to where the CFA is rsp + 8 may be either. Its target is followed
 * as if it were ours; if it returns there, there is no telling, and we say so.
 */
#include <stdlib.h>
#include <string.h>

#include "bin/place_impl.h"

struct search {
	const struct place_input *input;
	struct place_code code;
	VEC(uint64_t) todo; /* heads of moved parts not yet followed */
	VEC(uint64_t) seen; /* heads of all */
	VEC(bool) unsure;   /* of each in @seen: may be another function */
	size_t budget;	    /* instructions of moved parts */
	struct place_site *sites;
	size_t count;
};

static bool is_inside(const struct search *search, uint64_t va)
{
	return va >= search->input->va && va - search->input->va < search->input->bytes;
}

static bool frame_is_gone(const struct search *search, uint64_t va)
{
	unsigned reg;
	int64_t off;

	return search->input->frames &&
	       frame_cfa_at(search->input->frames, va, &reg, &off) && reg == FRAME_RSP &&
	       off == 8;
}

static bool has_rule(const struct search *search, uint64_t va)
{
	unsigned reg;
	int64_t off;

	return search->input->frames &&
	       frame_cfa_at(search->input->frames, va, &reg, &off);
}

static bool is_function(const struct search *search, uint64_t va)
{
	const struct elf_function *function =
		search->input->functions ? elf_function_at(search->input->functions, va)
					 : NULL;

	return function && function->va == va;
}

/* Of this function, moved away: entered with its frame, or named as gcc names it. */
static bool is_part(const struct search *search, uint64_t va)
{
	const struct elf_function *function =
		search->input->functions ? elf_function_at(search->input->functions, va)
					 : NULL;

	if (function && function->va == va && strstr(function->name, ".cold"))
		return true;
	return has_rule(search, va) && !frame_is_gone(search, va);
}

static struct err *add_site(struct search *search, struct place_site site)
{
	for (size_t i = 0; i < search->count; i++)
		if (search->sites[i].va == site.va)
			return NULL;
	if (search->count == PLACE_MAX_SITES)
		return err_new(ERR_LIMIT, "the function returns in more than %d places",
			       PLACE_MAX_SITES);
	search->sites[search->count++] = site;
	return NULL;
}

static void add_part(struct search *search, uint64_t va, bool unsure)
{
	for (size_t i = 0; i < search->seen.count; i++)
		if (search->seen.data[i] == va)
			return;
	vec_push(&search->seen, va);
	vec_push(&search->unsure, unsure);
	vec_push(&search->todo, va);
}

static bool is_named(const struct search *search, uint64_t va, const char *name)
{
	const struct elf_function *function =
		search->input->functions ? elf_function_at(search->input->functions, va)
					 : NULL;
	size_t length = strlen(name);

	return function && function->va == va && !strncmp(function->name, name, length) &&
	       (function->name[length] == '@' || !function->name[length]);
}

/* Only the stack protector's complaint follows at @va. */
static bool is_complaint(const struct search *search, uint64_t va)
{
	size_t room;
	const uint8_t *code = elf_bytes_at(search->input->file, va, &room);
	struct insn insn;

	for (int i = 0; code && i < 3; i++) {
		size_t used = insn_decode(search->input->decoder, code, room, va, &insn);

		if (!used)
			return false;
		if (insn.op == INSN_CALL)
			return insn.target &&
			       is_named(search, insn.target, "__stack_chk_fail");
		if (insn.op != INSN_NOP)
			return false;
		code += used;
		room -= used;
		va += used;
	}
	return false;
}

static bool only_restores(const struct search *search, const struct insn *insn)
{
	if (search->input->needs_result && (insn->writes & insn_bit(0)))
		return false;
	switch (insn->op) {
	case INSN_POP:
	case INSN_LEAVE:
	case INSN_NOP:
	case INSN_LEA:
		return true;
	case INSN_ADD:
	case INSN_MOVE:
	case INSN_EXTEND:
		for (unsigned i = 0; i < insn->mem_count; i++)
			if (insn->mems[i].access & ACCESS_STORE)
				return false;
		return true;
	}
	return false;
}

/* The jcc of the stack protector before the ret at @index, if that will do. */
static const struct insn *find_check(const struct search *search, size_t index)
{
	const struct insn *insns = search->code.insns.data;

	while (index && !place_is_target(&search->code, insns[index].va)) {
		const struct insn *insn = &insns[--index];

		if (insn->op == INSN_BRANCH)
			return insn->target && is_complaint(search, insn->target) ? insn
										  : NULL;
		if (!only_restores(search, insn))
			return NULL;
	}
	return NULL;
}

static struct err *unsure(const struct insn *insn)
{
	return err_new(ERR_UNSUPPORTED,
		       "whether the jump at %#llx leaves the function cannot be told",
		       (unsigned long long)insn->va);
}

/* A jump inside, to a moved part, or away for good. */
static struct err *take_jump(struct search *search, const struct insn *insn)
{
	if (insn->target && is_inside(search, insn->target) &&
	    insn->target != search->input->va)
		return NULL;
	if (!search->input->frames)
		return unsure(insn);
	if (!insn->target) /* through a table, unless the frame is gone */
		return frame_is_gone(search, insn->va)
			       ? add_site(search, place_site_at(search->input, insn))
			       : NULL;
	if (insn->target == search->input->va) /* a loop, or tail recursion */
		return frame_is_gone(search, insn->va) ? unsure(insn) : NULL;
	if (!is_part(search, insn->target))
		return add_site(search, place_site_at(search->input, insn));
	add_part(search, insn->target, false);
	return NULL;
}

static struct err *take_branch(struct search *search, const struct insn *insn)
{
	if (!insn->target || is_inside(search, insn->target))
		return NULL;
	if (!search->input->frames)
		return unsure(insn);
	bool is_ours = is_part(search, insn->target);

	if (!is_ours && is_function(search, insn->target))
		return unsure(insn);
	add_part(search, insn->target, !is_ours);
	return NULL;
}

static struct err *sweep(struct search *search)
{
	for (size_t i = 0; i < search->code.insns.count; i++) {
		const struct insn *insn = &search->code.insns.data[i];

		if (insn->op == INSN_JUMP) {
			TRY(take_jump(search, insn));
		} else if (insn->op == INSN_BRANCH) {
			TRY(take_branch(search, insn));
		} else if (insn->op == INSN_RETURN) {
			const struct insn *check = find_check(search, i);

			struct place_site site =
				place_site_at(search->input, check ? check : insn);

			/* Calls are paired by the stack pointer. */
			if (site.pushed < 0)
				site = place_site_at(search->input, insn);
			TRY(add_site(search, site));
		}
	}
	return NULL;
}

static bool ends_path(const struct search *search, const struct insn *insn)
{
	return insn->op == INSN_RETURN || insn->op == INSN_JUMP ||
	       insn->op == INSN_TRAP || insn->op == INSN_BAD ||
	       (insn->op == INSN_CALL && insn->target &&
		(is_named(search, insn->target, "__stack_chk_fail") ||
		 is_named(search, insn->target, "_Unwind_Resume") ||
		 is_named(search, insn->target, "__cxa_throw") ||
		 is_named(search, insn->target, "__cxa_rethrow") ||
		 is_named(search, insn->target, "abort") ||
		 is_named(search, insn->target, "exit")));
}

/* Straight on until the path ends or comes back to the function. */
static struct err *follow(struct search *search, uint64_t va, bool is_unsure)
{
	size_t room;
	const uint8_t *code = elf_bytes_at(search->input->file, va, &room);
	uint64_t head = va;

	while (code && room && elf_is_code(search->input->file, va)) {
		struct insn insn;
		size_t used = insn_decode(search->input->decoder, code, room, va, &insn);

		if (!search->budget--)
			return err_new(ERR_LIMIT,
				       "code moved away is longer than %d "
				       "instructions",
				       PLACE_MAX_FRAGMENT);
		/* Ran into the next function behind a call that does not return. */
		if (va != head && is_function(search, va))
			return NULL;
		if (is_unsure && insn.op == INSN_RETURN)
			return unsure(&insn);
		if (insn.op == INSN_RETURN)
			TRY(add_site(search, place_site_at(search->input, &insn)));
		else if (insn.op == INSN_JUMP)
			TRY(take_jump(search, &insn));
		else if (insn.op == INSN_BRANCH)
			TRY(take_branch(search, &insn));
		if (ends_path(search, &insn))
			return NULL;
		code += used;
		room -= used;
		va += used;
	}
	return NULL;
}

static int compare_sites(const void *left, const void *right)
{
	const struct place_site *a = left, *b = right;

	return a->va < b->va ? -1 : a->va > b->va;
}

static struct err *search_all(struct search *search)
{
	TRY(place_decode(search->input, &search->code));
	TRY(sweep(search));
	while (search->todo.count) {
		uint64_t va = search->todo.data[--search->todo.count];
		bool is_unsure = false;

		for (size_t i = 0; i < search->seen.count; i++)
			if (search->seen.data[i] == va)
				is_unsure = search->unsure.data[i];
		TRY(follow(search, va, is_unsure));
	}
	return NULL;
}

struct err *place_returns(const struct place_input *input, struct place_site *ret_sites,
			  size_t *ret_count)
{
	struct search search = { .input = input,
				 .budget = PLACE_MAX_FRAGMENT,
				 .sites = ret_sites };
	struct err *err = search_all(&search);

	place_code_fini(&search.code);
	vec_fini(&search.todo);
	vec_fini(&search.seen);
	vec_fini(&search.unsure);
	TRY(err);
	qsort(ret_sites, search.count, sizeof(*ret_sites), compare_sites);
	*ret_count = search.count;
	return NULL;
}
