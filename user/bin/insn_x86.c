// SPDX-License-Identifier: Apache-2.0
/*
 * x86-64 by capstone. A table maps capstone's instruction ids to our operations; two-
 * operand arithmetic is spelt out as three operands. Unknown instructions become
 * INSN_OTHER with the registers that capstone says they write. SKIPDATA stays off:
 * what does not decode is INSN_BAD and one byte long, so that data between functions
 * never passes for code.
 */
#include "bin/insn_x86.h"

#include <capstone/capstone.h>
#include <string.h>

#include "core/mem.h"
#include "core/str.h"

struct insn_decoder {
	csh handle;
	cs_insn *raw;
	uint8_t regs[X86_REG_ENDING], widths[X86_REG_ENDING];
};

enum shape {
	SHAPE_PLAIN = 1, /* operands as they are, the first is written */
	SHAPE_BINARY,	 /* dst op= src: repeat the destination as first source */
	SHAPE_UNARY,	 /* dst = op dst */
	SHAPE_READ,	 /* operands only read */
	SHAPE_FLOW,	 /* call, jump, branch */
	SHAPE_NONE,	 /* no operands of interest */
};

static const struct {
	uint8_t op, shape;
} table[X86_INS_ENDING] = {
	[X86_INS_MOV] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_MOVABS] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_MOVAPS] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_MOVAPD] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_MOVUPS] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_MOVUPD] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_MOVDQA] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_MOVDQU] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_MOVQ] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_MOVD] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_MOVSD] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_MOVSS] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_MOVNTI] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_MOVNTDQ] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_MOVNTPS] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_VMOVAPS] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_VMOVAPD] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_VMOVUPS] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_VMOVUPD] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_VMOVDQA] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_VMOVDQU] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_VMOVQ] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_VMOVD] = { INSN_MOVE, SHAPE_PLAIN },
	[X86_INS_MOVZX] = { INSN_EXTEND, SHAPE_PLAIN },
	[X86_INS_MOVSX] = { INSN_EXTEND, SHAPE_PLAIN },
	[X86_INS_MOVSXD] = { INSN_EXTEND, SHAPE_PLAIN },
	[X86_INS_LEA] = { INSN_LEA, SHAPE_PLAIN },
	[X86_INS_ADD] = { INSN_ADD, SHAPE_BINARY },
	[X86_INS_SUB] = { INSN_SUB, SHAPE_BINARY },
	[X86_INS_INC] = { INSN_ADD, SHAPE_UNARY },
	[X86_INS_DEC] = { INSN_SUB, SHAPE_UNARY },
	[X86_INS_IMUL] = { INSN_MUL, SHAPE_BINARY },
	[X86_INS_SHL] = { INSN_SHIFT_LEFT, SHAPE_BINARY },
	[X86_INS_SAL] = { INSN_SHIFT_LEFT, SHAPE_BINARY },
	[X86_INS_AND] = { INSN_AND, SHAPE_BINARY },
	[X86_INS_NEG] = { INSN_NEG, SHAPE_UNARY },
	[X86_INS_CMOVA] = { INSN_SELECT, SHAPE_PLAIN },
	[X86_INS_CMOVAE] = { INSN_SELECT, SHAPE_PLAIN },
	[X86_INS_CMOVB] = { INSN_SELECT, SHAPE_PLAIN },
	[X86_INS_CMOVBE] = { INSN_SELECT, SHAPE_PLAIN },
	[X86_INS_CMOVE] = { INSN_SELECT, SHAPE_PLAIN },
	[X86_INS_CMOVG] = { INSN_SELECT, SHAPE_PLAIN },
	[X86_INS_CMOVGE] = { INSN_SELECT, SHAPE_PLAIN },
	[X86_INS_CMOVL] = { INSN_SELECT, SHAPE_PLAIN },
	[X86_INS_CMOVLE] = { INSN_SELECT, SHAPE_PLAIN },
	[X86_INS_CMOVNE] = { INSN_SELECT, SHAPE_PLAIN },
	[X86_INS_CMOVNO] = { INSN_SELECT, SHAPE_PLAIN },
	[X86_INS_CMOVNP] = { INSN_SELECT, SHAPE_PLAIN },
	[X86_INS_CMOVNS] = { INSN_SELECT, SHAPE_PLAIN },
	[X86_INS_CMOVO] = { INSN_SELECT, SHAPE_PLAIN },
	[X86_INS_CMOVP] = { INSN_SELECT, SHAPE_PLAIN },
	[X86_INS_CMOVS] = { INSN_SELECT, SHAPE_PLAIN },
	[X86_INS_XCHG] = { INSN_EXCHANGE, SHAPE_PLAIN },
	[X86_INS_PUSH] = { INSN_PUSH, SHAPE_READ },
	[X86_INS_POP] = { INSN_POP, SHAPE_PLAIN },
	[X86_INS_LEAVE] = { INSN_LEAVE, SHAPE_NONE },
	[X86_INS_CMP] = { INSN_COMPARE, SHAPE_READ },
	[X86_INS_TEST] = { INSN_TEST, SHAPE_READ },
	[X86_INS_CALL] = { INSN_CALL, SHAPE_FLOW },
	[X86_INS_JMP] = { INSN_JUMP, SHAPE_FLOW },
	[X86_INS_RET] = { INSN_RETURN, SHAPE_NONE },
	[X86_INS_RETF] = { INSN_RETURN, SHAPE_NONE },
	[X86_INS_IRETQ] = { INSN_RETURN, SHAPE_NONE },
	[X86_INS_HLT] = { INSN_TRAP, SHAPE_NONE },
	[X86_INS_UD2] = { INSN_TRAP, SHAPE_NONE },
	[X86_INS_INT3] = { INSN_TRAP, SHAPE_NONE },
	[X86_INS_NOP] = { INSN_NOP, SHAPE_NONE },
	[X86_INS_FNOP] = { INSN_NOP, SHAPE_NONE },
	[X86_INS_PAUSE] = { INSN_NOP, SHAPE_NONE },
	[X86_INS_ENDBR64] = { INSN_NOP, SHAPE_NONE },
	[X86_INS_PREFETCH] = { INSN_NOP, SHAPE_NONE },
	[X86_INS_PREFETCHW] = { INSN_NOP, SHAPE_NONE },
	[X86_INS_PREFETCHNTA] = { INSN_NOP, SHAPE_NONE },
	[X86_INS_PREFETCHT0] = { INSN_NOP, SHAPE_NONE },
	[X86_INS_PREFETCHT1] = { INSN_NOP, SHAPE_NONE },
	[X86_INS_PREFETCHT2] = { INSN_NOP, SHAPE_NONE },
	[X86_INS_MOVSB] = { INSN_STRING, SHAPE_PLAIN },
	[X86_INS_MOVSW] = { INSN_STRING, SHAPE_PLAIN },
	[X86_INS_MOVSQ] = { INSN_STRING, SHAPE_PLAIN },
	[X86_INS_STOSB] = { INSN_STRING, SHAPE_PLAIN },
	[X86_INS_STOSW] = { INSN_STRING, SHAPE_PLAIN },
	[X86_INS_STOSD] = { INSN_STRING, SHAPE_PLAIN },
	[X86_INS_STOSQ] = { INSN_STRING, SHAPE_PLAIN },
	[X86_INS_SCASB] = { INSN_STRING, SHAPE_READ },
	[X86_INS_SCASW] = { INSN_STRING, SHAPE_READ },
	[X86_INS_SCASD] = { INSN_STRING, SHAPE_READ },
	[X86_INS_SCASQ] = { INSN_STRING, SHAPE_READ },
	[X86_INS_LODSB] = { INSN_STRING, SHAPE_PLAIN },
	[X86_INS_LODSW] = { INSN_STRING, SHAPE_PLAIN },
	[X86_INS_LODSD] = { INSN_STRING, SHAPE_PLAIN },
	[X86_INS_LODSQ] = { INSN_STRING, SHAPE_PLAIN },
	[X86_INS_CMPSB] = { INSN_STRING, SHAPE_READ },
	[X86_INS_CMPSW] = { INSN_STRING, SHAPE_READ },
	[X86_INS_CMPSQ] = { INSN_STRING, SHAPE_READ },
	/* read only, though their first operand looks like a destination */
	[X86_INS_BT] = { INSN_OTHER, SHAPE_READ },
	[X86_INS_COMISS] = { INSN_OTHER, SHAPE_READ },
	[X86_INS_COMISD] = { INSN_OTHER, SHAPE_READ },
	[X86_INS_UCOMISS] = { INSN_OTHER, SHAPE_READ },
	[X86_INS_UCOMISD] = { INSN_OTHER, SHAPE_READ },
	[X86_INS_VUCOMISD] = { INSN_OTHER, SHAPE_READ },
	[X86_INS_VUCOMISS] = { INSN_OTHER, SHAPE_READ },
	[X86_INS_PTEST] = { INSN_OTHER, SHAPE_READ },
	[X86_INS_MUL] = { INSN_OTHER, SHAPE_READ },
	[X86_INS_DIV] = { INSN_OTHER, SHAPE_READ },
	[X86_INS_IDIV] = { INSN_OTHER, SHAPE_READ },
	[X86_INS_FLD] = { INSN_OTHER, SHAPE_READ },
	[X86_INS_FILD] = { INSN_OTHER, SHAPE_READ },
	[X86_INS_FLDCW] = { INSN_OTHER, SHAPE_READ },
	[X86_INS_LDMXCSR] = { INSN_OTHER, SHAPE_READ },
	[X86_INS_FSUBR] = { INSN_OTHER, SHAPE_READ },
	[X86_INS_FADD] = { INSN_OTHER, SHAPE_READ },
	[X86_INS_FMUL] = { INSN_OTHER, SHAPE_READ },
	[X86_INS_FDIV] = { INSN_OTHER, SHAPE_READ },
	[X86_INS_FSUB] = { INSN_OTHER, SHAPE_READ },
};

