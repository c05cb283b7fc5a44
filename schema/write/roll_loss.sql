-- SPDX-License-Identifier: Apache-2.0
-- As roll_access.sql.
DELETE FROM temp.roll_loss;
INSERT INTO temp.roll_loss
SELECT * FROM loss
WHERE level = :level AND bucket_at_ns < :cut_at_ns
ORDER BY level, bucket_at_ns, run_id, kind, reason
LIMIT :batch;
-- Deleted first, so that the sums find the pages: a full file cannot grow.
DELETE FROM loss
WHERE (level, bucket_at_ns, run_id, kind, reason) IN (
	SELECT level, bucket_at_ns, run_id, kind, reason FROM temp.roll_loss);
INSERT INTO loss (level, bucket_at_ns, run_id, kind, reason, lost, seen, lost_ns)
SELECT level + 1, bucket_at_ns - bucket_at_ns % :to_length_ns AS up_at_ns, run_id, kind,
	reason, sum(lost), sum(seen), sum(lost_ns)
FROM temp.roll_loss
WHERE true
GROUP BY up_at_ns, run_id, kind, reason
ON CONFLICT DO UPDATE SET
	lost = lost + excluded.lost,
	seen = seen + excluded.seen,
	lost_ns = lost_ns + excluded.lost_ns;
