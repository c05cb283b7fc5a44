// SPDX-License-Identifier: Apache-2.0
#include "probe/match.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

static bool is_given(const char *text)
{
	return text && *text;
}

static bool fits(const char *pattern, const char *text)
{
	return !fnmatch(pattern, text, FNM_NOESCAPE);
}

bool match_may(const struct spec *spec, const char *path)
{
	for (size_t i = 0; i < spec->variant_count; i++)
		for (size_t j = 0; j < spec->variants[i].match_count; j++) {
			const char *pattern = spec->variants[i].matches[j].path;

			if (!pattern || fits(pattern, path))
				return true;
		}
	return false;
}

bool match_wants_package(const struct spec *spec)
{
	for (size_t i = 0; i < spec->variant_count; i++)
		for (size_t j = 0; j < spec->variants[i].match_count; j++)
			if (spec->variants[i].matches[j].package)
				return true;
	return false;
}

/* '~' before the end, before letters, before everything else. */
static int order(char c)
{
	if (c == '~')
		return -1;
	if (!c || isdigit((unsigned char)c))
		return 0;
	return isalpha((unsigned char)c) ? c : c + 256;
}

/* Turns of no digits and digits. */
static int compare_part(const char *a, const char *b)
{
	while (*a || *b) {
		while ((*a && !isdigit((unsigned char)*a)) ||
		       (*b && !isdigit((unsigned char)*b))) {
			int by = order(*a) - order(*b);

			if (by)
				return by;
			a += *a != '\0';
			b += *b != '\0';
		}
		a += strspn(a, "0");
		b += strspn(b, "0");
		size_t a_digits = strspn(a, "0123456789"),
		       b_digits = strspn(b, "0123456789");

		if (a_digits != b_digits)
			return a_digits < b_digits ? -1 : 1;
		int by = memcmp(a, b, a_digits);

		if (by)
			return by;
		a += a_digits;
		b += b_digits;
	}
	return 0;
}

static unsigned long take_epoch(const char **version)
{
	const char *colon = strchr(*version, ':');
	unsigned long epoch = 0;

	if (colon) {
		epoch = strtoul(*version, NULL, 10);
		*version = colon + 1;
	}
	return epoch;
}

int match_versions(const char *left, const char *right)
{
	unsigned long left_epoch = take_epoch(&left), right_epoch = take_epoch(&right);
	const char *left_dash = strrchr(left, '-'), *right_dash = strrchr(right, '-');

	if (left_epoch != right_epoch)
		return left_epoch < right_epoch ? -1 : 1;
	CLEANUP(free) char *a = mem_strdup(left);
	CLEANUP(free) char *b = mem_strdup(right);

	if (left_dash)
		a[left_dash - left] = '\0';
	if (right_dash)
		b[right_dash - right] = '\0';
	int by = compare_part(a, b);

	return by ? by
		  : compare_part(left_dash ? left_dash + 1 : "",
				 right_dash ? right_dash + 1 : "");
}

static char *trimmed(const char *text, size_t length)
{
	while (length && isspace((unsigned char)*text)) {
		text++;
		length--;
	}
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	return mem_printf("%.*s", (int)length, text);
}

bool match_in_range(const char *version, const char *range)
{
	const char *dots = strstr(range, "..");

	if (!dots) {
		CLEANUP(free) char *only = trimmed(range, strlen(range));

		return match_versions(version, only) == 0;
	}
	CLEANUP(free) char *from = trimmed(range, (size_t)(dots - range));
	CLEANUP(free) char *below = trimmed(dots + 2, strlen(dots + 2));

	return (!*from || match_versions(version, from) >= 0) &&
	       (!*below || match_versions(version, below) < 0);
}

/* Return: conditions that hold before the first that does not; @why describes that. */
static int try_match(const struct spec_match *match, const struct match_module *module,
		     bool *ret_fits, struct str *why)
{
	const struct {
		const char *name, *pattern, *text;
	} globs[] = { { "path", match->path, module->path },
		      { "soname", match->soname, module->soname },
		      { "package", match->package, module->package } };
	int held = 0;

	*ret_fits = false;
	for (size_t i = 0; i < sizeof(globs) / sizeof(globs[0]); i++) {
		if (!globs[i].pattern)
			continue;
		if (!is_given(globs[i].text) || !fits(globs[i].pattern, globs[i].text)) {
			str_printf(why, "its %s is %s, not %s", globs[i].name,
				   is_given(globs[i].text) ? globs[i].text : "unknown",
				   globs[i].pattern);
			return held;
		}
		held++;
	}
	if (match->versions && (!is_given(module->version) ||
				!match_in_range(module->version, match->versions))) {
		str_printf(why, "its version is %s, not in %s",
			   is_given(module->version) ? module->version : "unknown",
			   match->versions);
		return held;
	}
	held += match->versions != NULL;
	if (match->build_id && (!is_given(module->build_id) ||
				strcmp(match->build_id, module->build_id) != 0)) {
		str_printf(why, "its build-id is %s, not %s",
			   is_given(module->build_id) ? module->build_id : "unknown",
			   match->build_id);
		return held;
	}
	*ret_fits = true;
	return held + 1;
}

bool match_variant(const struct spec_variant *variant, const struct match_module *module,
		   struct str *why)
{
	CLEANUP(str_fini) struct str closest = { 0 };
	int most = -1;

	for (size_t i = 0; i < variant->match_count; i++) {
		CLEANUP(str_fini) struct str lack = { 0 };
		bool does_fit;
		int held = try_match(&variant->matches[i], module, &does_fit, &lack);

		if (does_fit)
			return true;
		if (held > most) {
			most = held;
			str_clear(&closest);
			str_add(&closest, str_text(&lack));
		}
	}
	str_add(why, str_text(&closest));
	return false;
}
