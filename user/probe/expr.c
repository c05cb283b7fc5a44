// SPDX-License-Identifier: Apache-2.0
/*
 * Recursive descent into a chain. A '*' before something reads what the chain has come
 * to; the sum that was pending (after the last read) becomes the offset of that read. A
 * width function changes the last read, or truncates where nothing was read.
 */
#include "probe/expr.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/cleanup.h"
#include "core/mem.h"

struct parser {
	const char *text, *at;
	unsigned depth;
};

static const char *const registers[] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi",
					 "rbp", "rsp", "r8",  "r9",  "r10", "r11",
					 "r12", "r13", "r14", "r15" };

#define REGISTERS (sizeof(registers) / sizeof(registers[0]))

int expr_register(const char *name, size_t length)
{
	for (size_t i = 0; i < REGISTERS; i++)
		if (strlen(registers[i]) == length && !memcmp(registers[i], name, length))
			return (int)i;
	return -1;
}

const char *expr_register_name(unsigned number)
{
	return number < REGISTERS ? registers[number] : "";
}

__attribute__((format(printf, 3, 4))) static struct err *
fail(const struct parser *parser, const char *at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	CLEANUP(free) char *what = mem_vprintf(fmt, ap);
	va_end(ap);
	return err_new(ERR_INVALID, "column %zu: %s", (size_t)(at - parser->text) + 1,
		       what);
}

static void skip(struct parser *parser)
{
	while (*parser->at == ' ' || *parser->at == '\t')
		parser->at++;
}

static bool accept(struct parser *parser, const char *token)
{
	size_t length = strlen(token);

	skip(parser);
	if (strncmp(parser->at, token, length))
		return false;
	parser->at += length;
	return true;
}

static struct err *expect(struct parser *parser, const char *token)
{
	if (accept(parser, token))
		return NULL;
	return fail(parser, parser->at, "a '%s' is missing", token);
}

static size_t word_length(const char *at)
{
	size_t length = 0;

	if (isalpha((unsigned char)*at) || *at == '_')
		while (isalnum((unsigned char)at[length]) || at[length] == '_')
			length++;
	return length;
}

static bool is_word(const char *at, size_t length, const char *word)
{
	return strlen(word) == length && !memcmp(at, word, length);
}

static struct err *parse_number(struct parser *parser, int64_t *ret_number)
{
	const char *begin;
	bool minus = accept(parser, "-");
	uint64_t number = 0;

	skip(parser);
	begin = parser->at;
	unsigned base = begin[0] == '0' && (begin[1] == 'x' || begin[1] == 'X') ? 16 : 10;

	if (base == 16)
		parser->at += 2;
	const char *digits = parser->at;

	for (; isxdigit((unsigned char)*parser->at); parser->at++) {
		unsigned char c = (unsigned char)*parser->at;
		unsigned digit = (unsigned)(isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);

		if (digit >= base)
			break;
		if (number > ((uint64_t)INT64_MAX - digit) / base)
			return fail(parser, begin, "the number is too large");
		number = number * base + digit;
	}
	if (parser->at == digits)
		return fail(parser, begin, "a number is expected here");
	if (word_length(parser->at))
		return fail(parser, parser->at, "this does not belong to a number");
	*ret_number = minus ? -(int64_t)number : (int64_t)number;
	return NULL;
}

/* Read at the pending sum. */
static struct err *add_read(struct parser *parser, const char *at,
			    struct expr_chain *chain, bool is_field)
{
	if (chain->step_count >= EXPR_MAX_STEPS)
		return fail(parser, at, "more than %d reads in a row", EXPR_MAX_STEPS);
	if (chain->base == EXPR_CONST || chain->base == EXPR_TID)
		return fail(parser, at, "a constant is no address");
	if (chain->cast_bytes)
		return fail(parser, at, "a value of %u bytes is no address",
			    chain->cast_bytes);
	if (is_field && chain->add)
		return fail(parser, at, "a field of a sum: its type is not known");
	chain->steps[chain->step_count++] = (struct expr_step){ .offset = chain->add,
								.is_field = is_field,
								.bytes = 8 };
	chain->add = 0;
	chain->has_width = false;
	return NULL;
}

static bool was_field(const struct expr_chain *chain)
{
	return chain->step_count && chain->steps[chain->step_count - 1].is_field;
}

/* Fields need a type to begin with: an argument, or the field before. */
static struct err *check_field_base(struct parser *parser, const char *at,
				    const struct expr_chain *chain)
{
	if (was_field(chain) || (chain->step_count == 0 && chain->base == EXPR_ARG) ||
	    (chain->step_count == 0 && chain->base == EXPR_RET))
		return NULL;
	return fail(parser, at,
		    "fields need an argument or ret in front, whose type is known");
}

