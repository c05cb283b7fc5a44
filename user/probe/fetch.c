// SPDX-License-Identifier: Apache-2.0
/*
 * A chain has the shape of a plan already. Left to do: which register an argument is in,
 * offsets of fields, and a USDT argument in memory, which costs a read more.
 */
#include "probe/fetch.h"

#include <string.h>

static struct err *use_usdt(const struct expr_chain *chain,
			    const struct fetch_place *place, struct abi_path *path)
{
	const struct resolve_arg *arg;

	if ((size_t)chain->number > place->target->arg_count)
		return err_new(ERR_NOT_FOUND, "the USDT probe has %zu arguments",
			       place->target->arg_count);
	arg = &place->target->args[chain->number - 1];
	path->width = arg->bytes;
	path->flags = arg->is_signed ? ABI_PATH_SIGNED : 0;
	path->base = ABI_BASE_REG;
	path->reg = arg->reg;
	switch (arg->where) {
	case RESOLVE_CONSTANT:
		path->base = ABI_BASE_CONST;
		path->add = arg->offset;
		path->width = 8;
		return chain->step_count
			       ? err_new(ERR_INVALID, "a constant is no address")
			       : NULL;
	case RESOLVE_REGISTER:
		return NULL;
	case RESOLVE_MEMORY:
		if (arg->offset < INT32_MIN || arg->offset > INT32_MAX)
			break;
		path->offset[path->derefs++] = (int32_t)arg->offset;
		return NULL;
	}
	return err_new(ERR_INVALID, "argument %lld is where no plan can reach it",
		       (long long)chain->number);
}

static struct err *use_base(const struct expr_chain *chain,
			    const struct fetch_place *place, struct abi_path *path)
{
	static const uint8_t args[EXPR_MAX_ARGS] = { 5, 4, 1, 2, 8, 9 };

	path->width = 8;
	path->base = ABI_BASE_REG;
	switch (chain->base) {
	case EXPR_ARG:
		if (place->is_usdt)
			return use_usdt(chain, place, path);
		path->reg = args[chain->number - 1];
		break;
	case EXPR_RET: /* rax is 0 */
		break;
	case EXPR_REG:
		path->reg = (uint8_t)chain->number;
		break;
	case EXPR_CONST:
		path->base = ABI_BASE_CONST;
		path->add = chain->number;
		break;
	case EXPR_TID:
		path->base = ABI_BASE_TASK;
		break;
	}
	return NULL;
}

static const struct resolve_offsets *find_offsets(const struct expr_chain *chain,
						  const struct fetch_place *place)
{
	uint8_t arg = chain->base == EXPR_RET ? 0 : (uint8_t)chain->number;

	for (size_t i = 0; place->fields && i < place->target->field_count; i++)
		if (place->fields[i].arg == arg &&
		    !strcmp(place->fields[i].path, chain->fields))
			return &place->target->fields[i];
	return NULL;
}

static struct err *use_fields(const struct expr_chain *chain,
			      const struct fetch_place *place, struct expr_step *steps)
{
	const struct resolve_offsets *offsets = find_offsets(chain, place);
	unsigned first = chain->first_field, arrow = 0;

	for (unsigned i = first; i < chain->step_count && steps[i].is_field;
	     i++, arrow++) {
		if (offsets && arrow < offsets->count) {
			if (offsets->offsets[arrow] > INT32_MAX)
				return err_new(ERR_LIMIT, "a field beyond 2 GiB");
			steps[i].offset = offsets->offsets[arrow];
			continue;
		}
		if (!steps[i].has_offset)
			return err_new(ERR_NOT_FOUND, "%s: %s", chain->fields,
				       offsets && *offsets->reason
					       ? offsets->reason
					       : "the offset is not known");
	}
	/* What the last arrow names is as wide as its type says. */
	if (offsets && offsets->count && arrow && !chain->has_width) {
		steps[first + arrow - 1].bytes = offsets->bytes;
		steps[first + arrow - 1].is_signed = offsets->is_signed;
	}
	return NULL;
}

