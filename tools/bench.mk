# SPDX-License-Identifier: Apache-2.0
# make bench: what the agent costs a server; up to 20 minutes, see tools/bench/overhead.
$B/bench/%: tools/bench/%.c Makefile
	@mkdir -p $(@D)
	$(call say,BENCH) $(CC) -D_GNU_SOURCE $(CFLAGS) $< -o $@ -lm
bench-build: $B/bench/slices
bench: all bench-build
	B=$B tools/bench/overhead
.PHONY: bench bench-build
