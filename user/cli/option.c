// SPDX-License-Identifier: Apache-2.0
/*
 * getopt_long does the cutting (bundled letters, --name=value, abbreviations); values
 * are checked here, so that every command refuses the same nonsense in the same words.
 * Long options return OPTION_BASE + index, letters themselves.
 */
#include "cli/option.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"

#define OPTION_BASE 256

void option_add(struct options *options, const struct option_spec *specs)
{
	for (; specs && specs->name; specs++) {
		if (options->count == OPTION_MAX)
			abort();
		options->specs[options->count++] = specs;
	}
}

int option_choice(const char *choices, const char *word)
{
	size_t length = strlen(word);

	for (int index = 0; choices; index++) {
		size_t size = strcspn(choices, "|");

		if (size == length && !memcmp(choices, word, size))
			return index;
		choices = choices[size] ? choices + size + 1 : NULL;
	}
	return -1;
}

static struct err *check_number(const struct option_spec *spec,
				struct option_value *value)
{
	if (!number_parse(value->text, &value->number))
		return err_new(ERR_INVALID, "--%s: '%s' is not a number", spec->name,
			       value->text);
	if (value->number < spec->min || (spec->max && value->number > spec->max))
		return err_new(ERR_INVALID, "--%s: %s is outside %llu..%llu", spec->name,
			       value->text, (unsigned long long)spec->min,
			       (unsigned long long)spec->max);
	return NULL;
}

static struct err *check_duration(const struct option_spec *spec,
				  struct option_value *value)
{
	TRY(err_wrap(duration_parse(value->text, &value->number), "--%s", spec->name));
	if (!value->number)
		return err_new(ERR_INVALID, "--%s: '%s' is no time at all", spec->name,
			       value->text);
	return NULL;
}

static struct err *check_value(const struct option_spec *spec, struct option_value *value)
{
	int choice;

	switch (spec->kind) {
	case OPTION_NUMBER:
		return check_number(spec, value);
	case OPTION_DURATION:
		return check_duration(spec, value);
	case OPTION_CHOICE:
		choice = option_choice(spec->arg, value->text);
		if (choice < 0)
			return err_new(ERR_INVALID, "--%s: '%s' is none of %s",
				       spec->name, value->text, spec->arg);
		value->number = (uint64_t)choice;
		return NULL;
	case OPTION_TEXT:
	case OPTION_FILE:
		if (!*value->text)
			return err_new(ERR_INVALID, "--%s: empty argument", spec->name);
		return NULL;
	default:
		return NULL;
	}
}

static struct err *set_value(struct options *options, size_t index, const char *text)
{
	struct option_value *value = &options->values[index];

	value->given = true;
	value->text = text;
	return check_value(options->specs[index], value);
}

static size_t index_of_letter(const struct options *options, int letter)
{
	size_t index = 0;

	while (index < options->count && options->specs[index]->letter != letter)
		index++;
	return index;
}

/* getopt's own sentences name the program, not the command, so they are made here. */
static struct err *complain(const struct options *options, int why, const char *word)
{
	size_t index = optopt >= OPTION_BASE ? (size_t)(optopt - OPTION_BASE)
					     : index_of_letter(options, optopt);
	const char *name =
		optopt && index < options->count ? options->specs[index]->name : NULL;

	if (why == ':' && name)
		return err_new(ERR_INVALID, "--%s needs an argument: %s", name,
			       options->specs[index]->arg);
	if (name)
		return err_new(ERR_INVALID, "--%s takes no argument", name);
	if (optopt)
		return err_new(ERR_INVALID, "no such option: -%c", optopt);
	return err_new(ERR_INVALID, "no such option, or not a unique one: %s", word);
}

static void build_getopt(const struct options *options, bool in_order,
			 struct option *longs, char *letters)
{
	if (in_order)
		*letters++ = '+';
	*letters++ = ':';
	for (size_t i = 0; i < options->count; i++) {
		const struct option_spec *spec = options->specs[i];
		bool takes = spec->kind != OPTION_FLAG;

		longs[i] = (struct option){ .name = spec->name,
					    .has_arg = takes ? required_argument
							     : no_argument,
					    .val = OPTION_BASE + (int)i };
		if (!spec->letter)
			continue;
		*letters++ = spec->letter;
		if (takes)
			*letters++ = ':';
	}
	*letters = 0;
}

struct err *option_parse(struct options *options, int argc, char **argv, bool in_order)
{
	struct option longs[OPTION_MAX + 1] = { 0 };
	char letters[2 * OPTION_MAX + 3];
	int got;

	build_getopt(options, in_order, longs, letters);
	optind = 0; /* makes getopt forget an earlier argv */
	opterr = 0;
	while (optopt = 0, (got = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		size_t index = got >= OPTION_BASE ? (size_t)(got - OPTION_BASE)
						  : index_of_letter(options, got);

		if (got == '?' || got == ':')
			return complain(options, got, argv[optind - 1]);
		TRY(set_value(options, index, optarg));
	}
	options->args = argv + optind;
	options->arg_count = (size_t)(argc - optind);
	return NULL;
}

static const struct option_value *value_of(const struct options *options,
					   const char *name)
{
	for (size_t i = 0; i < options->count; i++)
		if (!strcmp(options->specs[i]->name, name))
			return &options->values[i];
	abort(); /* a command asks for an option that its table does not have */
}

bool option_given(const struct options *options, const char *name)
{
	return value_of(options, name)->given;
}

const char *option_text(const struct options *options, const char *name,
			const char *fallback)
{
	const struct option_value *value = value_of(options, name);

	return value->given ? value->text : fallback;
}

uint64_t option_number(const struct options *options, const char *name, uint64_t fallback)
{
	const struct option_value *value = value_of(options, name);

	return value->given ? value->number : fallback;
}