static struct err *compile_chain(const struct expr_chain *chain,
				 const struct fetch_place *place, struct abi_path *path)
{
	struct expr_step steps[EXPR_MAX_STEPS];

	*path = (struct abi_path){ .base = ABI_BASE_NONE };
	memcpy(steps, chain->steps, sizeof(steps));
	TRY(use_base(chain, place, path));
	if (*chain->fields)
		TRY(use_fields(chain, place, steps));
	for (unsigned i = 0; i < chain->step_count; i++) {
		if (path->width != 8 && path->derefs)
			return err_new(ERR_INVALID,
				       "only the last read may be of less than 8 bytes");
		if (path->derefs == ABI_FETCH_DEREFS)
			return err_new(ERR_LIMIT, "more than %d reads in a row",
				       ABI_FETCH_DEREFS);
		if (steps[i].offset < INT32_MIN || steps[i].offset > INT32_MAX)
			return err_new(ERR_LIMIT, "an offset beyond 2 GiB");
		path->offset[path->derefs++] = (int32_t)steps[i].offset;
		path->width = steps[i].bytes;
		path->flags = steps[i].is_signed ? ABI_PATH_SIGNED : 0;
	}
	if (chain->cast_bytes && path->derefs && chain->add)
		return err_new(ERR_INVALID, "a sum cannot be cut");
	if (chain->cast_bytes) {
		path->width = chain->cast_bytes;
		path->flags = chain->cast_signed ? ABI_PATH_SIGNED : 0;
	}
	path->add += chain->add;
	return NULL;
}

struct err *fetch_compile(const struct expr *expr, const struct fetch_place *place,
			  struct abi_fetch *ret_fetch)
{
	static const uint8_t kinds[] = {
		[EXPR_VALUE] = ABI_FETCH_INT,
		[EXPR_CSTR] = ABI_FETCH_CSTR,
		[EXPR_STR] = ABI_FETCH_COUNTED,
		[EXPR_GRPC_SLICE] = ABI_FETCH_GRPC_SLICE,
		[EXPR_STD_STRING] = ABI_FETCH_STD_STRING,
	};
	struct abi_fetch fetch = { .kind = kinds[expr->kind] };

	if (expr->kind)
		TRY(compile_chain(&expr->a, place, &fetch.value));
	if (expr->kind == EXPR_STR)
		TRY(compile_chain(&expr->b, place, &fetch.length));
	*ret_fetch = fetch;
	return NULL;
}

struct err *fetch_compile_condition(const struct expr_condition *condition,
				    const struct fetch_place *place,
				    struct abi_fetch *ret_fetch)
{
	static const uint8_t ops[] = {
		[EXPR_EQ] = ABI_OP_EQ,	  [EXPR_NE] = ABI_OP_NE, [EXPR_LT] = ABI_OP_LT,
		[EXPR_LE] = ABI_OP_LE,	  [EXPR_GT] = ABI_OP_GT, [EXPR_GE] = ABI_OP_GE,
		[EXPR_MASK] = ABI_OP_ANY,
	};
	struct abi_fetch fetch = { .kind = ABI_FETCH_INT,
				   .op = ops[condition->compare],
				   .operand = condition->number };

	TRY(compile_chain(&condition->value, place, &fetch.value));
	*ret_fetch = fetch;
	return NULL;
}

uint64_t fetch_name_id(uint32_t spec_id, const char *name)
{
	size_t length = strnlen(name, ABI_NAME_MAX);
	uint64_t id = ((uint64_t)spec_id << 32) + length;

	for (size_t i = 0; i < length; i += sizeof(uint64_t)) {
		uint64_t word = 0;

		memcpy(&word, name + i,
		       length - i < sizeof(word) ? length - i : sizeof(word));
		id = abi_name_word(id, word);
	}
	return id;
}
