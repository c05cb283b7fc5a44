-- SPDX-License-Identifier: Apache-2.0
INSERT OR IGNORE INTO method (method_id, framework, name)
VALUES (:method_id, :framework, :name);
