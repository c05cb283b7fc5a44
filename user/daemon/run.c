// SPDX-License-Identifier: Apache-2.0
#include "daemon/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "core/cleanup.h"
#include "core/file.h"

static void copy_text(char *to, size_t room, const char *from)
{
	snprintf(to, room, "%s", from);
}

void run_describe(struct stream_meta *ret_meta, const char *target, const char *sources)
{
	CLEANUP(free) char *boot = NULL;
	struct stream_meta *meta = ret_meta;
	struct utsname name;

	memset(meta, 0, sizeof(*meta));
	uname(&name);
	err_free(file_read("/proc/sys/kernel/random/boot_id", 128, &boot, NULL));
	if (boot)
		boot[strcspn(boot, "\n")] = 0;
	meta->start_ns = clock_ns();
	meta->realtime_offset_ns = (int64_t)(realtime_ns() - meta->start_ns);
	copy_text(meta->boot_id, sizeof(meta->boot_id), boot ? boot : "");
	copy_text(meta->host, sizeof(meta->host), name.nodename);
	copy_text(meta->kernel, sizeof(meta->kernel), name.release);
	copy_text(meta->version, sizeof(meta->version), ASSAY_VERSION);
	copy_text(meta->target, sizeof(meta->target), target);
	copy_text(meta->sources, sizeof(meta->sources), sources);
}

void run_put(struct sink *sink, uint64_t run_id, const struct stream_meta *meta,
	     uint64_t end_ns)
{
	struct fact fact = { .kind = FACT_RUN };

	fact.run = (struct fact_run){
		.run_id = run_id,
		.start_ns = meta->start_ns + (uint64_t)meta->realtime_offset_ns,
		.end_ns = end_ns,
		.host = meta->host,
		.boot_id = meta->boot_id,
		.kernel = meta->kernel,
		.version = meta->version,
		.target = meta->target,
		.sources = meta->sources,
	};
	sink_put(sink, &fact);
}
