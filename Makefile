# SPDX-License-Identifier: Apache-2.0
# The whole build. make [all] unit fixtures san fuzz lint dist bench install clean;
# make test runs everything; V=1 shows commands; B=FOLDER builds elsewhere.
B       ?= .build
V       ?= 0
CC      ?= cc
CLANG   ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
PREFIX  ?= /usr
DESTDIR ?=
VERSION := 0.1.0

PKGS_assay        := sqlite3 smartcols jansson libbpf libcyaml
PKGS_assayd       := libbpf sqlite3 libsystemd libcap-ng inih libcyaml
PKGS_assay-worker := libdw libelf capstone libseccomp libdebuginfod libzstd
PKGS              := $(sort $(PKGS_assay) $(PKGS_assayd) $(PKGS_assay-worker) libxxhash)
OPT      ?= -O2 -g
WARN     := -Wall -Wextra -Werror -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wvla
CPPFLAGS := $(CPPFLAGS) -D_GNU_SOURCE -DASSAY_VERSION='"$(VERSION)"' -Iuser -I. -I$B/gen \
            $(shell pkg-config --cflags $(PKGS))
CFLAGS   += -std=gnu11 $(OPT) $(WARN) -fno-omit-frame-pointer -fstack-protector-strong $(SANFLAGS)
LDFLAGS  += -Wl,--as-needed -Wl,-z,relro,-z,now $(SANFLAGS)
BPFFLAGS := -g -O2 -target bpf -D__TARGET_ARCH_x86 -Wall -Werror -I. -Ivmlinux/x86_64 \
            -mcpu=v3

say = $(if $(filter 1,$V),,@printf '  %-8s%s\n' '$1' '$(patsubst $B/%,%,$@)';)

PROGRAMS := assay assayd assay-worker
DIRS_assay        := core model event job probe store cost cli
DIRS_assayd       := core model event cost live job probe store resource daemon
DIRS_assay-worker := core model event bin types discover job perfdata worker
objs = $(patsubst %.c,$B/%.o,$(foreach d,$1,$(wildcard user/$d/*.c)))
ALL_DIRS := $(sort $(foreach p,$(PROGRAMS),$(DIRS_$p)))
LIB_DIRS := $(filter-out cli daemon worker,$(ALL_DIRS))
# Everything but the mains, for the tests.
MAINS    := $(patsubst %.c,$B/%.o,$(wildcard user/*/main.c))
GEN_OBJS := $B/gen/schema.o $B/gen/text.o
LIBS     := $(shell pkg-config --libs $(PKGS)) -liberty -lm

all: $(PROGRAMS:%=$B/%)

$(foreach p,$(PROGRAMS),$(eval $B/$p: $(call objs,$(DIRS_$p))))
$B/assay $B/assayd: $(GEN_OBJS)
$(PROGRAMS:%=$B/%):
	$(call say,LD) $(CC) $(CFLAGS) $(LDFLAGS) $^ -o $@ \
	  $(shell pkg-config --libs libxxhash $(PKGS_$(@F))) $(if $(findstring worker,$@),-liberty) -lm

$B/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC) $(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@
$B/%.o: $B/%.c
	$(call say,CC) $(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

# BPF: one object, one skeleton.
BPF_OBJS := $(patsubst bpf/%.bpf.c,$B/bpf/%.bpf.o,$(wildcard bpf/*.bpf.c))
$B/bpf/%.bpf.o: bpf/%.bpf.c Makefile
	@mkdir -p $(@D)
	$(call say,BPF) $(CLANG) $(BPFFLAGS) -MMD -MP -c $< -o $@
$B/bpf/assay.bpf.o: $(BPF_OBJS)
	$(call say,BPFLINK) $(BPFTOOL) gen object $@ $^
$B/gen/assay.skel.h: $B/bpf/assay.bpf.o
	@mkdir -p $(@D)
	$(call say,SKEL) $(BPFTOOL) gen skeleton $< name assay > $@
$(call objs,probe): $B/gen/assay.skel.h

# SQL and texts that the programs carry.
SCHEMA := $(wildcard schema/*.sql schema/write/*.sql schema/report/*.sql)
$B/gen/schema.c: tools/embed.sh $(SCHEMA)
	@mkdir -p $(@D)
	$(call say,EMBED) tools/embed.sh schema $(SCHEMA) > $@
TEXTS := $(wildcard tools/dist/bash-completion.in)
$B/gen/text.c: tools/embed.sh $(TEXTS)
	@mkdir -p $(@D)
	$(call say,EMBED) tools/embed.sh text $(TEXTS) > $@

$B/libassay.a: $(filter-out $(MAINS),$(call objs,$(ALL_DIRS))) $(GEN_OBJS)
	$(call say,AR) rm -f $@ && ar qcs $@ $^

include $(wildcard tools/*.mk)

clean:
	rm -rf $B

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all clean
-include $(shell find $B/user $B/bpf $B/gen $B/tests -name '*.d' 2>/dev/null)
