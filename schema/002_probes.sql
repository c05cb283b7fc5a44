-- SPDX-License-Identifier: Apache-2.0
-- What probes on applications tell: requests, summed and one by one, and the probes.

-- Requests that ended in the bucket. kind: 1 served here, 2 asked of others, 3 a batch.
CREATE TABLE request (
	level INTEGER NOT NULL,
	bucket_at_ns INTEGER NOT NULL,
	run_id INTEGER NOT NULL,
	process_id INTEGER NOT NULL,
	method_id INTEGER NOT NULL,
	kind INTEGER NOT NULL,
	requests INTEGER NOT NULL, -- seen
	weight REAL NOT NULL, -- that many they stand for
	weight2 REAL NOT NULL, -- sum of the squared weights, for the standard error
	duration_ns INTEGER NOT NULL,
	max_duration_ns INTEGER NOT NULL,
	cpu_ns INTEGER NOT NULL,
	probe_ns INTEGER NOT NULL, -- of cpu_ns, calibrated cost of the probes themselves
	unfinished INTEGER NOT NULL, -- never returned: longjmp, or the end was not seen
	PRIMARY KEY (level, bucket_at_ns, run_id, process_id, method_id, kind)
) WITHOUT ROWID;

-- Some of them one by one. No roll-up: details are forgotten when they grow old.
CREATE TABLE span (
	level INTEGER NOT NULL, -- always 0
	bucket_at_ns INTEGER NOT NULL,
	run_id INTEGER NOT NULL,
	span_id INTEGER NOT NULL,
	parent_id INTEGER NOT NULL, -- span_id of the request on whose behalf; 0 none
	process_id INTEGER NOT NULL,
	tid INTEGER NOT NULL,
	method_id INTEGER NOT NULL,
	kind INTEGER NOT NULL,
	begin_at_ns INTEGER NOT NULL,
	duration_ns INTEGER NOT NULL,
	cpu_ns INTEGER NOT NULL,
	probe_ns INTEGER NOT NULL,
	weight REAL NOT NULL, -- 1 / the probability that it is in this table
	flags INTEGER NOT NULL, -- enum abi_hit_flags of bpf/abi.h
	PRIMARY KEY (level, bucket_at_ns, run_id, span_id)
) WITHOUT ROWID;

-- The probes of a run, as they are now.
CREATE TABLE probe (
	run_id INTEGER NOT NULL,
	probe_id INTEGER NOT NULL, -- hash of module, address, spec and probe
	module_id INTEGER NOT NULL,
	va INTEGER NOT NULL,
	spec TEXT NOT NULL,
	name TEXT NOT NULL,
	function TEXT NOT NULL,
	state TEXT NOT NULL, -- on, windows, cut
	hits INTEGER NOT NULL,
	skipped INTEGER NOT NULL, -- of other processes, or a condition did not hold
	unread INTEGER NOT NULL, -- hits with an expression that could not be read
	dropped INTEGER NOT NULL,
	hit_ns INTEGER NOT NULL, -- calibrated cost of one hit
	share REAL NOT NULL, -- of the targets' CPU while it is attached
	duty REAL NOT NULL, -- share of the time in which it is attached
	hot_at_ns INTEGER, -- when it last cost too much to stay; NULL never
	PRIMARY KEY (run_id, probe_id)
) WITHOUT ROWID;
CREATE TRIGGER probe_run AFTER DELETE ON run BEGIN
	DELETE FROM probe WHERE run_id = OLD.run_id;
END;
