-- SPDX-License-Identifier: Apache-2.0
-- The oldest :batch rows of :level that began before :cut_at_ns move up one level.
-- Any part of a bucket may move alone, because equal rows add up.
DELETE FROM temp.roll_access;
INSERT INTO temp.roll_access
SELECT * FROM access
WHERE level = :level AND bucket_at_ns < :cut_at_ns
ORDER BY level, bucket_at_ns, run_id, process_id, module_id, va, source, method_id
LIMIT :batch;
-- Deleted first, so that the sums find the pages: a full file cannot grow.
DELETE FROM access
WHERE (level, bucket_at_ns, run_id, process_id, module_id, va, source, method_id) IN (
	SELECT level, bucket_at_ns, run_id, process_id, module_id, va, source, method_id
	FROM temp.roll_access);
INSERT INTO access (level, bucket_at_ns, run_id, process_id, module_id, va, source,
	method_id, samples, period, loads, stores, weight_samples, weight_cycles, l1, l2,
	l3, dram, remote, tlb_miss, hitm)
SELECT level + 1, bucket_at_ns - bucket_at_ns % :to_length_ns AS up_at_ns, run_id,
	process_id, module_id, va, source, method_id, sum(samples), sum(period),
	sum(loads), sum(stores), sum(weight_samples), sum(weight_cycles), sum(l1), sum(l2),
	sum(l3), sum(dram), sum(remote), sum(tlb_miss), sum(hitm)
FROM temp.roll_access
WHERE true
GROUP BY up_at_ns, run_id, process_id, module_id, va, source, method_id
ON CONFLICT DO UPDATE SET
	samples = samples + excluded.samples,
	period = period + excluded.period,
	loads = loads + excluded.loads,
	stores = stores + excluded.stores,
	weight_samples = weight_samples + excluded.weight_samples,
	weight_cycles = weight_cycles + excluded.weight_cycles,
	l1 = l1 + excluded.l1,
	l2 = l2 + excluded.l2,
	l3 = l3 + excluded.l3,
	dram = dram + excluded.dram,
	remote = remote + excluded.remote,
	tlb_miss = tlb_miss + excluded.tlb_miss,
	hitm = hitm + excluded.hitm;
