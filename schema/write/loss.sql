-- SPDX-License-Identifier: Apache-2.0
INSERT INTO loss (level, bucket_at_ns, run_id, kind, reason, lost, seen, lost_ns)
VALUES (0, :bucket_at_ns, :run_id, :kind, :reason, :lost, :seen, :lost_ns)
ON CONFLICT DO UPDATE SET
	lost = lost + excluded.lost,
	seen = seen + excluded.seen,
	lost_ns = lost_ns + excluded.lost_ns;
