# SPDX-License-Identifier: Apache-2.0
# Targets: tests/fuzz/fuzz_X.c with LLVMFuzzerTestOneInput(), seeds in fuzz_X.seeds/.
# Two ways to run one: replay_X feeds it every seed (any compiler, part of make test);
# make fuzz searches with libFuzzer for FUZZ_SECONDS each, in a build folder of its own.
FUZZ_B       := $B-fuzz
FUZZ_FLAGS   := -fsanitize=address,undefined -fno-sanitize-recover=undefined
FUZZ_SECONDS ?= 10
# What may be fuzzed: nothing that needs a privilege. Of probe/ that is what parses.
FUZZ_LIBS    := $(patsubst %,$B/lib/%.a,$(filter-out probe,$(LIB_DIRS))) \
                $(patsubst %,$B/user/probe/%.o,sideband expr spec spec_yaml match fetch plan)
FUZZ_SRCS    := $(wildcard tests/fuzz/fuzz_*.c)
REPLAYS      := $(FUZZ_SRCS:tests/fuzz/fuzz_%.c=$B/tests/fuzz/replay_%)
FUZZERS      := $(FUZZ_SRCS:tests/fuzz/%.c=$B/tests/fuzz/%)
FUZZ_LINK     = -MMD -MP -MF $@.d $(filter %.c,$^) -Wl,--start-group $(FUZZ_LIBS) \
                -Wl,--end-group $(GEN_OBJS) -o $@ $(LIBS)

$B/tests/fuzz/replay_%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $(FUZZ_LIBS) $(GEN_OBJS)
	@mkdir -p $(@D)
	$(call say,REPLAY) $(CC) $(CPPFLAGS) -Itests $(CFLAGS) -Wno-missing-prototypes \
	  $(LDFLAGS) $(FUZZ_LINK)
$B/tests/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(FUZZ_LIBS) $(GEN_OBJS)
	@mkdir -p $(@D)
	$(call say,FUZZER) $(CC) $(CPPFLAGS) -Itests $(CFLAGS) -Wno-missing-prototypes \
	  $(LDFLAGS) -fsanitize=fuzzer $(FUZZ_LINK)
replays: $(REPLAYS)
fuzzers: $(FUZZERS)
fuzz-build:
	@$(MAKE) --no-print-directory B=$(FUZZ_B) CC=$(CLANG) OPT='-O1 -g' \
	  SANFLAGS='-fsanitize=fuzzer-no-link $(FUZZ_FLAGS)' fuzzers
fuzz:
	FUZZ_SECONDS=$(FUZZ_SECONDS) tools/test fuzz
.PHONY: replays fuzzers fuzz-build fuzz
