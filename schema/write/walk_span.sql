-- SPDX-License-Identifier: Apache-2.0
SELECT level, bucket_at_ns, run_id, span_id, process_id
FROM span
WHERE (level, bucket_at_ns, run_id, span_id)
	> (?1, ?2, ?3, ?4)
ORDER BY level, bucket_at_ns, run_id, span_id
LIMIT :batch;
