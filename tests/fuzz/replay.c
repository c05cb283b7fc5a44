// SPDX-License-Identifier: Apache-2.0
/*
 * Feeds files to a fuzz target without libFuzzer: `replay_X FILE-OR-FOLDER...` prints one
 * "ok" line per file. A crash ends the program, and the last "# FILE" line names the
 * culprit. Each input is an exact heap block, so a sanitizer sees one byte too far.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/cleanup.h"
#include "core/file.h"
#include "core/mem.h"

#define REPLAY_MAX_BYTES (64 * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

static int replay_file(const char *path, int number)
{
	CLEANUP(free) char *text = NULL;
	size_t bytes;
	struct err *err = file_read(path, REPLAY_MAX_BYTES, &text, &bytes);

	if (err) {
		printf("not ok %d - %s\n", number, err->text);
		err_free(err);
		return 1;
	}
	CLEANUP(free) uint8_t *exact = malloc(bytes ? bytes : 1);

	if (!exact)
		return 1;
	memcpy(exact, text, bytes);
	printf("# %s\n", path);
	fflush(stdout);
	LLVMFuzzerTestOneInput(exact, bytes);
	printf("ok %d - %s\n", number,
	       strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	return 0;
}

static int replay_folder(const char *path, int *number)
{
	struct dirent **entries;
	int failed = 0, count = scandir(path, &entries, NULL, alphasort);

	for (int i = 0; i < count; i++) {
		if (entries[i]->d_name[0] != '.') {
			CLEANUP(free)
			char *file = mem_printf("%s/%s", path, entries[i]->d_name);

			failed |= replay_file(file, ++*number);
		}
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return failed;
}

int main(int argc, char **argv)
{
	int failed = 0, number = 0;

	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++) {
		struct stat st;

		if (!stat(argv[i], &st) && S_ISDIR(st.st_mode))
			failed |= replay_folder(argv[i], &number);
		else
			failed |= replay_file(argv[i], ++number);
	}
	printf("1..%d\n", number);
	return failed;
}
