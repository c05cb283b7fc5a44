// SPDX-License-Identifier: Apache-2.0
/* Strings travel with their NUL, so that the reader can borrow them in place. */
#include "core/wire.h"

#include <string.h>

void wire_put_u8(struct str *out, uint8_t value)
{
	str_add_bytes(out, &value, sizeof(value));
}

void wire_put_u32(struct str *out, uint32_t value)
{
	str_add_bytes(out, &value, sizeof(value));
}

void wire_put_u64(struct str *out, uint64_t value)
{
	str_add_bytes(out, &value, sizeof(value));
}

void wire_put_double(struct str *out, double value)
{
	str_add_bytes(out, &value, sizeof(value));
}

void wire_put_bytes(struct str *out, const void *bytes, size_t length)
{
	wire_put_u32(out, (uint32_t)length);
	str_add_bytes(out, bytes, length);
}

void wire_put_str(struct str *out, const char *text)
{
	if (!text)
		text = "";
	size_t length = strnlen(text, WIRE_MAX_STRING - 1);

	wire_put_u32(out, (uint32_t)length + 1);
	str_add_bytes(out, text, length);
	str_add_char(out, 0);
}

static const void *span(struct wire *wire, size_t length)
{
	if (wire->bad || wire->size - wire->pos < length) {
		wire->bad = true;
		return NULL;
	}
	const void *at = wire->data + wire->pos;

	wire->pos += length;
	return at;
}

static void copy(struct wire *wire, void *ret, size_t length)
{
	const void *at = span(wire, length);

	if (at)
		memcpy(ret, at, length);
	else
		memset(ret, 0, length);
}

uint8_t wire_u8(struct wire *wire)
{
	uint8_t value;

	copy(wire, &value, sizeof(value));
	return value;
}

uint32_t wire_u32(struct wire *wire)
{
	uint32_t value;

	copy(wire, &value, sizeof(value));
	return value;
}

uint64_t wire_u64(struct wire *wire)
{
	uint64_t value;

	copy(wire, &value, sizeof(value));
	return value;
}

double wire_double(struct wire *wire)
{
	double value;

	copy(wire, &value, sizeof(value));
	return value;
}

const void *wire_bytes(struct wire *wire, size_t *ret_length)
{
	uint32_t length = wire_u32(wire);
	const void *at = span(wire, length);

	*ret_length = at ? length : 0;
	return at;
}

const char *wire_str(struct wire *wire)
{
	size_t length;
	const char *text = wire_bytes(wire, &length);

	if (!text || !length || length > WIRE_MAX_STRING || text[length - 1]) {
		wire->bad = true;
		return "";
	}
	return text;
}

uint32_t wire_count(struct wire *wire, uint32_t limit, size_t each)
{
	uint32_t count = wire_u32(wire);

	if (count > limit || (each && count > (wire->size - wire->pos) / each)) {
		wire->bad = true;
		return 0;
	}
	return count;
}
