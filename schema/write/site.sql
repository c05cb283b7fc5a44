-- SPDX-License-Identifier: Apache-2.0
INSERT INTO site (module_id, va, run_id, function_va, file_id, line)
VALUES (:module_id, :va, :run_id, :function_va, :file_id, :line)
ON CONFLICT (module_id, va) DO UPDATE SET
	run_id = excluded.run_id, function_va = excluded.function_va,
	file_id = excluded.file_id, line = excluded.line
WHERE run_id <> excluded.run_id OR function_va <> excluded.function_va
	OR line <> excluded.line;
