# SPDX-License-Identifier: Apache-2.0
# Programs that make the databases and play the peers of tests/cli/run.
CLI_DATA := $(patsubst %.c,$B/%,$(wildcard tests/cli/data/*.c))
$(CLI_DATA): $B/%: %.c $B/lib/store.a $B/lib/model.a $B/lib/core.a $(GEN_OBJS)
	@mkdir -p $(@D)
	$(call say,TEST) $(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -MMD -MP -MF $@.d $< \
	  $(filter %.a %.o,$^) -o $@ -lsqlite3 -lxxhash
tests: $(CLI_DATA)
