-- SPDX-License-Identifier: Apache-2.0
-- the struct types that memory accesses go to
-- share_of_all is of all access samples selected, typed or not; share_of_typed of those
-- that have a type. provenance is how most of the samples got their type, confidence the
-- mean over the samples. mean_cycles is of the samples that had a latency.
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
	SELECT CASE WHEN is_below THEN 0 ELSE type_id END AS type_id, type, verdict,
		sum(samples) AS samples, sum(loads) AS loads,
		sum(stores) AS stores, sum(weight_samples) AS weight_samples,
		sum(weight_cycles) AS weight_cycles, sum(l1) AS l1, sum(l2) AS l2,
		sum(l3) AS l3, sum(dram) AS dram, sum(remote) AS remote,
		sum(tlb_miss) AS tlb_miss, sum(hitm) AS hitm,
		sum(confidence * samples) AS sure
	FROM picked GROUP BY 1, verdict
), total AS (
	SELECT sum(samples) AS samples, sum(samples) FILTER (WHERE type_id <> 0) AS typed
	FROM hit
), per_type AS (
	SELECT type_id, type, verdict, max(samples), sum(samples) AS samples,
		sum(loads) AS loads, sum(stores) AS stores,
		sum(weight_samples) AS weight_samples,
		sum(weight_cycles) AS weight_cycles, sum(l1) AS l1,
		sum(l2) AS l2, sum(l3) AS l3, sum(dram) AS dram, sum(remote) AS remote,
		sum(tlb_miss) AS tlb_miss, sum(hitm) AS hitm, sum(sure) AS sure
	FROM hit WHERE type_id <> 0 GROUP BY type_id
)
SELECT h.type, h.samples, h.samples * 1.0 / total.samples AS share_of_all,
	h.samples * 1.0 / total.typed AS share_of_typed, h.loads, h.stores,
	h.weight_cycles * 1.0 / nullif(h.weight_samples, 0) AS mean_cycles, h.l1,
	h.l2, h.l3, h.dram,
	h.remote, h.tlb_miss, h.hitm, h.verdict AS provenance,
	h.sure / h.samples AS confidence, type.bytes, h.type_id
FROM per_type AS h, total LEFT JOIN type USING (type_id)
ORDER BY h.samples DESC, h.type
LIMIT coalesce(:limit, -1);
