-- SPDX-License-Identifier: Apache-2.0
INSERT INTO tick (level, bucket_at_ns, run_id, process_id, stack_id, method_id, samples,
	cpu_ns)
VALUES (0, :bucket_at_ns, :run_id, :process_id, :stack_id, :method_id, :samples, :cpu_ns)
ON CONFLICT DO UPDATE SET
	samples = samples + excluded.samples,
	cpu_ns = cpu_ns + excluded.cpu_ns;
