-- SPDX-License-Identifier: Apache-2.0
INSERT OR IGNORE INTO stack (stack_id, run_id, frame_id, frames, kernel_frames, complete,
	seen_at_ns)
VALUES (:stack_id, :run_id, :frame_id, :frames, :kernel_frames, :complete, :seen_at_ns);
