-- SPDX-License-Identifier: Apache-2.0
INSERT OR IGNORE INTO frame (frame_id, parent_id, module_id, va)
VALUES (:frame_id, :parent_id, :module_id, :va);
