-- SPDX-License-Identifier: Apache-2.0
DELETE FROM request
WHERE (level, bucket_at_ns, run_id, process_id, method_id, kind) IN (
	SELECT level, bucket_at_ns, run_id, process_id, method_id, kind
	FROM request
	WHERE level = :level AND bucket_at_ns < :cut_at_ns
	ORDER BY level, bucket_at_ns, run_id, process_id, method_id, kind
	LIMIT :batch);