static struct err *append_field(struct parser *parser, struct expr_chain *chain,
				const char *joint)
{
	skip(parser);
	size_t length = word_length(parser->at), used = strlen(chain->fields);

	if (!length)
		return fail(parser, parser->at, "the name of a field is expected here");
	if (used + strlen(joint) + length >= EXPR_MAX_FIELD)
		return fail(parser, parser->at, "field paths are limited to %d bytes",
			    EXPR_MAX_FIELD - 1);
	strcat(chain->fields, joint);
	strncat(chain->fields, parser->at, length);
	parser->at += length;
	return NULL;
}

static struct err *parse_field(struct parser *parser, struct expr_chain *chain)
{
	const char *at = parser->at - 2;
	struct expr_step *step;

	TRY(check_field_base(parser, at, chain));
	if (!*chain->fields)
		chain->first_field = chain->step_count;
	TRY(add_read(parser, at, chain, true));
	TRY(append_field(parser, chain, "->"));
	while (accept(parser, "."))
		TRY(append_field(parser, chain, "."));
	if (!accept(parser, "@"))
		return NULL;
	step = &chain->steps[chain->step_count - 1];
	step->has_offset = true;
	return parse_number(parser, &step->offset);
}

static struct err *parse_sum(struct parser *parser, struct expr_chain *chain);

struct width {
	const char *name;
	uint8_t bytes;
	bool is_signed;
};

static const struct width *find_width(const char *at, size_t length)
{
	static const struct width widths[] = {
		{ "u8", 1, false },  { "u16", 2, false }, { "u32", 4, false },
		{ "u64", 8, false }, { "s8", 1, true },	  { "s16", 2, true },
		{ "s32", 4, true },  { "s64", 8, true },
	};

	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		if (is_word(at, length, widths[i].name))
			return &widths[i];
	return NULL;
}

static void set_width(struct expr_chain *chain, const struct width *width)
{
	if (chain->step_count && !chain->add) {
		chain->steps[chain->step_count - 1].bytes = width->bytes;
		chain->steps[chain->step_count - 1].is_signed = width->is_signed;
	} else if (width->bytes < 8) {
		chain->cast_bytes = width->bytes;
		chain->cast_signed = width->is_signed;
	}
	chain->has_width = true;
}

static struct err *nest(struct parser *parser)
{
	if (++parser->depth > EXPR_MAX_NESTING)
		return fail(parser, parser->at, "nested deeper than %d",
			    EXPR_MAX_NESTING);
	return NULL;
}

static struct err *parse_inner(struct parser *parser, struct expr_chain *chain)
{
	TRY(nest(parser));
	TRY(parse_sum(parser, chain));
	parser->depth--;
	return expect(parser, ")");
}

static struct err *parse_reg(struct parser *parser, struct expr_chain *chain)
{
	TRY(expect(parser, "("));
	skip(parser);
	size_t length = word_length(parser->at);
	int number = expr_register(parser->at, length);

	if (number < 0)
		return fail(parser, parser->at,
			    "no register has this name (rdi, r8, ...)");
	parser->at += length;
	chain->base = EXPR_REG;
	chain->number = number;
	return expect(parser, ")");
}

static struct err *parse_word(struct parser *parser, struct expr_chain *chain)
{
	const char *at = parser->at;
	size_t length = word_length(at);
	const struct width *width = find_width(at, length);

	parser->at += length;
	if (width) {
		TRY(expect(parser, "("));
		TRY(parse_inner(parser, chain));
		set_width(chain, width);
		return NULL;
	}
	if (is_word(at, length, "reg"))
		return parse_reg(parser, chain);
	if (is_word(at, length, "ret")) {
		chain->base = EXPR_RET;
	} else if (is_word(at, length, "tid")) {
		chain->base = EXPR_TID;
	} else if (length == 4 && !strncmp(at, "arg", 3) &&
		   isdigit((unsigned char)at[3])) {
		if (at[3] < '1' || at[3] > '0' + EXPR_MAX_ARGS)
			return fail(parser, at, "arguments are arg1 to arg%d",
				    EXPR_MAX_ARGS);
		chain->base = EXPR_ARG;
		chain->number = at[3] - '0';
	} else {
		return fail(parser, at,
			    "'%.*s' is none of arg1..arg%d, ret, tid, reg(), u8()..s64()",
			    (int)length, at, EXPR_MAX_ARGS);
	}
	return NULL;
}

static struct err *parse_primary(struct parser *parser, struct expr_chain *chain)
{
	skip(parser);
	if (accept(parser, "("))
		return parse_inner(parser, chain);
	if (isdigit((unsigned char)*parser->at) || *parser->at == '-') {
		chain->base = EXPR_CONST;
		return parse_number(parser, &chain->number);
	}
	if (word_length(parser->at))
		return parse_word(parser, chain);
	return fail(parser, parser->at, "a value is expected here");
}

