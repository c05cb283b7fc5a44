-- SPDX-License-Identifier: Apache-2.0
SELECT run_id, coalesce(end_at_ns, 0) FROM run WHERE run_id > ?1
ORDER BY run_id LIMIT :batch;
