/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_WORKER_SELF_H
#define TESTS_WORKER_SELF_H

/*
 * A test program that is also the worker: spawned with --class it runs the worker's
 * main, so that what is tested is the real process, built with the test's flags.
 */

#include <string.h>

int worker_main(int argc, char **argv);

#define main worker_main
#include "user/worker/main.c"
#undef main

static inline bool is_worker(int argc, char **argv)
{
	return argc > 1 && strcmp(argv[1], "--class") == 0;
}

/* Fixture programs next to the test: TEST_SELF is a real, dynamically linked ELF file. */
#define TEST_SELF "/proc/self/exe"

#endif
