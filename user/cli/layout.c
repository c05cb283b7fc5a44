// SPDX-License-Identifier: Apache-2.0
/*
 * One sweep over the fields in bits: what lies behind the highest end so far is a hole,
 * what begins before it shares its place with another field.
 */
#include "cli/layout.h"

#include <stdlib.h>
#include <string.h>

const char *layout_kind_name(enum layout_kind kind)
{
	static const char *const names[] = {
		[LAYOUT_FIELD] = "field",
		[LAYOUT_OVERLAY] = "union",
		[LAYOUT_HOLE] = "hole",
		[LAYOUT_PADDING] = "padding",
	};

	return names[kind];
}

void layout_parse(char *path, struct layout_field *field)
{
	char *colon = strrchr(path, ':'), *end;

	field->path = path;
	field->bits = field->bit = 0;
	if (!colon)
		return;
	unsigned long bits = strtoul(colon + 1, &end, 10);
	unsigned long bit = *end == '@' ? strtoul(end + 1, &end, 10) : 0;

	if (*end || !bits || bits > UINT16_MAX || bit > UINT16_MAX)
		return; /* a name of another language that has a colon */
	field->bits = (uint32_t)bits;
	field->bit = (uint32_t)bit;
	*colon = 0;
}

static void add_row(struct layout_rows *rows, enum layout_kind kind, size_t field,
		    uint64_t start, uint64_t bits)
{
	uint64_t last = bits ? start + bits - 1 : start;

	vec_push(&rows->rows,
		 ((struct layout_row){ .kind = kind,
				       .field = field,
				       .offset = start / 8,
				       .bits = bits,
				       .line = start / 8 / LAYOUT_LINE_BYTES,
				       .last_line = last / 8 / LAYOUT_LINE_BYTES }));
}

/* Unused from bit @start to bit @end: the rest of a byte, whole bytes, and bits again. */
static void add_gap(struct layout_rows *rows, enum layout_kind kind, uint64_t start,
		    uint64_t end)
{
	uint64_t up = (start + 7) / 8 * 8, down = end / 8 * 8;

	if (up > end)
		up = end;
	if (start < up)
		add_row(rows, kind, 0, start, up - start);
	if (up < down)
		add_row(rows, kind, 0, up, down - up);
	if (up < end && down < end && down >= up)
		add_row(rows, kind, 0, down, end - down);
}

void layout_draw(const struct layout_field *fields, size_t count, uint64_t bytes,
		 struct layout_rows *ret_rows)
{
	uint64_t end = 0;

	for (size_t i = 0; i < count; i++) {
		const struct layout_field *field = &fields[i];
		uint64_t start = field->offset * 8 + field->bit;
		uint64_t bits = field->bits ? field->bits : field->bytes * 8;

		if (start > end)
			add_gap(ret_rows, LAYOUT_HOLE, end, start);
		add_row(ret_rows, start < end ? LAYOUT_OVERLAY : LAYOUT_FIELD, i, start,
			bits);
		if (start + bits > end)
			end = start + bits;
	}
	if (bytes * 8 > end)
		add_gap(ret_rows, LAYOUT_PADDING, end, bytes * 8);
}