/* Stores that are not "dst op= src": the old content is not read. */
static bool is_pure_store(unsigned id)
{
	switch (id) {
	case X86_INS_FST:
	case X86_INS_FSTP:
	case X86_INS_FIST:
	case X86_INS_FISTP:
	case X86_INS_FNSTCW:
	case X86_INS_STMXCSR:
	case X86_INS_MOVHPS:
	case X86_INS_MOVHPD:
	case X86_INS_MOVLPS:
	case X86_INS_MOVLPD:
	case X86_INS_PEXTRB:
	case X86_INS_PEXTRW:
	case X86_INS_PEXTRD:
	case X86_INS_PEXTRQ:
	case X86_INS_VEXTRACTI128:
	case X86_INS_VEXTRACTF128:
	case X86_INS_SETA ... X86_INS_SETS:
		return true;
	default:
		return false;
	}
}

static void name_register(struct insn_decoder *decoder, unsigned id)
{
	static const struct {
		const char *names[4];
	} low[8] = {
		{ { "rax", "eax", "ax", "al" } },  { { "rdx", "edx", "dx", "dl" } },
		{ { "rcx", "ecx", "cx", "cl" } },  { { "rbx", "ebx", "bx", "bl" } },
		{ { "rsi", "esi", "si", "sil" } }, { { "rdi", "edi", "di", "dil" } },
		{ { "rbp", "ebp", "bp", "bpl" } }, { { "rsp", "esp", "sp", "spl" } },
	};
	static const uint8_t low_widths[4] = { 8, 4, 2, 1 };
	const char *name = cs_reg_name(decoder->handle, id);
	unsigned number;
	int end = 0;

	if (!name)
		return;
	for (unsigned r = 0; r < 8; r++)
		for (unsigned w = 0; w < 4; w++)
			if (!strcmp(name, low[r].names[w])) {
				decoder->regs[id] = (uint8_t)r;
				decoder->widths[id] = low_widths[w];
			}
	if (name[0] == 'r' && name[1] >= '0' && name[1] <= '9') {
		unsigned r = (unsigned)strtoul(name + 1, NULL, 10);
		char last = name[strlen(name) - 1];

		decoder->regs[id] = (uint8_t)r;
		decoder->widths[id] = last == 'd'   ? 4
				      : last == 'w' ? 2
				      : last == 'b' ? 1
						    : 8;
	} else if (sscanf(name, "%*1[xyz]mm%u%n", &number, &end) == 1 && number < 16 &&
		   !name[end]) {
		decoder->regs[id] = (uint8_t)(INSN_REG_VEC + number);
		decoder->widths[id] = name[0] == 'x' ? 16 : name[0] == 'y' ? 32 : 64;
	}
}

