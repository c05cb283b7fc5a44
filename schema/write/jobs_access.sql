-- SPDX-License-Identifier: Apache-2.0
-- A sampled address with its source's skid is explained by a site and by an answer of
-- the present analyser.
WITH seen AS (
	SELECT a.module_id, a.va, s.skid, sum(a.samples) AS samples
	FROM access AS a JOIN source AS s ON s.source = a.source
	WHERE a.module_id <> 0 AND (:module_id = 0 OR a.module_id = :module_id)
	GROUP BY a.module_id, a.va, s.skid
), lacking AS (
	SELECT seen.module_id, seen.va, seen.skid, site.va IS NULL AS want_symbol,
		answer.va IS NULL AS want_answer, seen.samples
	FROM seen
	LEFT JOIN site ON site.module_id = seen.module_id AND site.va = seen.va
	LEFT JOIN answer ON answer.module_id = seen.module_id AND answer.va = seen.va
		AND answer.skid = seen.skid
		AND answer.analyser_version = :analyser_version
	WHERE site.va IS NULL OR answer.va IS NULL
	ORDER BY seen.samples DESC
	LIMIT :limit
)
SELECT module_id, va, skid, want_symbol, want_answer, samples
FROM lacking
ORDER BY sum(samples) OVER (PARTITION BY module_id) DESC, module_id, samples DESC;
