-- SPDX-License-Identifier: Apache-2.0
-- the functions that access memory
-- share_of_all is of all access samples selected; share_typed of the selected samples in
-- the same function. top_type has the most of its samples. mean_cycles is of the samples
-- that had a latency. A function MODULE+0xVA has no symbol.
-- Claims below min_confidence count as not typed.
WITH picked AS (
	SELECT v_access.*,
		is_typed AND confidence < coalesce(:min_confidence, 0) AS is_below
	FROM v_access
	WHERE bucket_at_ns > coalesce(:since_ns, 0) - length_ns
		AND (:run_id IS NULL OR run_id = :run_id)
		AND (:pid IS NULL OR pid = :pid)
		AND (:process IS NULL OR process = :process)
		AND (:method IS NULL OR method = :method)
), hit AS MATERIALIZED (
	SELECT module_id, module, function_va, function, file,
		CASE WHEN function_va IS NULL THEN va END AS site_va,
		CASE WHEN NOT is_below THEN type END AS known_type,
		sum(samples) AS samples,
		sum(samples) FILTER (WHERE is_typed AND NOT is_below) AS typed_samples,
		sum(loads) AS loads, sum(stores) AS stores,
		sum(weight_samples) AS weight_samples,
		sum(weight_cycles) AS weight_cycles, sum(l1) AS l1, sum(l2) AS l2,
		sum(l3) AS l3, sum(dram) AS dram, sum(remote) AS remote,
		sum(tlb_miss) AS tlb_miss, sum(hitm) AS hitm
	FROM picked
	GROUP BY module_id, function_va, site_va, known_type
), total AS (
	SELECT sum(samples) AS samples FROM hit
), per_function AS (
	SELECT module_id, module, function_va, function, file, site_va,
		sum(samples) AS samples, coalesce(sum(typed_samples), 0) AS typed_samples,
		sum(loads) AS loads, sum(stores) AS stores,
		sum(weight_samples) AS weight_samples,
		sum(weight_cycles) AS weight_cycles, sum(l1) AS l1, sum(l2) AS l2,
		sum(l3) AS l3, sum(dram) AS dram, sum(remote) AS remote,
		sum(tlb_miss) AS tlb_miss, sum(hitm) AS hitm
	FROM hit GROUP BY module_id, function_va, site_va
)
SELECT coalesce(h.function, printf('%s+0x%x', coalesce(h.module, '?'), h.site_va))
		AS function,
	h.module, h.samples, h.samples * 1.0 / total.samples AS share_of_all,
	h.typed_samples, h.typed_samples * 1.0 / h.samples AS share_typed, h.loads, h.stores,
	h.weight_cycles * 1.0 / nullif(h.weight_samples, 0) AS mean_cycles, h.l1,
	h.l2, h.l3, h.dram, h.remote, h.tlb_miss, h.hitm,
	(SELECT known_type FROM hit WHERE hit.module_id = h.module_id
			AND hit.function_va IS h.function_va AND hit.site_va IS h.site_va
			AND hit.known_type IS NOT NULL
		ORDER BY samples DESC LIMIT 1) AS top_type,
	h.file, h.function_va, h.module_id
FROM per_function AS h, total
ORDER BY h.samples DESC, function
LIMIT coalesce(:limit, -1);
