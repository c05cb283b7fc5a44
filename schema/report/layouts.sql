-- SPDX-License-Identifier: Apache-2.0
-- the types of one name
-- type is a name, with or without "struct", "union" or "class". module restricts to
-- types that an answer in this file names. samples are of all selected.
WITH named AS (
	SELECT type_id, name, bytes FROM type
	WHERE :type IS NULL
		OR name IN (:type, 'struct ' || :type, 'union ' || :type, 'class ' || :type)
), known AS (
	SELECT DISTINCT type_id, module_id FROM answer
	WHERE type_id IN (SELECT type_id FROM named)
), hit AS (
	SELECT type_id, sum(samples) AS samples FROM v_access
	WHERE type_id IN (SELECT type_id FROM named)
		AND bucket_at_ns > coalesce(:since_ns, 0) - length_ns
		AND (:run_id IS NULL OR run_id = :run_id)
		AND confidence >= coalesce(:min_confidence, 0)
	GROUP BY type_id
)
SELECT named.name AS type, named.bytes, coalesce(hit.samples, 0) AS samples,
	(SELECT group_concat(name, ' ') FROM (SELECT DISTINCT module.name
		FROM known JOIN module USING (module_id)
		WHERE known.type_id = named.type_id ORDER BY module.name)) AS modules,
	(SELECT count(*) FROM field WHERE field.type_id = named.type_id) AS fields,
	named.type_id
FROM named LEFT JOIN hit USING (type_id)
WHERE :module IS NULL OR EXISTS (SELECT 1 FROM known JOIN module USING (module_id)
	WHERE known.type_id = named.type_id AND :module IN (module.name, module.path))
ORDER BY samples DESC, fields DESC, named.type_id
LIMIT coalesce(:limit, -1);
