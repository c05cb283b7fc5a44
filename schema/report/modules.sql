-- SPDX-License-Identifier: Apache-2.0
-- the files whose code was sampled
-- share_of_all is of all access samples selected; share_typed of the selected samples in
-- the same file. debug says where its debug information is, or why there is none.
WITH hit AS MATERIALIZED (
	SELECT module_id, sum(samples) AS samples,
		coalesce(sum(samples) FILTER (WHERE is_typed), 0) AS typed_samples
	FROM v_access
	WHERE bucket_at_ns > coalesce(:since_ns, 0) - length_ns
		AND (:run_id IS NULL OR run_id = :run_id)
		AND (:pid IS NULL OR pid = :pid)
		AND (:process IS NULL OR process = :process)
		AND (:method IS NULL OR method = :method)
	GROUP BY module_id
)
SELECT coalesce(m.name, '?') AS module, hit.samples,
	hit.samples * 1.0 / (SELECT sum(samples) FROM hit) AS share_of_all,
	hit.typed_samples, hit.typed_samples * 1.0 / hit.samples AS share_typed,
	CASE m.kind WHEN 1 THEN 'file' WHEN 2 THEN 'vdso' WHEN 3 THEN 'kernel'
		WHEN 4 THEN 'kmod' ELSE 'unknown' END AS kind,
	m.path, lower(hex(m.build_id)) AS build_id, m.debug, hit.module_id
FROM hit LEFT JOIN module AS m USING (module_id)
ORDER BY hit.samples DESC, module
LIMIT coalesce(:limit, -1);
