# SPDX-License-Identifier: Apache-2.0
# make dist: manual pages, completion and settings, printed by the programs themselves.
# make install DESTDIR= PREFIX=: all of it; an existing assayd.conf is kept.
DIST_CMDS  := $(shell sed -n '/^extern const struct cmd/,/;/p' user/cli/cmd.h | \
                grep -o 'cmd_[a-z]*' | sed 's/cmd_//')
DIST_MAN   := $B/dist/assay.1 $(DIST_CMDS:%=$B/dist/assay-%.1)
DIST_PAGES := $(patsubst tools/dist/man/%,$B/dist/%,$(wildcard tools/dist/man/*))
DIST_FILES := $(DIST_MAN) $(DIST_PAGES) $B/dist/assay.bash $B/dist/assayd.conf $B/dist/assayd.service
put         = install -D -m $1 $2 $(DESTDIR)$3

$B/dist/assay.1: $B/assay
	@mkdir -p $(@D)
	$(call say,MAN) $B/assay man > $@
$B/dist/assay-%.1: $B/assay
	@mkdir -p $(@D)
	$(call say,MAN) $B/assay man $* > $@
$(DIST_PAGES): $B/dist/%: tools/dist/man/%
	@mkdir -p $(@D)
	$(call say,MAN) sed 's|@VERSION@|$(VERSION)|' $< > $@
$B/dist/assay.bash: $B/assay
	@mkdir -p $(@D)
	$(call say,DIST) $B/assay completion bash > $@
$B/dist/assayd.conf: $B/assayd
	@mkdir -p $(@D)
	$(call say,DIST) $B/assayd --config=/dev/null --print-config > $@
$B/dist/assayd.service: tools/dist/assayd.service
	@mkdir -p $(@D)
	$(call say,DIST) sed 's|/usr/sbin/|$(PREFIX)/sbin/|' $< > $@
dist: $(DIST_FILES)

install: all dist
	$(call put,755,$B/assay,$(PREFIX)/bin/assay)
	$(call put,755,$B/assayd,$(PREFIX)/sbin/assayd)
	$(call put,755,$B/assay-worker,$(PREFIX)/libexec/assay/assay-worker)
	$(call put,644,$B/dist/assayd.service,$(PREFIX)/lib/systemd/system/assayd.service)
	$(call put,644,tools/dist/assay.sysusers,$(PREFIX)/lib/sysusers.d/assay.conf)
	$(call put,644,tools/dist/assay.tmpfiles,$(PREFIX)/lib/tmpfiles.d/assay.conf)
	$(call put,644,tools/dist/60-assay.conf,$(PREFIX)/lib/sysctl.d/60-assay.conf)
	[ -e $(DESTDIR)/etc/assay/assayd.conf ] || \
	  $(call put,644,$B/dist/assayd.conf,/etc/assay/assayd.conf)
	$(call put,644,$B/dist/assay.bash,$(PREFIX)/share/bash-completion/completions/assay)
	$(call put,644,tools/dist/assay-spec.5,$(PREFIX)/share/man/man5/assay-spec.5)
	for spec in schema/spec.d/*.yaml; do \
	  $(call put,644,$$spec,$(PREFIX)/share/assay/spec.d/$$(basename $$spec)) || exit 1; done
	for page in $(DIST_MAN) $(DIST_PAGES); do \
	  $(call put,644,$$page,$(PREFIX)/share/man/man$${page##*.}/$$(basename $$page)) \
	    || exit 1; done
.PHONY: dist install
