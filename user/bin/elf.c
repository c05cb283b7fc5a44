// SPDX-License-Identifier: Apache-2.0
/*
 * ELF through libelf's ELF_C_READ, which reads with pread() into private memory. The
 * headers are copied and checked once at elf_open(); bytes of sections and segments
 * are read when first asked for and stay with the handle. libelf checks that data lies
 * inside the file; what it does not check is how much we are willing to hold.
 *
 * Not handled: 32-bit and big-endian files, .gnu_debugdata.
 */
#include "bin/elf.h"

#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>
#include <sys/stat.h>

#include "core/mem.h"
#include "core/vec.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

struct elf_file {
	Elf *elf;
	GElf_Ehdr header;
	VEC(struct elf_section) sections;
	VEC(struct elf_segment) segments;
	VEC(Elf_Data *) loaded; /* per segment, NULL until asked for */
	struct build_id build_id;
	bool has_interp;
	char *soname;
};

static struct err *elf_error(const char *what)
{
	const char *reason = elf_errmsg(-1);

	return err_new(ERR_FORMAT, "%s: %s", what, reason ? reason : "damaged ELF file");
}

static struct err *read_sections(struct elf_file *file)
{
	size_t count, names;

	if (elf_getshdrnum(file->elf, &count) || count == 0)
		return NULL;
	if (count > ELF_MAX_SECTIONS)
		return err_new(ERR_LIMIT, "%zu sections, the limit is %d", count,
			       ELF_MAX_SECTIONS);
	if (elf_getshdrstrndx(file->elf, &names))
		return elf_error("section names");
	for (size_t i = 1; i < count; i++) {
		GElf_Shdr header;
		Elf_Scn *section = elf_getscn(file->elf, i);

		if (!section || !gelf_getshdr(section, &header))
			return elf_error("section headers");
		const char *name = elf_strptr(file->elf, names, header.sh_name);

		vec_push(&file->sections, ((struct elf_section){
						  .name = name ? name : "",
						  .index = i,
						  .type = header.sh_type,
						  .link = header.sh_link,
						  .info = header.sh_info,
						  .flags = header.sh_flags,
						  .va = header.sh_addr,
						  .off = header.sh_offset,
						  .bytes = header.sh_size,
						  .entry_bytes = header.sh_entsize,
					  }));
	}
	return NULL;
}

static enum elf_segment_kind segment_kind(uint32_t type)
{
	switch (type) {
	case PT_LOAD:
		return ELF_LOAD;
	case PT_NOTE:
		return ELF_NOTE;
	case PT_DYNAMIC:
		return ELF_DYNAMIC;
	case PT_TLS:
		return ELF_TLS;
	}
	return ELF_OTHER_SEGMENT;
}

static struct err *read_segments(struct elf_file *file)
{
	size_t count;

	if (elf_getphdrnum(file->elf, &count))
		return elf_error("program headers");
	if (count > ELF_MAX_SEGMENTS)
		return err_new(ERR_LIMIT, "%zu program headers, the limit is %d", count,
			       ELF_MAX_SEGMENTS);
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr header;

		if (!gelf_getphdr(file->elf, i, &header))
			return elf_error("program headers");
		if (header.p_vaddr + header.p_memsz < header.p_vaddr)
			return err_new(ERR_FORMAT, "program header %zu wraps around", i);
		if (header.p_type == PT_INTERP)
			file->has_interp = true;
		vec_push(&file->segments, ((struct elf_segment){
						  .kind = segment_kind(header.p_type),
						  .can_read = header.p_flags & PF_R,
						  .can_write = header.p_flags & PF_W,
						  .can_exec = header.p_flags & PF_X,
						  .off = header.p_offset,
						  .va = header.p_vaddr,
						  .file_bytes = header.p_filesz,
						  .mem_bytes = header.p_memsz,
						  .align = header.p_align,
					  }));
		vec_push(&file->loaded, (Elf_Data *)NULL);
	}
	return NULL;
}

/* Notes: namesz, descsz, type, name padded to 4, description padded to 4. */
static bool find_build_id(const uint8_t *notes, size_t bytes, struct build_id *ret_id)
{
	size_t pos = 0;

	while (bytes - pos >= 12) {
		uint32_t head[3];

		memcpy(head, notes + pos, sizeof(head));
		pos += sizeof(head);
		uint64_t name_bytes = ((uint64_t)head[0] + 3) & ~3ull;
		uint64_t desc_bytes = ((uint64_t)head[1] + 3) & ~3ull;

		if (name_bytes > bytes - pos || head[1] > bytes - pos - name_bytes)
			return false;
		if (head[2] == NT_GNU_BUILD_ID && head[0] == 4 && head[1] > 0 &&
		    head[1] <= BUILD_ID_MAX && memcmp(notes + pos, "GNU", 4) == 0) {
			*ret_id = (struct build_id){ .size = (uint8_t)head[1] };
			memcpy(ret_id->bytes, notes + pos + name_bytes, head[1]);
			return true;
		}
		pos += name_bytes;
		pos += desc_bytes < bytes - pos ? desc_bytes : bytes - pos;
	}
	return false;
}