struct err *insn_x86_open(struct insn_decoder **ret_decoder)
{
	CLEANUP(insn_decoder_close)
	struct insn_decoder *decoder = mem_alloc(sizeof(*decoder));

	if (cs_open(CS_ARCH_X86, CS_MODE_64, &decoder->handle) != CS_ERR_OK)
		return err_new(ERR_UNSUPPORTED, "capstone cannot decode x86-64");
	cs_option(decoder->handle, CS_OPT_DETAIL, CS_OPT_ON);
	decoder->raw = cs_malloc(decoder->handle);
	memset(decoder->regs, INSN_REG_OTHER, sizeof(decoder->regs));
	for (unsigned id = 1; id < X86_REG_ENDING; id++)
		name_register(decoder, id);
	static const struct {
		unsigned id, reg;
	} special[] = { { X86_REG_AH, 0 },
			{ X86_REG_DH, 1 },
			{ X86_REG_CH, 2 },
			{ X86_REG_BH, 3 },
			{ X86_REG_RIP, INSN_REG_IP } };

	for (size_t i = 0; i < sizeof(special) / sizeof(*special); i++) {
		decoder->regs[special[i].id] = (uint8_t)special[i].reg;
		decoder->widths[special[i].id] = special[i].id == X86_REG_RIP ? 8 : 1;
	}
	decoder->regs[X86_REG_INVALID] = INSN_REG_NONE;
	*ret_decoder = take(decoder);
	return NULL;
}

