/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ASSAY_REGS_BPF_H
#define ASSAY_REGS_BPF_H

#include "bpf/abi.h"

/*
 * REGS_COPY() - struct pt_regs to DWARF numbers, then rip.
 * A macro, because @from may be inside the context, to which no pointer can be passed.
 */
#define REGS_COPY(to, from)                      \
	do {                                     \
		(to)[0] = (from)->ax;            \
		(to)[1] = (from)->dx;            \
		(to)[2] = (from)->cx;            \
		(to)[3] = (from)->bx;            \
		(to)[4] = (from)->si;            \
		(to)[5] = (from)->di;            \
		(to)[6] = (from)->bp;            \
		(to)[7] = (from)->sp;            \
		(to)[8] = (from)->r8;            \
		(to)[9] = (from)->r9;            \
		(to)[10] = (from)->r10;          \
		(to)[11] = (from)->r11;          \
		(to)[12] = (from)->r12;          \
		(to)[13] = (from)->r13;          \
		(to)[14] = (from)->r14;          \
		(to)[15] = (from)->r15;          \
		(to)[ABI_REGS - 1] = (from)->ip; \
	} while (0)

#endif
