// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "bpf/abi.h"
#include "core/mem.h"
#include "core/str.h"
#include "probe/spec.h"

#define HEAD   "spec: t\nvariants:\n  - name: v\n    match:\n      - path: '*/t'\n"
#define PROBES "    probes:\n      - id: p\n"

static struct spec *parsed(const char *text)
{
	struct spec *spec = NULL;
	struct err *err = spec_parse("t.yaml", text, strlen(text), &spec);

	if (err)
		fail_msg("%s\n%s", err->text, text);
	return spec;
}

static const char whole[] =
	"spec: shop\n"
	"title: A shop\n"
	"otherwise: too old\n"
	"variants:\n"
	"  - name: two\n"
	"    match:\n"
	"      - {path: '*/shop', package: shop, versions: '2 .. 3'}\n"
	"      - {build_id: 'abcdef01'}\n"
	"    needs:\n"
	"      - function: serve\n"
	"      - usdt: shop:sold\n"
	"    resources:\n"
	"      - {name: till, title: Till, unit: coins, capacity: 7}\n"
	"    probes:\n"
	"      - id: serve\n"
	"        function: serve\n"
	"        at: paired\n"
	"        verb: request\n"
	"        key: arg1\n"
	"        name: str(*(arg1+8), arg2)\n"
	"        name_stops: '? \\n'\n"
	"        name_bytes: 64\n"
	"        when: u32(arg3) == 2\n"
	"        temperature: hot\n"
	"        fails_by: longjmp\n"
	"        missing: next\n"
	"      - id: take\n"
	"        demangled: 'Till::take(*'\n"
	"        verb: resource.acquire\n"
	"        resource: till\n"
	"        object: arg1\n"
	"        amount: '*(arg1+8)'\n"
	"        mode: exclusive\n"
	"        scope: task\n"
	"        temperature: cold\n"
	"      - id: take2\n"
	"        prefix: till_take\n"
	"        verb: resource.acquire\n"
	"        resource: till\n"
	"        instead_of: take\n"
	"        once: yes\n";

static void a_whole_file_is_read(void **state)
{
	CLEANUP(spec_free)
	struct spec *spec = parsed(whole);
	const struct spec_variant *variant = &spec->variants[0];
	const struct spec_probe *probe = &variant->probes[0];

	(void)state;
	assert_string_equal(spec->name, "shop");
	assert_string_equal(spec->otherwise, "too old");
	assert_int_equal(variant->match_count, 2);
	assert_string_equal(variant->matches[0].versions, "2 .. 3");
	assert_int_equal(variant->need_count, 2);
	assert_int_equal(variant->needs[1].by, SPEC_USDT);
	assert_int_equal(variant->resources[0].capacity, 7);
	assert_int_equal(variant->probe_count, 3);
	assert_int_equal(probe->at, SPEC_PAIRED);
	assert_int_equal(probe->verb, ABI_REQUEST_BEGIN);
	assert_int_equal(probe->end_verb, ABI_REQUEST_END);
	assert_string_equal(spec_verb_name(probe), "request");
	assert_memory_equal(probe->stops, "? \n", 3);
	assert_int_equal(probe->name_bytes, 64);
	assert_int_equal(probe->fails_by, SPEC_FAILS_LONGJMP);
	assert_int_equal(probe->missing, SPEC_SKIP_VARIANT);
	assert_int_equal(probe[1].mode, ABI_EXCLUSIVE);
	assert_int_equal(probe[1].scope, ABI_SCOPE_TASK);
	assert_int_equal(probe[1].temperature, SPEC_COLD);
	assert_int_equal(probe[2].instead_of, 1);
	assert_true(probe[2].once);
	assert_int_equal(probe[1].instead_of, -1);
}

static void what_the_probe_wants_of_its_place_follows_from_its_expressions(void **state)
{
	CLEANUP(spec_free)
	struct spec *spec = parsed(HEAD PROBES "        function: f\n"
					       "        at: paired\n"
					       "        verb: request\n"
					       "        key: arg1\n"
					       "        name: cstr(arg3)\n"
					       "        amount: ret\n");
	struct spec_wants wants = spec_wants(&spec->variants[0].probes[0]);

	(void)state;
	/* rdi and rdx */
	assert_int_equal(wants.entry_live, (1u << 5) | (1u << 1));
	assert_true(wants.entry_memory);
	assert_true(wants.result);
}