void insn_x86_close(struct insn_decoder *decoder)
{
	if (!decoder)
		return;
	if (decoder->raw)
		cs_free(decoder->raw, 1);
	if (decoder->handle)
		cs_close(&decoder->handle);
	free(decoder);
}

const struct insn_abi *insn_x86_abi(void)
{
	static const uint8_t args[] = { 5, 4, 1, 2, 8, 9 };
	/* rax rdx rcx rsi rdi r8-r11 and every vector register */
	static const struct insn_abi abi = {
		.call_clobbers = 0x1fffe0f37ull,
		.args = args,
		.arg_count = sizeof(args),
		.result = 0,
		.stack = 7,
		.frame = 6,
	};

	return &abi;
}

static uint8_t access_of(unsigned id, unsigned shape, unsigned op, unsigned position)
{
	if (op == INSN_LEA || op == INSN_NOP)
		return 0;
	if (position > 0 || shape == SHAPE_READ || shape == SHAPE_FLOW)
		return op == INSN_EXCHANGE ? ACCESS_BOTH : ACCESS_LOAD;
	if (op == INSN_MOVE || op == INSN_POP || op == INSN_STRING || is_pure_store(id))
		return ACCESS_STORE;
	return ACCESS_BOTH;
}

static void put_memory(const struct insn_decoder *decoder, const cs_x86_op *from,
		       uint8_t access, struct insn *insn)
{
	struct insn_mem *mem = &insn->mems[insn->mem_count];

	if (insn->mem_count == INSN_MEMS)
		return;
	insn->mem_count++;
	mem->base = decoder->regs[from->mem.base];
	mem->index = decoder->regs[from->mem.index];
	mem->scale = from->mem.index ? (uint8_t)from->mem.scale : 0;
	mem->segment = from->mem.segment == X86_REG_FS	 ? INSN_FS
		       : from->mem.segment == X86_REG_GS ? INSN_GS
							 : INSN_FLAT;
	mem->disp = from->mem.disp;
	if (mem->base == INSN_REG_IP)
		mem->disp += (int64_t)(insn->va + insn->bytes);
	mem->width = from->size;
	mem->access = access;
	/* eiz and riz stand for "no index". */
	if (from->mem.index == X86_REG_RIZ || from->mem.index == X86_REG_EIZ)
		mem->index = INSN_REG_NONE;
}

