-- SPDX-License-Identifier: Apache-2.0
DELETE FROM loss
WHERE (level, bucket_at_ns, run_id, kind, reason) IN (
	SELECT level, bucket_at_ns, run_id, kind, reason
	FROM loss
	WHERE level = :level AND bucket_at_ns < :cut_at_ns
	ORDER BY level, bucket_at_ns, run_id, kind, reason
	LIMIT :batch);
