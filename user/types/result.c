// SPDX-License-Identifier: Apache-2.0
/*
 * Tables one after the other, each of plain structs: head, functions, records, places,
 * types, fields, text. Number 0 of places and types is none, offset 0 of the text is "".
 * The same place (type, offset, width) is spelled once per unit.
 */
#include "types/result.h"

#include <string.h>

#include "core/intern.h"
#include "core/mem.h"
#include "types/spill.h"

struct place_key {
	int64_t offset;
	uint32_t type, width;
};

struct result_writer {
	VEC(struct result_function) functions;
	VEC(struct result_record) records;
	VEC(struct result_place) places;
	VEC(struct result_type) types;
	VEC(struct result_field) fields;
	struct str text;
	struct map *texts;  /* hash -> offset in @text */
	struct map *placed; /* struct place_key -> number */
	struct map *typed;  /* type id -> number */
};

struct result_writer *result_writer_new(void)
{
	struct result_writer *writer = mem_alloc(sizeof(*writer));

	writer->texts = map_new(sizeof(uint64_t), sizeof(uint32_t));
	writer->placed = map_new(sizeof(struct place_key), sizeof(uint32_t));
	writer->typed = map_new(sizeof(uint32_t), sizeof(uint32_t));
	str_add_char(&writer->text, '\0');
	vec_push(&writer->places, ((struct result_place){ .offset = 0 }));
	vec_push(&writer->types, ((struct result_type){ .id = 0 }));
	return writer;
}

void result_writer_free(struct result_writer *writer)
{
	if (!writer)
		return;
	vec_fini(&writer->functions);
	vec_fini(&writer->records);
	vec_fini(&writer->places);
	vec_fini(&writer->types);
	vec_fini(&writer->fields);
	str_fini(&writer->text);
	map_free(writer->texts);
	map_free(writer->placed);
	map_free(writer->typed);
	free(writer);
}

static uint32_t put_text(struct result_writer *writer, const char *text)
{
	uint64_t hash = hash_text(text, 0);
	bool is_new;
	uint32_t *slot;

	if (!*text)
		return 0;
	slot = map_put(writer->texts, &hash, &is_new);
	if (is_new) {
		*slot = (uint32_t)writer->text.length;
		str_add_bytes(&writer->text, text, strlen(text) + 1);
	}
	return *slot;
}

static void put_field(void *ctx, const char *path, uint64_t offset, uint64_t bytes)
{
	struct result_writer *writer = ctx;
	struct result_field field = { .offset = offset, .bytes = bytes };

	field.path = put_text(writer, path);
	vec_push(&writer->fields, field);
}

static uint32_t put_type(struct result_writer *writer, struct recover *recover,
			 uint32_t id)
{
	const struct dtype *shape = dtype_get(recover->types, id);
	struct result_type type = { .bytes = shape->bytes };
	const char *name;
	bool is_new;
	uint32_t *slot = map_put(writer->typed, &id, &is_new);

	if (!is_new)
		return *slot;
	name = dwarf_type_name(recover->dwarf, id, &recover->name);
	type.id = shape->hash ^ hash_text(name, 0);
	type.name = put_text(writer, name);
	type.first_field = (uint32_t)writer->fields.count;
	dtype_each_leaf(recover->types, id, RESULT_MAX_FIELDS, put_field, writer);
	type.fields = (uint32_t)writer->fields.count - type.first_field;
	*slot = (uint32_t)writer->types.count;
	vec_push(&writer->types, type);
	return *slot;
}

static uint32_t put_place(struct result_writer *writer, struct recover *recover,
			  const struct decision *decision)
{
	struct place_key key = { decision->offset, decision->type, decision->width };
	struct result_place place = { .offset = decision->offset };
	struct dtype_place at = { 0 };
	bool is_new;
	uint32_t *slot = map_put(writer->placed, &key, &is_new);

	if (!is_new)
		return *slot;
	*slot = (uint32_t)writer->places.count;
	str_clear(&recover->path);
	dtype_path(recover->types, decision->type, (uint64_t)decision->offset,
		   decision->width ? decision->width : 1, &recover->path, &at);
	place.path = put_text(writer, str_text(&recover->path));
	place.field_offset = at.offset;
	place.field_bytes = at.bytes;
	place.type = put_type(writer, recover, decision->type);
	vec_push(&writer->places, place);
	return (uint32_t)writer->places.count - 1;
}

/* What a spill slot holds: a place without a type. */
static uint32_t put_value(struct result_writer *writer, struct recover *recover,
			  const struct decision *decision)
{
	/* no access has this width */
	struct place_key key = { decision->offset, decision->type, UINT32_MAX };
	bool is_new;
	uint32_t *slot = map_put(writer->placed, &key, &is_new);

	if (!is_new)
		return *slot;
	str_clear(&recover->path);
	spill_text(recover, decision, &recover->path);
	*slot = (uint32_t)writer->places.count;
	vec_push(&writer->places,
		 ((struct result_place){
			 .path = put_text(writer, str_text(&recover->path)) }));
	return *slot;
}