static void put_args(const struct insn_decoder *decoder, const cs_x86 *x86, unsigned id,
		     unsigned shape, struct insn *insn)
{
	for (unsigned i = 0; i < x86->op_count; i++) {
		const cs_x86_op *from = &x86->operands[i];
		struct insn_arg arg = { .bytes = from->size };

		if (from->type == X86_OP_REG) {
			arg.kind = INSN_REG;
			arg.reg = decoder->regs[from->reg];
			if (arg.reg < INSN_REGS)
				arg.bytes = decoder->widths[from->reg];
			arg.is_high = from->reg == X86_REG_AH ||
				      from->reg == X86_REG_BH ||
				      from->reg == X86_REG_CH || from->reg == X86_REG_DH;
		} else if (from->type == X86_OP_IMM) {
			arg.kind = INSN_IMM;
			arg.imm = from->imm;
		} else if (from->type == X86_OP_MEM) {
			arg.kind = INSN_MEM;
			put_memory(decoder, from, access_of(id, shape, insn->op, i),
				   insn);
		}
		if (insn->arg_count < INSN_ARGS)
			insn->args[insn->arg_count++] = arg;
	}
}

static bool is_same_register(const struct insn_arg *a, const struct insn_arg *b)
{
	return a->kind == INSN_REG && b->kind == INSN_REG && a->reg == b->reg &&
	       a->reg < INSN_REGS && a->bytes == b->bytes;
}

/* Two operands to three; x^x and x-x to a constant. */
static void spell_out(struct insn *insn, unsigned id, unsigned shape)
{
	struct insn_arg *args = insn->args;

	if ((id == X86_INS_XOR || id == X86_INS_SUB || id == X86_INS_PXOR) &&
	    insn->arg_count == 2 && is_same_register(&args[0], &args[1])) {
		insn->op = INSN_MOVE;
		args[1] = (struct insn_arg){ .kind = INSN_IMM, .bytes = args[0].bytes };
		return;
	}
	if (shape == SHAPE_UNARY && insn->arg_count == 1) {
		args[1] = args[0];
		args[2] = (struct insn_arg){ .kind = INSN_IMM, .bytes = 1, .imm = 1 };
		insn->arg_count = 3;
	} else if (shape == SHAPE_BINARY && insn->arg_count == 2) {
		args[2] = args[1];
		args[1] = args[0];
		insn->arg_count = 3;
	} else if (shape == SHAPE_BINARY && insn->arg_count == 1) {
		/* one-operand imul multiplies into rdx:rax; shl by one has no count */
		if (insn->op == INSN_MUL) {
			insn->op = INSN_OTHER;
		} else {
			args[1] = args[0];
			args[2] = (struct insn_arg){ .kind = INSN_IMM,
						     .bytes = 1,
						     .imm = 1 };
			insn->arg_count = 3;
		}
	}
}

static void put_writes(struct insn_decoder *decoder, unsigned shape, struct insn *insn)
{
	cs_regs reads, writes;
	uint8_t read_count, write_count;

	if (insn->op == INSN_NOP || insn->op == INSN_COMPARE || insn->op == INSN_TEST)
		return;
	if (insn->op == INSN_PUSH || insn->op == INSN_CALL) {
		insn->writes = 1ull << 7;
		return;
	}
	if (shape == SHAPE_PLAIN && insn->op != INSN_STRING && insn->op != INSN_POP) {
		if (insn->args[0].kind == INSN_REG)
			insn->writes = insn_bit(insn->args[0].reg);
		if (insn->op == INSN_EXCHANGE && insn->args[1].kind == INSN_REG)
			insn->writes |= insn_bit(insn->args[1].reg);
		return;
	}
	if (shape == SHAPE_BINARY || shape == SHAPE_UNARY) {
		if (insn->op != INSN_OTHER) {
			if (insn->args[0].kind == INSN_REG)
				insn->writes = insn_bit(insn->args[0].reg);
			return;
		}
	}
	if (cs_regs_access(decoder->handle, decoder->raw, reads, &read_count, writes,
			   &write_count) != CS_ERR_OK)
		return;
	for (unsigned i = 0; i < write_count; i++)
		insn->writes |= insn_bit(decoder->regs[writes[i]]);
	insn->writes &= ~(1ull << INSN_REG_IP);
}

