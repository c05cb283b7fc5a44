-- SPDX-License-Identifier: Apache-2.0
INSERT INTO run (run_id, start_at_ns, end_at_ns, host, boot_id, kernel, version, target,
	sources)
VALUES (:run_id, :start_at_ns, nullif(:end_at_ns, 0), :host, :boot_id, :kernel, :version,
	:target, :sources)
ON CONFLICT (run_id) DO UPDATE SET
	start_at_ns = CASE start_at_ns WHEN 0 THEN excluded.start_at_ns ELSE start_at_ns END,
	end_at_ns = coalesce(excluded.end_at_ns, end_at_ns),
	host = coalesce(nullif(excluded.host, ''), host),
	boot_id = coalesce(nullif(excluded.boot_id, ''), boot_id),
	kernel = coalesce(nullif(excluded.kernel, ''), kernel),
	version = coalesce(nullif(excluded.version, ''), version),
	target = coalesce(nullif(excluded.target, ''), target),
	sources = coalesce(nullif(excluded.sources, ''), sources);
