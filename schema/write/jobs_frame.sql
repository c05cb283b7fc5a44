-- SPDX-License-Identifier: Apache-2.0
SELECT frame.module_id, frame.va, 0, 1, 0, 0
FROM frame
LEFT JOIN site ON site.module_id = frame.module_id AND site.va = frame.va
WHERE frame.module_id <> 0 AND (:module_id = 0 OR frame.module_id = :module_id)
	AND site.va IS NULL
GROUP BY frame.module_id, frame.va
LIMIT :limit;