static struct err *parse_postfix(struct parser *parser, struct expr_chain *chain)
{
	TRY(parse_primary(parser, chain));
	while (accept(parser, "->"))
		TRY(parse_field(parser, chain));
	return NULL;
}

static struct err *parse_unary(struct parser *parser, struct expr_chain *chain)
{
	skip(parser);
	const char *at = parser->at;

	if (!accept(parser, "*"))
		return parse_postfix(parser, chain);
	TRY(nest(parser));
	TRY(parse_unary(parser, chain));
	parser->depth--;
	return add_read(parser, at, chain, false);
}

static bool at_minus(struct parser *parser)
{
	skip(parser);
	return parser->at[0] == '-' && parser->at[1] != '>';
}

static struct err *parse_sum(struct parser *parser, struct expr_chain *chain)
{
	TRY(parse_unary(parser, chain));
	while (true) {
		bool minus = at_minus(parser);
		const char *at = parser->at;
		int64_t number;

		if (!minus && !accept(parser, "+"))
			return NULL;
		TRY(parse_number(parser, &number));
		if (chain->cast_bytes || chain->base == EXPR_CONST)
			return fail(parser, at, "a sum of a constant or a cut value");
		if (__builtin_add_overflow(chain->add, number, &chain->add) ||
		    chain->add > INT32_MAX || chain->add < INT32_MIN)
			return fail(parser, at, "offsets are limited to 2 GiB");
	}
}

static struct err *begin(struct parser *parser, const char *text)
{
	*parser = (struct parser){ .text = text, .at = text };
	if (strnlen(text, EXPR_MAX_TEXT + 1) > EXPR_MAX_TEXT)
		return err_new(ERR_LIMIT,
			       "column %d: expressions are limited to %d bytes",
			       EXPR_MAX_TEXT + 1, EXPR_MAX_TEXT);
	return NULL;
}

static struct err *finish(struct parser *parser)
{
	skip(parser);
	if (*parser->at)
		return fail(parser, parser->at, "nothing more is expected here");
	return NULL;
}

static enum expr_kind text_kind(const char *at, size_t length)
{
	static const char *const names[] = { [EXPR_CSTR] = "cstr",
					     [EXPR_STR] = "str",
					     [EXPR_GRPC_SLICE] = "grpc_slice",
					     [EXPR_STD_STRING] = "std_string" };

	for (int i = EXPR_CSTR; i <= EXPR_STD_STRING; i++)
		if (is_word(at, length, names[i]))
			return (enum expr_kind)i;
	return EXPR_VALUE;
}

struct err *expr_parse(const char *text, struct expr *ret_expr)
{
	struct expr expr = { .kind = EXPR_VALUE };
	struct parser parser;

	TRY(begin(&parser, text));
	skip(&parser);
	size_t length = word_length(parser.at);

	expr.kind = (uint8_t)text_kind(parser.at, length);
	if (expr.kind != EXPR_VALUE) {
		parser.at += length;
		TRY(expect(&parser, "("));
	}
	TRY(parse_sum(&parser, &expr.a));
	if (expr.kind == EXPR_STR) {
		TRY(expect(&parser, ","));
		TRY(parse_sum(&parser, &expr.b));
	}
	if (expr.kind != EXPR_VALUE)
		TRY(expect(&parser, ")"));
	TRY(finish(&parser));
	*ret_expr = expr;
	return NULL;
}

static struct err *parse_compare(struct parser *parser, uint8_t *ret_compare)
{
	/* Longer ones first. */
	static const struct {
		const char *token;
		enum expr_compare compare;
	} tokens[] = { { "==", EXPR_EQ }, { "!=", EXPR_NE }, { "<=", EXPR_LE },
		       { ">=", EXPR_GE }, { "<", EXPR_LT },  { ">", EXPR_GT },
		       { "&", EXPR_MASK } };

	skip(parser);
	if (strncmp(parser->at, "&&", 2) != 0)
		for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++)
			if (accept(parser, tokens[i].token)) {
				*ret_compare = (uint8_t)tokens[i].compare;
				return NULL;
			}
	return fail(parser, parser->at, "one of == != < <= > >= & is expected here");
}

struct err *expr_parse_when(const char *text, struct expr_when *ret_when)
{
	struct expr_when when = { .count = 0 };
	struct parser parser;

	TRY(begin(&parser, text));
	do {
		if (when.count == EXPR_MAX_CONDITIONS)
			return fail(&parser, parser.at, "more than %d conditions",
				    EXPR_MAX_CONDITIONS);
		struct expr_condition *condition = &when.conditions[when.count++];

		TRY(parse_sum(&parser, &condition->value));
		TRY(parse_compare(&parser, &condition->compare));
		TRY(parse_number(&parser, &condition->number));
	} while (accept(&parser, "&&"));
	TRY(finish(&parser));
	*ret_when = when;
	return NULL;
}
