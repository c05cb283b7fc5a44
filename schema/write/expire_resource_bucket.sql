-- SPDX-License-Identifier: Apache-2.0
DELETE FROM resource_bucket
WHERE (level, bucket_at_ns, run_id, pid, resource_id) IN (
	SELECT level, bucket_at_ns, run_id, pid, resource_id
	FROM resource_bucket
	WHERE level = :level AND bucket_at_ns < :cut_at_ns
	ORDER BY level, bucket_at_ns, run_id, pid, resource_id
	LIMIT :batch);
