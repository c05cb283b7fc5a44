-- SPDX-License-Identifier: Apache-2.0
-- how the access samples were explained, and why the others were not
-- share_of_all is of all access samples selected. Where is_typed is 0, verdict is the
-- reason; none means not analysed yet,
-- below-confidence that the answer is less sure than min_confidence.
WITH hit AS MATERIALIZED (
	SELECT CASE WHEN is_typed AND confidence < coalesce(:min_confidence, 0)
			THEN 'below-confidence' ELSE verdict END AS reason,
		min(is_typed AND confidence >= coalesce(:min_confidence, 0)) AS is_typed,
		sum(samples) AS samples
	FROM v_access
	WHERE bucket_at_ns > coalesce(:since_ns, 0) - length_ns
		AND (:run_id IS NULL OR run_id = :run_id)
		AND (:pid IS NULL OR pid = :pid)
		AND (:process IS NULL OR process = :process)
		AND (:method IS NULL OR method = :method)
	GROUP BY reason
)
SELECT hit.reason AS verdict, hit.is_typed, hit.samples,
	hit.samples * 1.0 / (SELECT sum(samples) FROM hit) AS share_of_all,
	CASE hit.reason WHEN 'below-confidence'
		THEN 'the answer is less sure than asked for' ELSE verdict.text END AS text
FROM hit LEFT JOIN verdict ON verdict.name = hit.reason
ORDER BY hit.is_typed DESC, hit.samples DESC, hit.reason
LIMIT coalesce(:limit, -1);
