-- SPDX-License-Identifier: Apache-2.0
INSERT INTO function (module_id, va, run_id, bytes, name, file_id, line)
VALUES (:module_id, :va, :run_id, :bytes, :name, :file_id, :line)
ON CONFLICT (module_id, va) DO UPDATE SET
	run_id = excluded.run_id, bytes = excluded.bytes, name = excluded.name,
	file_id = excluded.file_id, line = excluded.line
WHERE run_id <> excluded.run_id OR name <> excluded.name OR line <> excluded.line;
