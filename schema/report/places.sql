-- SPDX-License-Identifier: Apache-2.0
-- the functions of one name, and the files they are in
-- samples are access samples, of all selected.
SELECT f.name AS function, m.name AS module, m.path, lower(hex(m.build_id)) AS build_id,
	f.bytes, f.va AS function_va, sf.path AS file, f.line,
	coalesce((SELECT sum(samples) FROM v_access
		WHERE v_access.module_id = f.module_id AND v_access.function_va = f.va
			AND bucket_at_ns > coalesce(:since_ns, 0) - length_ns
			AND (:run_id IS NULL OR run_id = :run_id)), 0) AS samples,
	f.module_id
FROM function AS f JOIN module AS m USING (module_id)
LEFT JOIN source_file AS sf USING (file_id)
WHERE f.name = :function AND (:module IS NULL OR :module IN (m.name, m.path))
ORDER BY samples DESC, m.name, f.va
LIMIT coalesce(:limit, -1);
