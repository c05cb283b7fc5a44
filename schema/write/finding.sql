-- SPDX-License-Identifier: Apache-2.0
INSERT OR REPLACE INTO finding (run_id, finding_id, pid, class, resource_id, resource,
	object, score, since_at_ns, until_at_ns, seen_at_ns, text)
VALUES (:run_id, :finding_id, :pid, :class, :resource_id, :resource, :object, :score,
	:since_at_ns, nullif(:until_at_ns, 0), :seen_at_ns, :text);
