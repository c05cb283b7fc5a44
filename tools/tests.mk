# SPDX-License-Identifier: Apache-2.0
# Unit tests: tests/unit/DIR/test_X.c links DIR and the folders that DIR may include
# (tools/layers.txt), so that one broken folder does not stop the tests of another.
layers = $(filter $(ALL_DIRS),$1 $(shell sed -n 's/^$1: *//p' tools/layers.txt))
$(foreach d,$(ALL_DIRS),$(eval $B/lib/$d.a: $(filter-out $(MAINS),$(call objs,$d))))
$B/lib/%.a:
	@mkdir -p $(@D)
	$(call say,AR) rm -f $@ && ar rcs $@ $^

UNIT_SRCS := $(wildcard tests/unit/*/test_*.c)
UNIT      := $(UNIT_SRCS:tests/%.c=$B/tests/%)
unit_dir   = $(notdir $(patsubst %/,%,$(dir $1)))
define unit_rule
$B/tests/unit/$1/%: tests/unit/$1/%.c $(patsubst %,$B/lib/%.a,$(call layers,$1)) $(GEN_OBJS)
	@mkdir -p $$(@D)
	$$(call say,TEST) $(CC) $(CPPFLAGS) -Itests $(CFLAGS) $(LDFLAGS) -MMD -MP -MF $$@.d $$< \
	  -Wl,--start-group $(patsubst %,$B/lib/%.a,$(call layers,$1)) -Wl,--end-group \
	  $(GEN_OBJS) -o $$@ $$(LIBS) -lcmocka
endef
$(foreach d,$(ALL_DIRS),$(eval $(call unit_rule,$d)))

unit: $(UNIT)
.PHONY: unit
