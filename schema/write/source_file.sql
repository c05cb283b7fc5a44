-- SPDX-License-Identifier: Apache-2.0
INSERT OR IGNORE INTO source_file (file_id, path) VALUES (:file_id, :path);
