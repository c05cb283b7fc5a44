-- SPDX-License-Identifier: Apache-2.0
SELECT level, bucket_at_ns, run_id, kind, reason
FROM loss
WHERE (level, bucket_at_ns, run_id, kind, reason) > (?1, ?2, ?3, ?4, ?5)
ORDER BY level, bucket_at_ns, run_id, kind, reason
LIMIT :batch;
