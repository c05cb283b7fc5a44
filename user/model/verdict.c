// SPDX-License-Identifier: Apache-2.0
#include "model/verdict.h"

#include <string.h>

static const struct {
	const char *name, *text;
} verdicts[VERDICTS] = {
	[VERDICT_NONE] = { "none", "not analysed yet" },
	[VERDICT_DWARF] = { "dwarf", "a variable's location at this instruction" },
	[VERDICT_GLOBAL] = { "global", "a global variable, by its address" },
	[VERDICT_LOCAL] = { "local", "data flow inside the basic block" },
	[VERDICT_JOIN] = { "join", "data flow over the whole function" },
	[VERDICT_CALL] = { "call", "the type of a call's result or argument" },
	[VERDICT_BACKWARD] = { "backward", "a later use decides" },
	[VERDICT_LAYOUT] = { "layout", "inferred from struct layouts" },
	[VERDICT_NO_DEBUG] = { "no-debug", "the module has no debug information" },
	[VERDICT_NO_FUNCTION] = { "no-function",
				  "no function with debug information is here" },
	[VERDICT_NO_TYPE] = { "no-type", "nothing is known about the base register" },
	[VERDICT_NOT_STRUCT] = { "not-struct", "a scalar or a buffer, not a struct" },
	[VERDICT_CONFLICT] = { "conflict", "the facts contradict each other" },
	[VERDICT_OUT_OF_RANGE] = { "out-of-range", "the offset lies outside the type" },
	[VERDICT_STACK] = { "stack", "a spill slot, saved register or argument slot" },
	[VERDICT_CANARY] = { "canary", "the stack protector's guard" },
	[VERDICT_CONSTANT] = { "constant", "constant pool, jump table or GOT" },
	[VERDICT_ASSEMBLY] = { "assembly", "hand-written assembly has no types" },
	[VERDICT_NO_MEMORY] = { "no-memory", "the instruction accesses no memory" },
	[VERDICT_SKID] = { "skid", "the access before the sample is not unique" },
	[VERDICT_LIMIT] = { "limit", "the function exceeds a limit of the analyser" },
	[VERDICT_SPILL] = { "spill", "a spill slot that holds a value of known type" },
};

const char *verdict_name(enum verdict verdict)
{
	return (unsigned)verdict < VERDICTS ? verdicts[verdict].name : "unknown";
}

const char *verdict_text(enum verdict verdict)
{
	return (unsigned)verdict < VERDICTS ? verdicts[verdict].text : "unknown";
}

bool verdict_is_claim(enum verdict verdict)
{
	return verdict > VERDICT_NONE && verdict <= VERDICT_LAST_CLAIM;
}

enum verdict verdict_parse(const char *name)
{
	for (int i = 0; i < VERDICTS; i++)
		if (!strcmp(verdicts[i].name, name))
			return (enum verdict)i;
	return VERDICT_NONE;
}