static void read_build_id(struct elf_file *file)
{
	vec_each(&file->segments, segment) {
		if (segment->kind != ELF_NOTE || !segment->file_bytes ||
		    segment->file_bytes > ELF_MAX_NOTE_BYTES)
			continue;
		Elf_Data *data = elf_getdata_rawchunk(file->elf, (int64_t)segment->off,
						      segment->file_bytes, ELF_T_BYTE);

		if (data && find_build_id(data->d_buf, data->d_size, &file->build_id))
			return;
	}
	/* The program headers of a separate debug file describe bytes it lacks. */
	vec_each(&file->sections, section) {
		const uint8_t *data;
		size_t bytes;

		if (section->type != SHT_NOTE || section->bytes > ELF_MAX_NOTE_BYTES)
			continue;
		struct err *err = elf_data(file, section, &data, &bytes);

		if (!err && find_build_id(data, bytes, &file->build_id))
			return;
		err_free(err);
	}
}

/* The dynamic table by its segment, so that it is found without section headers. */
static void read_soname(struct elf_file *file)
{
	uint64_t strings = 0, offset = UINT64_MAX;

	vec_each(&file->segments, segment) {
		size_t room = 0;
		const uint8_t *data = NULL;

		if (segment->kind == ELF_DYNAMIC)
			data = elf_bytes_at(file, segment->va, &room);
		if (room > segment->file_bytes)
			room = segment->file_bytes;
		for (size_t pos = 0; data && room - pos >= 16; pos += 16) {
			uint64_t entry[2];

			memcpy(entry, data + pos, sizeof(entry));
			if (entry[0] == DT_NULL)
				break;
			if (entry[0] == DT_STRTAB)
				strings = entry[1];
			if (entry[0] == DT_SONAME)
				offset = entry[1];
		}
	}
	if (!strings || offset == UINT64_MAX || strings + offset < strings)
		return;
	size_t room;
	const char *name = (const char *)elf_bytes_at(file, strings + offset, &room);

	if (name && room > ELF_MAX_NAME)
		room = ELF_MAX_NAME;
	if (name && strnlen(name, room) < room)
		file->soname = mem_strdup(name);
}

static struct err *check_header(const struct elf_file *file)
{
	const unsigned char *ident = file->header.e_ident;

	if (ident[EI_CLASS] != ELFCLASS64)
		return err_new(ERR_UNSUPPORTED, "a 32-bit ELF file");
	if (ident[EI_DATA] != ELFDATA2LSB)
		return err_new(ERR_UNSUPPORTED, "a big-endian ELF file");
	return NULL;
}

struct err *elf_open(int fd, struct elf_file **ret_file)
{
	struct stat st;

	if (fstat(fd, &st))
		return err_errno(errno, "stat");
	if (!S_ISREG(st.st_mode))
		return err_new(ERR_FORMAT, "not a regular file");
	if ((uint64_t)st.st_size > ELF_MAX_FILE_BYTES)
		return err_new(ERR_LIMIT, "%lld bytes, the limit is %llu",
			       (long long)st.st_size, ELF_MAX_FILE_BYTES);
	elf_version(EV_CURRENT);

	CLEANUP(elf_close) struct elf_file *file = mem_alloc(sizeof(*file));

	file->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!file->elf)
		return elf_error("not readable as ELF");
	if (elf_kind(file->elf) != ELF_K_ELF || !gelf_getehdr(file->elf, &file->header))
		return err_new(ERR_FORMAT, "not an ELF file");
	TRY(check_header(file));
	TRY(read_segments(file));
	TRY(read_sections(file));
	read_build_id(file);
	read_soname(file);
	*ret_file = take(file);
	return NULL;
}

void elf_close(struct elf_file *file)
{
	if (!file)
		return;
	if (file->elf)
		elf_end(file->elf);
	vec_fini(&file->sections);
	vec_fini(&file->segments);
	vec_fini(&file->loaded);
	free(file->soname);
	free(file);
}

struct Elf *elf_handle(const struct elf_file *file)
{
	return file->elf;
}

