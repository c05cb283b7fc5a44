-- SPDX-License-Identifier: Apache-2.0
DELETE FROM span
WHERE (level, bucket_at_ns, run_id, span_id) IN (
	SELECT level, bucket_at_ns, run_id, span_id FROM span
	WHERE level = :level AND bucket_at_ns < :cut_at_ns
	ORDER BY level, bucket_at_ns, run_id, span_id
	LIMIT :batch);
