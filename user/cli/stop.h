/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_STOP_H
#define CLI_STOP_H

/* The stop flag: what Ctrl-C sets while a command computes or waits. */

#include <signal.h>

extern volatile sig_atomic_t stop_flag; /* number of signals so far */

/* stop_catch() - SIGINT, SIGTERM and SIGHUP raise the flag and interrupt system calls. */
void stop_catch(void);

#endif