static void put_flow(unsigned id, struct insn *insn)
{
	if (insn->arg_count && insn->args[0].kind == INSN_IMM)
		insn->target = (uint64_t)insn->args[0].imm;
	if (id == X86_INS_JA)
		insn->condition = INSN_COND_ABOVE;
	else if (id == X86_INS_JBE)
		insn->condition = INSN_COND_BELOW_EQUAL;
}

static bool is_conditional_jump(unsigned id)
{
	return (id >= X86_INS_JAE && id <= X86_INS_JS && id != X86_INS_JMP &&
		id != X86_INS_LJMP) ||
	       id == X86_INS_LOOP || id == X86_INS_LOOPE || id == X86_INS_LOOPNE ||
	       id == X86_INS_JECXZ || id == X86_INS_JRCXZ;
}

static void reduce(struct insn_decoder *decoder, struct insn *insn)
{
	const cs_insn *raw = decoder->raw;
	const cs_x86 *x86 = &raw->detail->x86;
	unsigned id = raw->id < X86_INS_ENDING ? raw->id : 0;
	unsigned shape = table[id].shape;

	insn->op = table[id].op ? table[id].op : INSN_OTHER;
	if (is_conditional_jump(id)) {
		insn->op = INSN_BRANCH;
		shape = SHAPE_FLOW;
	}
	/* "movsd" is both a string move and a scalar double. */
	if (id == X86_INS_MOVSD && x86->op_count == 2 &&
	    x86->operands[0].type == X86_OP_MEM && x86->operands[1].type == X86_OP_MEM)
		insn->op = INSN_STRING;
	insn->is_repeated =
		x86->prefix[0] == X86_PREFIX_REP || x86->prefix[0] == X86_PREFIX_REPNE;
	put_args(decoder, x86, id, shape, insn);
	if (id == X86_INS_CDQE) {
		insn->op = INSN_EXTEND;
		insn->arg_count = 2;
		insn->args[0] =
			(struct insn_arg){ .kind = INSN_REG, .reg = 0, .bytes = 8 };
		insn->args[1] =
			(struct insn_arg){ .kind = INSN_REG, .reg = 0, .bytes = 4 };
		shape = SHAPE_PLAIN;
	}
	spell_out(insn, id, shape);
	if (insn->op == INSN_CALL || insn->op == INSN_JUMP || insn->op == INSN_BRANCH)
		put_flow(id, insn);
	if (shape != SHAPE_NONE && shape != SHAPE_FLOW)
		put_writes(decoder, shape, insn);
	else if (insn->op == INSN_CALL || insn->op == INSN_LEAVE || !shape)
		put_writes(decoder, shape, insn);
	/* capstone counts rax, which they only read */
	if (id == X86_INS_CQO || id == X86_INS_CDQ || id == X86_INS_CWD)
		insn->writes = 1ull << 1;
	for (unsigned i = 0; i < insn->mem_count; i++)
		insn->is_counted |= insn->mems[i].access != 0;
}

size_t insn_x86_decode(struct insn_decoder *decoder, const uint8_t *code, size_t room,
		       uint64_t va, struct insn *ret_insn)
{
	uint64_t at = va;

	memset(ret_insn, 0, sizeof(*ret_insn));
	ret_insn->va = va;
	if (!room)
		return 0;
	if (!cs_disasm_iter(decoder->handle, &code, &room, &at, decoder->raw)) {
		ret_insn->bytes = 1;
		return 1;
	}
	ret_insn->bytes = (uint8_t)decoder->raw->size;
	reduce(decoder, ret_insn);
	return ret_insn->bytes;
}

void insn_x86_text(struct insn_decoder *decoder, struct str *text)
{
	str_add(text, decoder->raw->mnemonic);
	if (*decoder->raw->op_str)
		str_printf(text, " %s", decoder->raw->op_str);
}
