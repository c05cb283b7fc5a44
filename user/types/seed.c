// SPDX-License-Identifier: Apache-2.0
/*
 * Variables sorted by the begin of their ranges; an advance takes in those that begin
 * and lets go those that ended, so a whole function costs one pass.
 */
#include "types/seed.h"

#include <string.h>

static int by_lo(const void *a, const void *b)
{
	const struct dwarf_var *x = *(const struct dwarf_var *const *)a;
	const struct dwarf_var *y = *(const struct dwarf_var *const *)b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x < y ? -1 : x > y;
}

static bool is_in_register(const struct dwarf_var *var)
{
	return (var->where == DWARF_IN_REGISTER || var->where == DWARF_IS_SUM ||
		var->where == DWARF_AT_REGISTER) &&
	       var->reg < INSN_REGS;
}

void seed_init(struct seed *seed, const struct code *code)
{
	memset(seed, 0, sizeof(*seed));
	seed->order = mem_array(code->scopes.vars.count + 1, sizeof(*seed->order));
	vec_each(&code->scopes.vars, var) {
		if (is_in_register(var))
			seed->order[seed->count++] = var;
		if ((var->where == DWARF_AT_CFA || var->where == DWARF_AT_REGISTER) &&
		    seed->objects.count < SEED_MAX_OBJECTS)
			vec_push(&seed->objects, var);
	}
	if (seed->count)
		qsort(seed->order, seed->count, sizeof(*seed->order), by_lo);
}

void seed_fini(struct seed *seed)
{
	free(seed->order);
	for (unsigned r = 0; r < INSN_REGS; r++)
		vec_fini(&seed->live[r]);
	vec_fini(&seed->fresh);
	vec_fini(&seed->objects);
}

void seed_advance(struct seed *seed, uint64_t va)
{
	vec_clear(&seed->fresh);
	for (unsigned r = 0; r < INSN_REGS; r++) {
		struct seed_list *live = &seed->live[r];
		size_t kept = 0;

		for (size_t i = 0; i < live->count; i++)
			if (live->data[i]->hi > va)
				live->data[kept++] = live->data[i];
		live->count = kept;
	}
	for (; seed->next < seed->count && seed->order[seed->next]->lo <= va;
	     seed->next++) {
		const struct dwarf_var *var = seed->order[seed->next];

		if (var->hi <= va || seed->live[var->reg].count >= SEED_MAX_LIVE)
			continue;
		vec_push(&seed->live[var->reg], var);
		vec_push(&seed->fresh, var);
	}
}

/* The pointer type that a register's worth of the variable has. */
static uint32_t pointer_in(struct dtypes *types, const struct dwarf_var *var)
{
	const struct dtype *type = dtype_get(types, var->type);

	if (type->kind == DTYPE_POINTER)
		return var->piece_bytes && var->piece_bytes != 8 ? 0 : var->type;
	if (!dtype_is_aggregate(types, var->type) && type->kind != DTYPE_ARRAY)
		return 0;

	const struct dtype_leaves *leaves =
		dtype_leaves_at(types, var->type, var->piece_offset, 8);
	uint32_t found = 0;

	for (uint32_t i = 0; i < leaves->count; i++) {
		if (dtype_get(types, leaves->types[i])->kind != DTYPE_POINTER)
			continue;
		if (found && found != leaves->types[i])
			return 0;
		found = leaves->types[i];
	}
	return found;
}

uint32_t seed_pointee(struct dtypes *types, const struct dwarf_var *var,
		      int64_t *ret_offset)
{
	*ret_offset = -var->offset;
	if (var->where == DWARF_AT_REGISTER) {
		*ret_offset += var->piece_offset;
		return var->type;
	}

	uint32_t pointer = pointer_in(types, var);

	return pointer ? dtype_whole(types, dtype_target(types, pointer)) : 0;
}

/* The object's offset from the CFA, if it is in the frame. */
static bool frame_offset(const struct dwarf_var *var, const struct seed_point *point,
			 int64_t *ret_offset)
{
	*ret_offset = var->offset;
	if (var->where == DWARF_AT_CFA)
		return true;
	*ret_offset -= point->cfa_offset;
	return var->reg == point->cfa_reg;
}

bool seed_is_part(const struct dtypes *types, const struct dwarf_var *var)
{
	return var->piece_bytes && var->piece_bytes < dtype_get(types, var->type)->bytes;
}

const struct dwarf_var *seed_object(const struct seed *seed, struct dtypes *types,
				    const struct seed_point *point, int64_t offset,
				    int64_t *ret_offset)
{
	const struct dwarf_var *best = NULL;
	int best_rank = -1;

	vec_each(&seed->objects, item) {
		const struct dwarf_var *var = *item;
		const struct dtype *type = dtype_get(types, var->type);
		uint64_t bytes = var->piece_bytes ? var->piece_bytes : type->bytes;
		int64_t start;

		if (point->va < var->lo || point->va >= var->hi ||
		    !frame_offset(var, point, &start) || offset < start ||
		    (uint64_t)(offset - start) >= bytes)
			continue;

		bool is_scalar = !dtype_is_aggregate(types, var->type) &&
				 type->kind != DTYPE_ARRAY;
		int rank =
			var->depth + (is_scalar || seed_is_part(types, var) ? 0 : 1000);

		if (rank < best_rank)
			continue;
		best_rank = rank;
		best = var;
		*ret_offset = offset - start + var->piece_offset;
	}
	return best;
}