static const struct {
	const char *text, *error;
} mistakes[] = {
	{ HEAD PROBES "        function: f\n        verb: request.begin\n"
		      "        key: arg1+\n",
	  "t.yaml: variant v: probe p: key: column 6: a number is expected here" },
	{ HEAD PROBES "        function: f\n        verb: nonsense\n",
	  "t.yaml: variant v: probe p: verb: there is no 'nonsense'" },
	{ HEAD PROBES "        verb: request.begin\n", "which code?" },
	{ HEAD PROBES "        function: f\n        glob: g\n"
		      "        verb: request.begin\n",
	  "both function and glob are given" },
	{ HEAD PROBES "        function: f\n        verb: request\n",
	  "has a begin and an end" },
	{ HEAD PROBES "        function: f\n        at: paired\n"
		      "        verb: request.end\n",
	  "is one moment" },
	{ HEAD PROBES "        function: f\n        verb: request.begin\n"
		      "        key: ret\n",
	  "ret is known at the return only" },
	{ HEAD PROBES "        function: f\n        at: return\n"
		      "        verb: request.end\n        key: arg1\n",
	  "arguments and registers are gone at the return" },
	{ HEAD PROBES "        function: f\n        at: paired\n"
		      "        verb: request\n        when: ret == 0\n",
	  "it cannot depend on it" },
	{ HEAD PROBES "        function: f\n        at: paired\n"
		      "        verb: cost.add\n        name: cstr(arg1)\n",
	  "no argument can be read as text" },
	{ HEAD PROBES "        usdt: a:b\n        at: paired\n"
		      "        verb: request\n",
	  "a USDT probe has no return" },
	{ HEAD PROBES "        usdt: ab\n        verb: request.begin\n",
	  "provider:name is expected" },
	{ HEAD PROBES "        function: f\n        verb: resource.use\n",
	  "resource: is needed" },
	{ HEAD PROBES "        function: f\n        verb: stream.open\n"
		      "        key: arg1\n        object: u32(arg2)\n",
	  "amount (the number) are needed" },
	{ HEAD PROBES "        function: f\n        at: paired\n"
		      "        verb: stream.call\n",
	  "is one moment" },
	{ HEAD PROBES "        function: f\n        verb: request.end\n"
		      "        aside: yes\n",
	  "aside: goes with request.begin only" },
	{ HEAD PROBES "        function: f\n        verb: label\n",
	  "label: goes with the verb label" },
	{ HEAD PROBES "        function: f\n        verb: request.begin\n"
		      "        label: hit\n",
	  "label: goes with the verb label" },
	{ HEAD PROBES "        function: f\n        verb: resource.use\n"
		      "        resource: r\n",
	  "'r' is not in the list of resources" },
	{ HEAD PROBES "        function: f\n        verb: request.begin\n"
		      "        name: arg1\n",
	  "name: a text is needed" },
	{ HEAD PROBES "        function: f\n        verb: request.begin\n"
		      "        key: cstr(arg1)\n",
	  "key: a number is needed" },
	{ HEAD PROBES "        offset: '0x10'\n        verb: request.begin\n",
	  "size: goes with offset" },
	{ HEAD PROBES "        offset: '0x10'\n        size: 9\n"
		      "        verb: request.begin\n",
	  "need a build_id in every match" },
	{ HEAD PROBES "        function: f\n        verb: request.begin\n"
		      "        instead_of: q\n",
	  "there is no probe 'q' above" },
	{ HEAD PROBES "        function: f\n        verb: request.begin\n"
		      "      - id: p\n        function: f\n"
		      "        verb: request.end\n",
	  "probe p: is there twice" },
	{ HEAD PROBES "        function: f\n        verb: request.begin\n"
		      "        colour: red\n",
	  "colour" },
	{ HEAD PROBES "        function: f\n        verb: request.begin\n"
		      "        temperature: tepid\n",
	  "tepid" },
	{ HEAD PROBES "        function: f\n        verb: request.begin\n"
		      "        key: *(arg1+8)\n",
	  "t.yaml:" }, /* an alias, as YAML has it: quotes are missing */
	{ "spec: t\nvariants:\n  - name: v\n    match: [{}]\n" PROBES
	  "        function: f\n        verb: request.begin\n",
	  "one of path, soname, package or build_id is needed" },
	{ "spec: t\n", "t.yaml:" },
	{ "", "the file is empty" },
	{ "%", "t.yaml:" },
};

static void mistakes_are_told_with_their_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		struct spec *spec = NULL;
		struct err *err = spec_parse("t.yaml", mistakes[i].text,
					     strlen(mistakes[i].text), &spec);

		if (!err)
			fail_msg("no error:\n%s", mistakes[i].text);
		if (!strstr(err->text, mistakes[i].error))
			fail_msg("'%s' is not in '%s'", mistakes[i].error, err->text);
		assert_null(spec);
		err_free(err);
	}
}

static void more_than_one_file_may_hold_is_refused(void **state)
{
	struct spec *spec = NULL;
	CLEANUP(str_fini) struct str text = { 0 };

	(void)state;
	str_add(&text, HEAD "    probes:\n");
	for (int i = 0; i <= SPEC_MAX_PROBES; i++)
		str_printf(&text, "      - {id: p%d, function: f, verb: request.begin}\n",
			   i);
	struct err *err = spec_parse("t.yaml", text.data, text.length, &spec);

	assert_non_null(err);
	err_free(err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_file_is_read),
		cmocka_unit_test(
			what_the_probe_wants_of_its_place_follows_from_its_expressions),
		cmocka_unit_test(mistakes_are_told_with_their_place),
		cmocka_unit_test(more_than_one_file_may_hold_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
