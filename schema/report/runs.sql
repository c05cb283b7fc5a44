-- SPDX-License-Identifier: Apache-2.0
-- the runs in this file, newest first
-- share_lost is of the access samples and ticks stored and lost together.
SELECT run_id, start_at_ns, end_at_ns, target, sources, access_samples, tick_samples,
	lost_samples,
	lost_samples * 1.0 / nullif(access_samples + tick_samples + lost_samples, 0)
		AS share_lost,
	host, kernel, version
FROM v_run
WHERE :run_id IS NULL OR run_id = :run_id
ORDER BY start_at_ns DESC
LIMIT coalesce(:limit, -1);
