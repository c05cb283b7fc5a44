-- SPDX-License-Identifier: Apache-2.0
INSERT INTO request (level, bucket_at_ns, run_id, process_id, method_id, kind, requests,
	weight, weight2, duration_ns, max_duration_ns, cpu_ns, probe_ns, unfinished)
VALUES (0, :bucket_at_ns, :run_id, :process_id, :method_id, :kind, :requests, :weight,
	:weight2, :duration_ns, :max_duration_ns, :cpu_ns, :probe_ns, :unfinished)
ON CONFLICT DO UPDATE SET
	requests = requests + excluded.requests,
	weight = weight + excluded.weight,
	weight2 = weight2 + excluded.weight2,
	duration_ns = duration_ns + excluded.duration_ns,
	max_duration_ns = max(max_duration_ns, excluded.max_duration_ns),
	cpu_ns = cpu_ns + excluded.cpu_ns,
	probe_ns = probe_ns + excluded.probe_ns,
	unfinished = unfinished + excluded.unfinished;
