// SPDX-License-Identifier: Apache-2.0
#include "cli/stop.h"

#include <stddef.h>

volatile sig_atomic_t stop_flag;

static void on_signal(int signal)
{
	(void)signal;
	stop_flag = stop_flag + 1;
}

void stop_catch(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal };

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &action, NULL);
}
