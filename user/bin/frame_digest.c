// SPDX-License-Identifier: Apache-2.0
/*
 * The search table of .eh_frame_hdr leads to the entry of an address, as the unwinder of
 * a process goes. Only the form that linkers write is read; without one the digest is
 * that of all rules of the file, which is as good and changes more often.
 */
#include "bin/frame.h"

#include <dwarf.h>
#include <string.h>

#include "bin/cursor.h"
#include "core/intern.h"

#define MAX_ENTRIES 64 /* of one range of code */

#define PE_SIZE	  7
#define PE_TABLE  0x3b /* 4 bytes, signed, from the table's section */
#define PE_COUNT  0x03 /* 4 bytes */
#define PE_OMIT	  0xff
#define HDR_BYTES 12

/* One entry of .eh_frame behind its length. */
static bool entry_at(const struct elf_file *file, uint64_t va, struct cursor *ret_entry)
{
	size_t room;
	const uint8_t *bytes = elf_bytes_at(file, va, &room);
	struct cursor entry = { bytes, bytes ? bytes + room : NULL, !bytes };
	uint64_t length = entry.is_bad ? 0 : cursor_fixed(&entry, 4);

	if (!length || length >= 0xfffffff0 || length > (size_t)(entry.end - entry.at))
		return false;
	entry.end = entry.at + length;
	*ret_entry = entry;
	return true;
}

/* The common part: all but where the personality routine is. */
static bool digest_common(const struct elf_file *file, uint64_t va, uint64_t *hash,
			  unsigned *ret_pointer)
{
	struct cursor in;
	const char *letters;
	uint64_t extra, head[4] = { 0 };
	unsigned pointer = 0;

	if (!entry_at(file, va, &in) || cursor_fixed(&in, 4))
		return false;
	head[0] = cursor_fixed(&in, 1);
	letters = (const char *)in.at;
	if (!memchr(letters, 0, (size_t)(in.end - in.at)))
		return false;
	*hash = hash_text(letters, *hash);
	in.at += strlen(letters) + 1;
	head[1] = cursor_uleb(&in);
	head[2] = cursor_uleb(&in);
	head[3] = cursor_uleb(&in);
	*hash = hash_bytes(head, sizeof(head), *hash);
	if (*letters == 'z') {
		extra = cursor_uleb(&in);
		if (in.is_bad || extra > (size_t)(in.end - in.at))
			return false;
		if (!strcmp(letters, "zR"))
			pointer = extra ? *in.at : 0;
		else if (!strcmp(letters, "zPLR") && extra)
			pointer = in.at[extra - 1];
		else
			return false;
		in.at += extra;
	} else if (*letters) {
		return false;
	}
	*hash = hash_bytes(in.at, (size_t)(in.end - in.at), *hash);
	*ret_pointer = pointer;
	return !in.is_bad;
}

/* The entry at @entry_va for code at @va; *@ret_bytes of code behind @va are covered. */
static bool digest_entry(const struct elf_file *file, uint64_t entry_va, uint64_t va,
			 uint64_t lo, uint64_t *hash, uint64_t *ret_bytes)
{
	static const uint8_t sizes[] = { 8, 0, 2, 4, 8, 0, 0, 0 };
	struct cursor in;
	uint64_t common, place[2], extra;
	unsigned pointer, bytes;

	if (!entry_at(file, entry_va, &in))
		return false;
	common = cursor_fixed(&in, 4);
	if (!common || !digest_common(file, entry_va + 4 - common, hash, &pointer))
		return false;
	bytes = sizes[pointer & PE_SIZE];
	if (!bytes)
		return false;
	cursor_fixed(&in, bytes);
	place[0] = va - lo;
	place[1] = cursor_fixed(&in, bytes);
	*hash = hash_bytes(place, sizeof(place), *hash);
	extra = cursor_uleb(&in); /* where the language's tables are */
	if (in.is_bad || extra > (size_t)(in.end - in.at))
		return false;
	in.at += extra;
	*hash = hash_bytes(in.at, (size_t)(in.end - in.at), *hash);
	*ret_bytes = place[1] > place[0] ? place[1] - place[0] : 0;
	return true;
}

struct search {
	const uint8_t *table; /* pairs of 4 bytes */
	uint64_t va, count;   /* of the section */
};

static bool open_search(const struct elf_file *file, struct search *ret_search)
{
	const struct elf_section *section = elf_section(file, ".eh_frame_hdr");
	size_t room;
	const uint8_t *data = section ? elf_bytes_at(file, section->va, &room) : NULL;
	uint32_t count;

	if (!data || room < HDR_BYTES || data[0] != 1 || data[1] == PE_OMIT ||
	    (data[1] & PE_SIZE) != 3 || data[2] != PE_COUNT || data[3] != PE_TABLE)
		return false;
	memcpy(&count, data + 8, sizeof(count));
	if (count > (room - HDR_BYTES) / 8)
		return false;
	*ret_search = (struct search){ data + HDR_BYTES, section->va, count };
	return true;
}

static uint64_t table_value(const struct search *search, size_t index, unsigned column)
{
	int32_t value;

	memcpy(&value, search->table + index * 8 + column * 4ul, sizeof(value));
	return search->va + (uint64_t)(int64_t)value;
}

/* The last entry that begins at or before @va. */
static bool find_entry(const struct search *search, uint64_t va, uint64_t *ret_lo,
		       uint64_t *ret_entry)
{
	size_t lo = 0, hi = search->count;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (table_value(search, middle, 0) <= va)
			lo = middle + 1;
		else
			hi = middle;
	}
	if (!lo)
		return false;
	*ret_lo = table_value(search, lo - 1, 0);
	*ret_entry = table_value(search, lo - 1, 1);
	return true;
}

static uint64_t digest_section(const struct elf_file *file, const char *name,
			       uint64_t hash)
{
	const struct elf_section *section = file ? elf_section(file, name) : NULL;
	const uint8_t *data;
	size_t bytes;
	struct err *err = section ? elf_data(file, section, &data, &bytes) : NULL;

	if (section && !err)
		hash = hash_bytes(data, bytes, hash);
	err_free(err);
	return hash;
}

uint64_t frame_digest_all(const struct elf_file *file, const struct elf_file *debug)
{
	uint64_t hash = digest_section(file, ".debug_frame", 1);
	struct search search;

	hash = digest_section(debug, ".debug_frame", hash);
	return open_search(file, &search) ? hash
					  : digest_section(file, ".eh_frame", hash);
}

uint64_t frame_digest(const struct elf_file *file, uint64_t va, uint64_t end)
{
	struct search search;
	uint64_t hash = 1, lo, entry, bytes;

	if (!open_search(file, &search))
		return hash;
	for (unsigned i = 0; i < MAX_ENTRIES && va < end; i++) {
		if (!find_entry(&search, va, &lo, &entry))
			break;
		if (!digest_entry(file, entry, va, lo, &hash, &bytes))
			return 0;
		if (!bytes)
			break;
		va += bytes;
	}
	return hash;
}
