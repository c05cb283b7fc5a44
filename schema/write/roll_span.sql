-- SPDX-License-Identifier: Apache-2.0
-- Not summed, which request.sql has: only forgotten. :to_length_ns is of no concern.
DELETE FROM span
WHERE (level, bucket_at_ns, run_id, span_id) IN (
	SELECT level, bucket_at_ns, run_id, span_id FROM span
	WHERE level = :level AND bucket_at_ns < :cut_at_ns AND :to_length_ns IS NOT NULL
	ORDER BY level, bucket_at_ns, run_id, span_id
	LIMIT :batch);
