-- SPDX-License-Identifier: Apache-2.0
INSERT OR REPLACE INTO probe (run_id, probe_id, module_id, va, spec, name, function,
	state, hits, skipped, unread, dropped, hit_ns, share, duty, hot_at_ns)
VALUES (:run_id, :probe_id, :module_id, :va, :spec, :name, :function, :state, :hits,
	:skipped, :unread, :dropped, :hit_ns, :share, :duty, nullif(:hot_at_ns, 0));
