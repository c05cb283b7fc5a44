-- SPDX-License-Identifier: Apache-2.0
-- the sampled instructions of one function
-- va is where samples fell, insn_va the memory instruction that they are counted for: the
-- same unless is_skid. function_va and module_id name the function.
SELECT va, insn_va, skid AS is_skid, samples, loads, stores,
	weight_cycles * 1.0 / nullif(weight_samples, 0) AS mean_cycles, type, field,
	offset_bytes, verdict, confidence, file, line
FROM (
	SELECT a.va, coalesce(nullif(an.insn_va, 0), a.va) AS insn_va,
		coalesce(an.skid, 0) AS skid, sum(a.samples) AS samples,
		sum(a.loads) AS loads, sum(a.stores) AS stores,
		sum(a.weight_samples) AS weight_samples,
		sum(a.weight_cycles) AS weight_cycles, a.type, a.field, a.offset_bytes,
		a.verdict, a.confidence, a.file, a.line
	FROM v_access AS a
	LEFT JOIN source AS s ON s.name = a.source
	LEFT JOIN answer AS an ON an.module_id = a.module_id AND an.va = a.va
		AND an.skid = coalesce(s.skid, 0)
	WHERE a.module_id = :module_id AND a.function_va = :function_va
		AND a.bucket_at_ns > coalesce(:since_ns, 0) - a.length_ns
		AND (:run_id IS NULL OR a.run_id = :run_id)
	GROUP BY a.va, insn_va, a.verdict
)
ORDER BY va, insn_va
LIMIT coalesce(:limit, -1);
