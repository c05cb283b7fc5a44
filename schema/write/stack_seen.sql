-- SPDX-License-Identifier: Apache-2.0
-- Known already: say that it is still in use, but write at most every ten minutes.
UPDATE stack SET run_id = :run_id, seen_at_ns = :seen_at_ns
WHERE stack_id = :stack_id
	AND (run_id <> :run_id OR seen_at_ns < :seen_at_ns - 600000000000);