enum elf_machine elf_machine(const struct elf_file *file)
{
	if (file->header.e_machine == EM_X86_64)
		return ELF_X86_64;
	return file->header.e_machine == EM_AARCH64 ? ELF_AARCH64 : ELF_OTHER_MACHINE;
}

bool elf_is_relocatable(const struct elf_file *file)
{
	return file->header.e_type == ET_REL;
}

/* A PIE is an ET_DYN; what tells it from a library is the interpreter, but libc.so has
 * one as well, so an entry point alone does not decide and a soname counts against it. */
bool elf_is_executable(const struct elf_file *file)
{
	if (file->header.e_type == ET_EXEC)
		return true;
	return file->header.e_type == ET_DYN && file->has_interp && !file->soname;
}

uint64_t elf_entry(const struct elf_file *file)
{
	return file->header.e_entry;
}

const struct elf_section *elf_sections(const struct elf_file *file, size_t *ret_count)
{
	*ret_count = file->sections.count;
	return file->sections.data;
}

const struct elf_segment *elf_segments(const struct elf_file *file, size_t *ret_count)
{
	*ret_count = file->segments.count;
	return file->segments.data;
}

const struct elf_section *elf_section(const struct elf_file *file, const char *name)
{
	vec_each(&file->sections, section)
		if (strcmp(section->name, name) == 0)
			return section;
	return NULL;
}

const struct elf_section *elf_section_at(const struct elf_file *file, uint64_t va)
{
	vec_each(&file->sections, section)
		if ((section->flags & SHF_ALLOC) && !(section->flags & SHF_TLS) &&
		    va - section->va < section->bytes)
			return section;
	return NULL;
}

static const struct elf_segment *segment_at(const struct elf_file *file, uint64_t va)
{
	vec_each(&file->segments, segment)
		if (segment->kind == ELF_LOAD && va - segment->va < segment->mem_bytes)
			return segment;
	return NULL;
}

bool elf_is_code(const struct elf_file *file, uint64_t va)
{
	const struct elf_segment *segment = segment_at(file, va);

	return segment && segment->can_exec;
}

static struct err *decompress(const struct elf_section *section, Elf_Scn *scn)
{
	GElf_Chdr header;
	GElf_Shdr now;

	/* Somebody, libdw perhaps, may have done it already. */
	if (!gelf_getshdr(scn, &now) || !(now.sh_flags & SHF_COMPRESSED))
		return NULL;
	if (!gelf_getchdr(scn, &header))
		return elf_error(section->name);
	if (header.ch_type != ELFCOMPRESS_ZLIB)
		return err_new(ERR_UNSUPPORTED, "%s is compressed with %s", section->name,
			       header.ch_type == ELFCOMPRESS_ZSTD ? "zstd"
								  : "an unknown method");
	if (header.ch_size > ELF_MAX_SECTION_BYTES)
		return err_new(ERR_LIMIT, "%s: %llu bytes uncompressed", section->name,
			       (unsigned long long)header.ch_size);
	return elf_compress(scn, 0, 0) < 0 ? elf_error(section->name) : NULL;
}

struct err *elf_data(const struct elf_file *file, const struct elf_section *section,
		     const uint8_t **ret_data, size_t *ret_bytes)
{
	Elf_Scn *scn = elf_getscn(file->elf, section->index);

	if (section->type == SHT_NOBITS || section->bytes == 0)
		return err_new(ERR_NOT_FOUND, "%s holds no bytes", section->name);
	if (section->bytes > ELF_MAX_SECTION_BYTES)
		return err_new(ERR_LIMIT, "%s: %llu bytes", section->name,
			       (unsigned long long)section->bytes);
	if (!scn)
		return elf_error(section->name);
	if (section->flags & SHF_COMPRESSED)
		TRY(decompress(section, scn));
	Elf_Data *data = elf_rawdata(scn, NULL);

	/* Decompressed bytes exist only in the translated view. */
	if (section->flags & SHF_COMPRESSED)
		data = elf_getdata(scn, NULL);
	if (!data || !data->d_buf)
		return elf_error(section->name);
	*ret_data = data->d_buf;
	*ret_bytes = data->d_size;
	return NULL;
}

