# SPDX-License-Identifier: Apache-2.0
# Type recovery is also judged on code that was optimised harder.
TYPES_FIXTURES := $(foreach v,gcc-O3 gcc-Os clang-O3,$(patsubst \
                    tests/fixture/%.c,$B/fixture/$v/%,$(wildcard tests/fixture/types_*.c)))
# and by the link-time optimiser.
$B/fixture/gcc-O2-lto/%: tests/fixture/%.c Makefile
	@mkdir -p $(@D)
	$(call say,FIXTURE) gcc -O2 -flto=auto -rdynamic $(FIXTURE_FLAGS) $< -o $@ -lm
TYPES_FIXTURES += $B/fixture/gcc-O2-lto/types_flow $B/fixture/gcc-O2-lto/types_more
fixtures: $(TYPES_FIXTURES)
