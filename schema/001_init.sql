-- SPDX-License-Identifier: Apache-2.0
-- The facts, as the agent writes them. People read schema/views.sql instead.
--
-- *_id       64-bit hashes, stored bit-cast to SQLite's signed integers; 0 is "none".
--            They are stable, so that files of many hosts merge without renumbering.
-- *_at_ns    CLOCK_REALTIME, ns since 1970
-- *_boot_ns  since boot
-- *_ns       a duration
-- va         an address in a file's own numbering, not one of a process
-- level      how long a bucket is, see bucket_level; old buckets move up by addition

CREATE TABLE meta (
	key TEXT PRIMARY KEY,
	value
) WITHOUT ROWID;

CREATE TABLE bucket_level (
	level INTEGER PRIMARY KEY,
	length_ns INTEGER NOT NULL,
	keep_ns INTEGER NOT NULL -- age at which a bucket leaves the level, as configured
);
INSERT INTO bucket_level VALUES
	(0, 1000000000, 600000000000),
	(1, 10000000000, 21600000000000),
	(2, 60000000000, 604800000000000),
	(3, 3600000000000, 7776000000000000);

-- Names of the numbers below; filled from the program's own tables when it starts.
CREATE TABLE verdict (
	verdict INTEGER PRIMARY KEY,
	name TEXT NOT NULL,
	text TEXT NOT NULL,
	is_claim INTEGER NOT NULL -- 1: names a type; 0: says why not
);
CREATE TABLE source (
	source INTEGER PRIMARY KEY,
	name TEXT NOT NULL,
	skid INTEGER NOT NULL -- 1: the address is behind the access, as with the clock
);
CREATE TABLE loss_kind (kind INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE loss_reason (reason INTEGER PRIMARY KEY, name TEXT NOT NULL);

CREATE TABLE run (
	run_id INTEGER PRIMARY KEY,
	start_at_ns INTEGER NOT NULL,
	end_at_ns INTEGER, -- NULL while it runs
	host TEXT NOT NULL,
	boot_id TEXT NOT NULL,
	kernel TEXT NOT NULL,
	version TEXT NOT NULL,
	target TEXT NOT NULL,
	sources TEXT NOT NULL
);

-- run_id here and below: the last run that saw it.
CREATE TABLE process (
	process_id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL,
	parent_id INTEGER NOT NULL,
	pid INTEGER NOT NULL,
	uid INTEGER NOT NULL,
	start_boot_ns INTEGER NOT NULL,
	end_boot_ns INTEGER, -- NULL while it lives
	exe_module_id INTEGER NOT NULL,
	cgroup_id INTEGER NOT NULL,
	comm TEXT NOT NULL,
	exe TEXT NOT NULL,
	service TEXT NOT NULL,
	seen_at_ns INTEGER NOT NULL
);

CREATE TABLE module (
	module_id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL,
	kind INTEGER NOT NULL, -- 1 file, 2 vdso, 3 kernel, 4 kernel module
	build_id BLOB NOT NULL,
	name TEXT NOT NULL, -- last part of the path
	path TEXT NOT NULL,
	debug TEXT NOT NULL -- where its debug information is, or why there is none
);

CREATE TABLE source_file (
	file_id INTEGER PRIMARY KEY,
	path TEXT NOT NULL
);

CREATE TABLE function (
	module_id INTEGER NOT NULL,
	va INTEGER NOT NULL,
	run_id INTEGER NOT NULL,
	bytes INTEGER NOT NULL,
	name TEXT NOT NULL,
	file_id INTEGER NOT NULL,
	line INTEGER NOT NULL,
	PRIMARY KEY (module_id, va)
) WITHOUT ROWID;

-- Where a sampled address belongs; function_va 0: looked up, nothing found.
CREATE TABLE site (
	module_id INTEGER NOT NULL,
	va INTEGER NOT NULL,
	run_id INTEGER NOT NULL,
	function_va INTEGER NOT NULL,
	file_id INTEGER NOT NULL,
	line INTEGER NOT NULL,
	PRIMARY KEY (module_id, va)
) WITHOUT ROWID;

CREATE TABLE method (
	method_id INTEGER PRIMARY KEY,
	framework TEXT NOT NULL,
	name TEXT NOT NULL
);
INSERT INTO method VALUES (0, '', '');

-- Memory accesses, summed per bucket. The counts are sums over the samples.
CREATE TABLE access (
	level INTEGER NOT NULL,
	bucket_at_ns INTEGER NOT NULL,
	run_id INTEGER NOT NULL,
	process_id INTEGER NOT NULL,
	module_id INTEGER NOT NULL,
	va INTEGER NOT NULL,
	source INTEGER NOT NULL,
	method_id INTEGER NOT NULL,
	samples INTEGER NOT NULL,
	period INTEGER NOT NULL, -- events; ns of CPU for the clock
	loads INTEGER NOT NULL,
	stores INTEGER NOT NULL,
	weight_samples INTEGER NOT NULL, -- samples that had a latency
	weight_cycles INTEGER NOT NULL,
	l1 INTEGER NOT NULL,
	l2 INTEGER NOT NULL,
	l3 INTEGER NOT NULL,
	dram INTEGER NOT NULL,
	remote INTEGER NOT NULL,
	tlb_miss INTEGER NOT NULL,
	hitm INTEGER NOT NULL,
	PRIMARY KEY (level, bucket_at_ns, run_id, process_id, module_id, va, source,
		method_id)
) WITHOUT ROWID;

-- CPU time by call path.
CREATE TABLE tick (
	level INTEGER NOT NULL,
	bucket_at_ns INTEGER NOT NULL,
	run_id INTEGER NOT NULL,
	process_id INTEGER NOT NULL,
	stack_id INTEGER NOT NULL,
	method_id INTEGER NOT NULL,
	samples INTEGER NOT NULL,
	cpu_ns INTEGER NOT NULL,
	PRIMARY KEY (level, bucket_at_ns, run_id, process_id, stack_id, method_id)
) WITHOUT ROWID;

-- Call paths are a tree with the roots at parent_id 0: what two stacks share above is
-- stored once. A stack is the frame that it ends in.
CREATE TABLE stack (
	stack_id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL,
	frame_id INTEGER NOT NULL, -- the leaf; 0: empty
	frames INTEGER NOT NULL,
	kernel_frames INTEGER NOT NULL, -- that many at the leaf are the kernel's
	complete INTEGER NOT NULL, -- 1: the walk ended at the root
	seen_at_ns INTEGER NOT NULL
);
CREATE INDEX stack_frame ON stack (frame_id);

CREATE TABLE frame (
	frame_id INTEGER PRIMARY KEY, -- hash of the other three
	parent_id INTEGER NOT NULL, -- the caller
	module_id INTEGER NOT NULL, -- 0: va is a runtime address that nothing maps
	va INTEGER NOT NULL
);
CREATE INDEX frame_parent ON frame (parent_id);

CREATE TABLE type (
	type_id INTEGER PRIMARY KEY,
	run_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	bytes INTEGER NOT NULL
);

CREATE TABLE field (
	field_id INTEGER PRIMARY KEY, -- hash of type, offset and path
	type_id INTEGER NOT NULL,
	offset_bytes INTEGER NOT NULL,
	bytes INTEGER NOT NULL,
	path TEXT NOT NULL
);
CREATE INDEX field_type ON field (type_id, offset_bytes);

-- What a memory instruction accesses, or why that is not known.
CREATE TABLE answer (
	module_id INTEGER NOT NULL,
	va INTEGER NOT NULL, -- as sampled
	skid INTEGER NOT NULL, -- 1: the access is before va, at insn_va
	run_id INTEGER NOT NULL,
	analyser_version INTEGER NOT NULL,
	verdict INTEGER NOT NULL,
	confidence REAL NOT NULL, -- 0 to 1; 0 for an abstention
	type_id INTEGER NOT NULL,
	field_id INTEGER NOT NULL,
	insn_va INTEGER NOT NULL,
	access_kind INTEGER NOT NULL, -- 1 load, 2 store, 3 both
	width_bytes INTEGER NOT NULL,
	offset_bytes INTEGER NOT NULL, -- in the type
	PRIMARY KEY (module_id, va, skid)
) WITHOUT ROWID;
CREATE INDEX answer_type ON answer (type_id) WHERE type_id <> 0;

CREATE TABLE loss (
	level INTEGER NOT NULL,
	bucket_at_ns INTEGER NOT NULL,
	run_id INTEGER NOT NULL,
	kind INTEGER NOT NULL,
	reason INTEGER NOT NULL,
	lost INTEGER NOT NULL,
	seen INTEGER NOT NULL, -- of that kind in the same time, lost ones included
	lost_ns INTEGER NOT NULL, -- time not covered at all, after a crash
	PRIMARY KEY (level, bucket_at_ns, run_id, kind, reason)
) WITHOUT ROWID;
