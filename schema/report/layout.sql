-- SPDX-License-Identifier: Apache-2.0
-- the fields of one type, in order, with the samples on each
-- field is a path; of a bit-field NAME:WIDTH@BIT, counted from offset_bytes. Samples whose
-- field is not known stand on a row of their own, by offset, with is_field 0.
WITH hit AS MATERIALIZED (
	SELECT coalesce(field, '') AS path, offset_bytes AS at, samples, loads, stores,
		weight_samples, weight_cycles, l1, l2, l3, dram, remote, tlb_miss, hitm
	FROM v_access
	WHERE type_id = :type_id
		AND bucket_at_ns > coalesce(:since_ns, 0) - length_ns
		AND (:run_id IS NULL OR run_id = :run_id)
		AND confidence >= coalesce(:min_confidence, 0)
), place AS (
	SELECT path AS whole, substr(path, 1, coalesce(nullif(instr(path, ':') - 1, -1),
			length(path))) AS path, offset_bytes, bytes
	FROM field WHERE type_id = :type_id
), drawn AS (
	SELECT path, max(whole) AS whole, min(offset_bytes) AS offset_bytes,
		max(bytes) AS bytes
	FROM place GROUP BY path
), heat AS (
	SELECT path, CASE WHEN path IN (SELECT path FROM drawn) THEN NULL ELSE at END AS at,
		sum(samples) AS samples, sum(loads) AS loads, sum(stores) AS stores,
		sum(weight_samples) AS weight_samples, sum(weight_cycles) AS weight_cycles,
		sum(l1) AS l1, sum(l2) AS l2, sum(l3) AS l3, sum(dram) AS dram,
		sum(remote) AS remote, sum(tlb_miss) AS tlb_miss, sum(hitm) AS hitm
	FROM hit GROUP BY 1, 2
)
SELECT drawn.whole AS field, drawn.offset_bytes, drawn.bytes, 1 AS is_field,
	CASE instr(drawn.whole, '@') WHEN 0 THEN 0
		ELSE CAST(substr(drawn.whole, instr(drawn.whole, '@') + 1) AS INTEGER) END AS bit,
	coalesce(heat.samples, 0) AS samples,
	coalesce(heat.samples, 0) * 1.0 / (SELECT sum(samples) FROM hit) AS share_of_type,
	coalesce(heat.loads, 0) AS loads, coalesce(heat.stores, 0) AS stores,
	heat.weight_cycles * 1.0 / nullif(heat.weight_samples, 0) AS mean_cycles,
	coalesce(heat.l1, 0) AS l1, coalesce(heat.l2, 0) AS l2, coalesce(heat.l3, 0) AS l3,
	coalesce(heat.dram, 0) AS dram, coalesce(heat.remote, 0) AS remote,
	coalesce(heat.tlb_miss, 0) AS tlb_miss, coalesce(heat.hitm, 0) AS hitm
FROM drawn LEFT JOIN heat ON heat.path = drawn.path
UNION ALL
SELECT path, at, 0, 0, 0, samples, samples * 1.0 / (SELECT sum(samples) FROM hit), loads,
	stores, weight_cycles * 1.0 / nullif(weight_samples, 0), l1, l2, l3, dram, remote,
	tlb_miss, hitm
FROM heat WHERE at IS NOT NULL
ORDER BY offset_bytes, is_field, bit, bytes DESC, field
LIMIT coalesce(:limit, -1);
