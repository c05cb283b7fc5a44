-- SPDX-License-Identifier: Apache-2.0
INSERT OR IGNORE INTO field (field_id, type_id, offset_bytes, bytes, path)
VALUES (:field_id, :type_id, :offset_bytes, :bytes, :path);
