-- SPDX-License-Identifier: Apache-2.0
SELECT stack_id, seen_at_ns, frame_id FROM stack WHERE stack_id > ?1
ORDER BY stack_id LIMIT :batch;
