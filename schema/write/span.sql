-- SPDX-License-Identifier: Apache-2.0
INSERT OR IGNORE INTO span (level, bucket_at_ns, run_id, span_id, parent_id, process_id,
	tid, method_id, kind, begin_at_ns, duration_ns, cpu_ns, probe_ns, weight, flags,
	trace_id, off_cpu_ns, in_bytes, out_bytes, page_faults, labels, status)
VALUES (0, :bucket_at_ns, :run_id, :span_id, :parent_id, :process_id, :tid, :method_id,
	:kind, :begin_at_ns, :duration_ns, :cpu_ns, :probe_ns, :weight, :flags,
	:trace_id, :off_cpu_ns, :in_bytes, :out_bytes, :page_faults, :labels & 63,
	CASE WHEN :labels & 64 THEN :status END);