const uint8_t *elf_bytes_at(const struct elf_file *file, uint64_t va, size_t *ret_room)
{
	const struct elf_segment *segment = segment_at(file, va);

	*ret_room = 0;
	if (!segment || va - segment->va >= segment->file_bytes ||
	    segment->file_bytes > ELF_MAX_SEGMENT_BYTES)
		return NULL;
	Elf_Data **slot = &file->loaded.data[segment - file->segments.data];

	if (!*slot)
		*slot = elf_getdata_rawchunk(file->elf, (int64_t)segment->off,
					     segment->file_bytes, ELF_T_BYTE);
	if (!*slot || !(*slot)->d_buf || va - segment->va >= (*slot)->d_size)
		return NULL;
	*ret_room = (*slot)->d_size - (va - segment->va);
	return (const uint8_t *)(*slot)->d_buf + (va - segment->va);
}

const struct build_id *elf_build_id(const struct elf_file *file)
{
	return file->build_id.size ? &file->build_id : NULL;
}

/* A section that begins with a NUL-terminated name. Return: bytes behind the NUL. */
static const uint8_t *read_link(const struct elf_file *file, const char *section_name,
				const char **ret_name, size_t *ret_rest)
{
	const struct elf_section *section = elf_section(file, section_name);
	const uint8_t *data;
	size_t bytes;

	*ret_name = "";
	*ret_rest = 0;
	if (!section || section->bytes > 2 * ELF_MAX_NAME)
		return NULL;
	struct err *err = elf_data(file, section, &data, &bytes);

	if (err) {
		err_free(err);
		return NULL;
	}
	size_t length = strnlen((const char *)data, bytes);

	if (length == 0 || length == bytes || length >= ELF_MAX_NAME)
		return NULL;
	*ret_name = (const char *)data;
	*ret_rest = bytes - length - 1;
	return data + length + 1;
}

struct elf_link elf_debuglink(const struct elf_file *file)
{
	struct elf_link link = { .name = "" };
	const char *name;
	size_t rest;
	const uint8_t *behind = read_link(file, ".gnu_debuglink", &name, &rest);
	size_t padding = (4 - (strlen(name) + 1) % 4) % 4;

	if (!behind || rest < padding + sizeof(link.crc))
		return link;
	memcpy(&link.crc, behind + padding, sizeof(link.crc));
	link.name = name;
	return link;
}

struct elf_link elf_altlink(const struct elf_file *file)
{
	struct elf_link link = { .name = "" };
	const char *name;
	size_t rest;
	const uint8_t *behind = read_link(file, ".gnu_debugaltlink", &name, &rest);

	if (!behind || rest == 0 || rest > BUILD_ID_MAX)
		return link;
	memcpy(link.id.bytes, behind, rest);
	link.id.size = (uint8_t)rest;
	link.name = name;
	return link;
}

const char *elf_soname(const struct elf_file *file)
{
	return file->soname ? file->soname : "";
}

static bool has_bytes(const struct elf_file *file, const char *name)
{
	const struct elf_section *section = elf_section(file, name);

	return section && section->type != SHT_NOBITS && section->bytes > 0;
}

bool elf_has_dwarf(const struct elf_file *file)
{
	return has_bytes(file, ".debug_info") || has_bytes(file, ".zdebug_info");
}

bool elf_has_symtab(const struct elf_file *file)
{
	return has_bytes(file, ".symtab");
}

bool elf_has_cfi(const struct elf_file *file)
{
	return has_bytes(file, ".eh_frame") || has_bytes(file, ".debug_frame");
}

/* libdw 0.188 trusts string tables to be terminated. */
static struct err *check_strings(const struct elf_file *file)
{
	static const char *const names[] = { ".debug_str", ".debug_line_str" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct elf_section *section = elf_section(file, names[i]);
		const uint8_t *data;
		size_t bytes;

		if (!section || section->type == SHT_NOBITS || section->bytes == 0)
			continue;
		TRY(elf_data(file, section, &data, &bytes));
		if (bytes == 0 || data[bytes - 1] != 0)
			return err_new(ERR_FORMAT, "%s is not terminated", names[i]);
	}
	return NULL;
}

struct err *elf_check_debug(const struct elf_file *file)
{
	vec_each(&file->sections, section) {
		GElf_Chdr header;

		if (!(section->flags & SHF_COMPRESSED) ||
		    strncmp(section->name, ".debug_", 7) != 0)
			continue;
		Elf_Scn *scn = elf_getscn(file->elf, section->index);

		if (!scn || !gelf_getchdr(scn, &header) ||
		    header.ch_type == ELFCOMPRESS_ZLIB)
			continue;
		return err_new(ERR_UNSUPPORTED,
			       "%s is compressed with %s, which this libdw cannot read; "
			       "decompress with: objcopy --decompress-debug-sections",
			       section->name,
			       header.ch_type == ELFCOMPRESS_ZSTD ? "zstd"
								  : "an unknown method");
	}
	return check_strings(file);
}
