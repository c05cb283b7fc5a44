# SPDX-License-Identifier: Apache-2.0
# Unit tests: tests/unit/DIR/test_X.c links DIR and the folders that DIR may include
# (tools/layers.txt), so that one broken folder does not stop the tests of another.
deps   = $(filter $(ALL_DIRS),$(shell sed -n 's/^$1: *//p' tools/layers.txt))
layers = $(sort $1 $(foreach d,$(call deps,$1),$d $(call deps,$d)))
$(foreach d,$(ALL_DIRS),$(eval $B/lib/$d.a: $(filter-out $(MAINS),$(call objs,$d))))
$B/lib/%.a:
	@mkdir -p $(@D)
	$(call say,AR) rm -f $@ && ar qcs $@ $^

UNIT_SRCS := $(wildcard tests/unit/*/test_*.c)
UNIT      := $(UNIT_SRCS:tests/%.c=$B/tests/%)
define unit_rule
$B/tests/unit/$1/%: tests/unit/$1/%.c $(patsubst %,$B/lib/%.a,$(call layers,$1)) $(GEN_OBJS)
	@mkdir -p $$(@D)
	$$(call say,TEST) $(CC) $(CPPFLAGS) -Itests $(CFLAGS) $(LDFLAGS) -MMD -MP -MF $$@.d $$< \
	  -Wl,--start-group $(patsubst %,$B/lib/%.a,$(call layers,$1)) -Wl,--end-group \
	  $(GEN_OBJS) -o $$@ $$(LIBS) -lcmocka
endef
$(foreach d,$(ALL_DIRS),$(eval $(call unit_rule,$d)))
unit: $(UNIT)

# Fixtures: tests/fixture/X.c as other people's programs are built, one file each:
# $B/fixture/COMPILER-OPT/X, for example gcc-O2/server. Any of these can be asked for.
FIXTURE_FLAGS := -std=gnu11 -g -Wall -Wextra -pthread
define fixture_rule
$B/fixture/$1-$2/%: tests/fixture/%.c Makefile
	@mkdir -p $$(@D)
	$$(call say,FIXTURE) $1 -$2 $(FIXTURE_FLAGS) $$< -o $$@ -lm
endef
$(foreach c,gcc clang,$(foreach o,O0 O1 O2 O3 Os,$(eval $(call fixture_rule,$c,$o))))
FIXTURES := $(foreach v,gcc-O0 gcc-O2 clang-O2,$(patsubst \
              tests/fixture/%.c,$B/fixture/$v/%,$(wildcard tests/fixture/*.c)))
fixtures: $(FIXTURES)

# Programs of the live and command line tests: tests/live/X.c links everything but mains.
LIVE := $(patsubst %.c,$B/%,$(wildcard tests/live/*.c tests/replay/*.c tests/cli/*.c))
$(LIVE): $B/%: %.c $B/libassay.a
	@mkdir -p $(@D)
	$(call say,TEST) $(CC) $(CPPFLAGS) -Itests $(CFLAGS) $(LDFLAGS) -MMD -MP -MF $@.d $< \
	  $B/libassay.a -o $@ $(LIBS) -lcmocka

tests: unit fixtures $(LIVE)
test:
	tools/test
live:
	tools/test live
.PHONY: unit fixtures tests test live
