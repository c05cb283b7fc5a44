-- SPDX-License-Identifier: Apache-2.0
INSERT INTO access (level, bucket_at_ns, run_id, process_id, module_id, va, source,
	method_id, samples, period, loads, stores, weight_samples, weight_cycles, l1, l2,
	l3, dram, remote, tlb_miss, hitm)
VALUES (0, :bucket_at_ns, :run_id, :process_id, :module_id, :va, :source, :method_id,
	:samples, :period, :loads, :stores, :weight_samples, :weight_cycles, :l1, :l2, :l3,
	:dram, :remote, :tlb_miss, :hitm)
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
