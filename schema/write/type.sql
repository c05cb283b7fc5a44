-- SPDX-License-Identifier: Apache-2.0
INSERT INTO type (type_id, run_id, name, bytes) VALUES (:type_id, :run_id, :name, :bytes)
ON CONFLICT (type_id) DO UPDATE SET run_id = excluded.run_id
WHERE run_id <> excluded.run_id;