static void put_record(struct result_writer *writer, struct recover *recover,
		       const struct decision *decision)
{
	const struct dwarf_function *function = recover->code.function;
	struct result_record record = { .width = decision->width,
					.verdict = decision->verdict,
					.access = decision->access };
	uint32_t r = 0;

	while (r < function->range_count && (decision->va < function->ranges[r].lo ||
					     decision->va >= function->ranges[r].hi))
		r++;
	if (r == function->range_count)
		return;
	record.range = (uint16_t)r;
	record.rel = (uint32_t)(decision->va - function->ranges[r].lo);
	record.is_frame = module_is_frame_access(recover, decision->va);
	if (verdict_is_claim(decision->verdict)) {
		record.confidence = decision->confidence;
		record.place = put_place(writer, recover, decision);
	} else if (decision->verdict == VERDICT_SPILL) {
		record.place = put_value(writer, recover, decision);
	}
	vec_push(&writer->records, record);
}

static int by_place(const void *a, const void *b)
{
	const struct result_record *x = a, *y = b;

	if (x->range != y->range)
		return x->range < y->range ? -1 : 1;
	return x->rel < y->rel ? -1 : x->rel > y->rel;
}

void result_put_function(struct result_writer *writer, struct recover *recover)
{
	uint32_t first = (uint32_t)writer->records.count;

	vec_each(&recover->code.decisions, decision)
		put_record(writer, recover, decision);

	uint32_t count = (uint32_t)writer->records.count - first;

	if (count > 1)
		qsort(writer->records.data + first, count, sizeof(*writer->records.data),
		      by_place);
	vec_push(&writer->functions, ((struct result_function){ first, count }));
}

void result_skip_function(struct result_writer *writer)
{
	vec_push(&writer->functions,
		 ((struct result_function){ (uint32_t)writer->records.count, 0 }));
}

static void add_table(struct str *out, const void *data, size_t count, size_t size)
{
	if (count)
		str_add_bytes(out, data, count * size);
	while (out->length % 8)
		str_add_char(out, '\0');
}

#define ADD_TABLE(out, vec) \
	add_table(out, (vec)->data, (vec)->count, sizeof(*(vec)->data))

void result_write(struct result_writer *writer, struct str *out)
{
	struct result_head head = {
		.functions = (uint32_t)writer->functions.count,
		.records = (uint32_t)writer->records.count,
		.places = (uint32_t)writer->places.count,
		.types = (uint32_t)writer->types.count,
		.fields = (uint32_t)writer->fields.count,
		.text_bytes = (uint32_t)writer->text.length,
	};

	add_table(out, &head, 1, sizeof(head));
	ADD_TABLE(out, &writer->functions);
	ADD_TABLE(out, &writer->records);
	ADD_TABLE(out, &writer->places);
	ADD_TABLE(out, &writer->types);
	ADD_TABLE(out, &writer->fields);
	add_table(out, writer->text.data, writer->text.length, 1);
}

/* ---- reading */

struct blob {
	const uint8_t *data;
	size_t size, pos;
	bool is_bad;
};

static const void *table_of(struct blob *blob, uint64_t count, size_t size)
{
	uint64_t bytes = (count * size + 7) & ~7ull; /* 32 bits times a small struct */
	const void *table = blob->data + blob->pos;

	if (blob->is_bad || bytes > blob->size - blob->pos) {
		blob->is_bad = true;
		return NULL;
	}
	blob->pos += bytes;
	return table;
}

static bool check_records(const struct result *result)
{
	const struct result_head *head = &result->head;

	for (uint32_t i = 0; i < head->functions; i++)
		if (result->functions[i].first > head->records ||
		    result->functions[i].count >
			    head->records - result->functions[i].first)
			return false;
	for (uint32_t i = 0; i < head->records; i++)
		if (result->records[i].place >= head->places ||
		    result->records[i].verdict >= VERDICTS ||
		    (verdict_is_claim(result->records[i].verdict) ||
		     result->records[i].verdict == VERDICT_SPILL) !=
			    !!result->records[i].place)
			return false;
	return true;
}

static bool check_names(const struct result *result)
{
	const struct result_head *head = &result->head;

	for (uint32_t i = 0; i < head->places; i++)
		if (result->places[i].type >= head->types ||
		    result->places[i].path >= head->text_bytes)
			return false;
	for (uint32_t i = 0; i < head->types; i++)
		if (result->types[i].name >= head->text_bytes ||
		    result->types[i].first_field > head->fields ||
		    result->types[i].fields > head->fields - result->types[i].first_field)
			return false;
	for (uint32_t i = 0; i < head->fields; i++)
		if (result->fields[i].path >= head->text_bytes)
			return false;
	return true;
}

bool result_open(const void *bytes, size_t size, struct result *ret_result)
{
	struct blob blob = { .data = bytes, .size = size };
	const struct result_head *head = table_of(&blob, 1, sizeof(*head));
	struct result result;

	if (!head)
		return false;
	result.head = *head;
	result.functions = table_of(&blob, head->functions, sizeof(*result.functions));
	result.records = table_of(&blob, head->records, sizeof(*result.records));
	result.places = table_of(&blob, head->places, sizeof(*result.places));
	result.types = table_of(&blob, head->types, sizeof(*result.types));
	result.fields = table_of(&blob, head->fields, sizeof(*result.fields));
	result.text = table_of(&blob, head->text_bytes, 1);
	if (blob.is_bad || blob.pos != size || !head->places || !head->types ||
	    !head->text_bytes || result.text[head->text_bytes - 1])
		return false;
	if (!check_records(&result) || !check_names(&result))
		return false;
	*ret_result = result;
	return true;
}
