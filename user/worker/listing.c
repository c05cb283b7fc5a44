// SPDX-License-Identifier: Apache-2.0
#include "worker/listing.h"

#include <inttypes.h>
#include <string.h>

#include "bin/insn.h"
#include "core/str.h"
#include "core/vec.h"

struct err *listing_make(const struct elf_file *file, struct symbols *symbols,
			 struct arena *arena, const struct listing_range *range,
			 struct job_reply *ret_reply)
{
	CLEANUP(insn_decoder_close) struct insn_decoder *decoder = NULL;
	CLEANUP(str_fini) struct str text = { 0 };
	uint64_t va = range->va, used = 0;
	size_t room, count = 0;
	const uint8_t *code =
		elf_is_code(file, va) ? elf_bytes_at(file, va, &room) : NULL;

	TRY(insn_decoder_open(elf_machine(file), &decoder));
	if (!code)
		return err_new(ERR_NOT_FOUND, "there is no code at 0x%" PRIx64, va);
	room = room < range->bytes ? room : range->bytes;

	size_t max = room < JOB_MAX_LISTING ? room : JOB_MAX_LISTING;
	struct job_insn *insns = arena_array(arena, max ? max : 1, sizeof(*insns));

	while (room && count < max && used < LISTING_MAX_BYTES) {
		struct symbol symbol = symbols_at(symbols, va);
		struct insn insn;
		size_t bytes = insn_decode(decoder, code, room, va, &insn);

		str_clear(&text);
		insn_text(decoder, &text);
		insns[count++] = (struct job_insn){
			.va = va,
			.bytes = insn.bytes,
			.is_memory = insn.is_counted,
			.text = arena_strdup(
				arena, insn.op == INSN_BAD ? "(bad)" : str_text(&text)),
			.file = symbol.file,
			.line = symbol.line
		};
		used += text.length + strlen(symbol.file) + 32;
		va += bytes;
		code += bytes;
		room -= bytes;
	}
	ret_reply->listing.data = insns;
	ret_reply->listing.count = count;
	return NULL;
}
