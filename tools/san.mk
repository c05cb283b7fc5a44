# SPDX-License-Identifier: Apache-2.0
# make san: the unit tests and the replay of every fuzz seed under address and undefined
# behaviour sanitizers, in a build folder of their own.
SAN_B     := $B-san
SAN_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined
san-build:
	@$(MAKE) --no-print-directory B=$(SAN_B) OPT='-O1 -g' SANFLAGS='$(SAN_FLAGS)' \
	  unit replays
san:
	tools/test san
.PHONY: san san-build
