-- SPDX-License-Identifier: Apache-2.0
SELECT level, bucket_at_ns, run_id, pid, resource_id
FROM resource_bucket
WHERE (level, bucket_at_ns, run_id, pid, resource_id)
	> (?1, ?2, ?3, ?4, ?5)
ORDER BY level, bucket_at_ns, run_id, pid, resource_id
LIMIT :batch;
