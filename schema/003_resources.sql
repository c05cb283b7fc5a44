-- SPDX-License-Identifier: Apache-2.0
-- Resources of applications: what they are, how they are used, what is wrong with them.

-- As their specs declare them.
CREATE TABLE resource (
	resource_id INTEGER PRIMARY KEY, -- hash of spec and name
	spec TEXT NOT NULL,
	name TEXT NOT NULL,
	title TEXT NOT NULL,
	kind TEXT NOT NULL, -- lock, cache, pool, slots, buffer, log, loop, pin, other
	unit TEXT NOT NULL, -- '' pieces
	capacity INTEGER -- NULL unknown
) WITHOUT ROWID;

-- What happened in a bucket, all tasks of an application together.
CREATE TABLE resource_bucket (
	level INTEGER NOT NULL,
	bucket_at_ns INTEGER NOT NULL,
	run_id INTEGER NOT NULL,
	pid INTEGER NOT NULL, -- of the application's first process
	resource_id INTEGER NOT NULL,
	wait_ns INTEGER NOT NULL, -- by all who waited, those who still do included
	hold_ns INTEGER NOT NULL, -- likewise
	waits INTEGER NOT NULL,
	acquires INTEGER NOT NULL,
	releases INTEGER NOT NULL,
	uses INTEGER NOT NULL,
	refusals INTEGER NOT NULL,
	max_balance REAL NOT NULL, -- amount held at the end of the bucket
	max_holders INTEGER NOT NULL,
	on_ns INTEGER NOT NULL, -- how long its probes were on
	PRIMARY KEY (level, bucket_at_ns, run_id, pid, resource_id)
) WITHOUT ROWID;

-- Diagnoses. text is the JSON of assay-finding(5).
CREATE TABLE finding (
	run_id INTEGER NOT NULL,
	finding_id INTEGER NOT NULL,
	pid INTEGER NOT NULL, -- of the application's first process
	class TEXT NOT NULL,
	resource_id INTEGER NOT NULL,
	resource TEXT NOT NULL,
	object TEXT NOT NULL,
	score REAL NOT NULL,
	since_at_ns INTEGER NOT NULL,
	until_at_ns INTEGER, -- NULL while it goes on
	seen_at_ns INTEGER NOT NULL,
	text TEXT NOT NULL,
	PRIMARY KEY (run_id, finding_id)
) WITHOUT ROWID;
CREATE TRIGGER finding_run AFTER DELETE ON run BEGIN
	DELETE FROM finding WHERE run_id = OLD.run_id;
END;
