# SPDX-License-Identifier: Apache-2.0
# Type recovery is also judged on code that was optimised harder.
TYPES_FIXTURES := $(foreach v,gcc-O3 gcc-Os clang-O3,$(patsubst \
                    tests/fixture/%.c,$B/fixture/$v/%,$(wildcard tests/fixture/types_*.c)))
fixtures: $(TYPES_FIXTURES)
