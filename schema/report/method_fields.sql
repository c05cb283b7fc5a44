-- SPDX-License-Identifier: Apache-2.0
-- The fields that each kind of request touches
-- SHARE is of all access samples taken while a request of this kind was served.
WITH hit AS MATERIALIZED (
	SELECT method, CASE WHEN is_typed THEN type END AS type,
		CASE WHEN is_typed THEN field END AS field, sum(samples) AS samples,
		sum(loads) AS loads, sum(stores) AS stores,
		sum(weight_cycles) * 1.0 / nullif(sum(weight_samples), 0) AS mean_cycles,
		sum(dram) AS dram, sum(hitm) AS hitm
	FROM v_access
	WHERE method <> '' AND bucket_at_ns > coalesce(:since_ns, 0) - length_ns
		AND (:run_id IS NULL OR run_id = :run_id)
		AND (:pid IS NULL OR pid = :pid)
		AND (:process IS NULL OR process = :process)
		AND (:method IS NULL OR method = :method)
	GROUP BY 1, 2, 3
), total AS (
	SELECT method, sum(samples) AS samples FROM hit GROUP BY method
)
SELECT hit.method, coalesce(hit.type, '') AS type, coalesce(hit.field, '') AS field,
	hit.samples, hit.samples * 1.0 / total.samples AS share_of_method, hit.loads,
	hit.stores, hit.mean_cycles, hit.dram, hit.hitm
FROM hit JOIN total USING (method)
WHERE hit.type IS NOT NULL
ORDER BY total.samples DESC, hit.method, hit.samples DESC, type, field
LIMIT coalesce(:limit, -1);
