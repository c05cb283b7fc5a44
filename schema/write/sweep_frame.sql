-- SPDX-License-Identifier: Apache-2.0
-- A frame goes when no stack ends in it and no other frame was called from it.
DELETE FROM frame
WHERE frame_id = ?1
	AND NOT EXISTS (SELECT 1 FROM stack WHERE stack.frame_id = ?1)
	AND NOT EXISTS (SELECT 1 FROM frame AS callee WHERE callee.parent_id = ?1)
RETURNING parent_id;
