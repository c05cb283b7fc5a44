-- SPDX-License-Identifier: Apache-2.0
-- CPU time by call path, folded: one line per path, root first
-- Frames are joined by semicolons after the name of the process. _[k] marks the kernel's
-- frames, [cut] a walk that did not reach the root, MODULE+0xVA a frame without symbol.
WITH RECURSIVE hit AS MATERIALIZED (
	SELECT t.process_id, t.stack_id, sum(t.samples) AS samples, sum(t.cpu_ns) AS cpu_ns
	FROM bucket_level AS l
	CROSS JOIN tick AS t ON t.level = l.level
	LEFT JOIN process AS p ON p.process_id = t.process_id
	LEFT JOIN method AS m ON m.method_id = t.method_id
	WHERE t.bucket_at_ns > coalesce(:since_ns, 0) - l.length_ns
		AND (:run_id IS NULL OR t.run_id = :run_id)
		AND (:pid IS NULL OR p.pid = :pid)
		AND (:process IS NULL OR p.comm = :process)
		AND (:method IS NULL OR m.name = :method)
	GROUP BY t.process_id, t.stack_id
), used (stack_id) AS MATERIALIZED (
	SELECT DISTINCT stack_id FROM hit
), walk (stack_id, kernel_frames, depth, frame_id) AS (
	SELECT stack.stack_id, stack.kernel_frames, 0, stack.frame_id
	FROM used JOIN stack USING (stack_id) WHERE stack.frame_id <> 0
	UNION ALL
	SELECT walk.stack_id, walk.kernel_frames, walk.depth + 1, frame.parent_id
	FROM walk JOIN frame ON frame.frame_id = walk.frame_id
	WHERE frame.parent_id <> 0 AND walk.depth < 512
), label AS MATERIALIZED (
	SELECT frame.frame_id,
		replace(coalesce(function.name, printf('%s+0x%x',
			coalesce(module.name, '[unmapped]'), frame.va)), ';', ':') AS text
	FROM (SELECT DISTINCT frame_id FROM walk) JOIN frame USING (frame_id)
	LEFT JOIN module ON module.module_id = frame.module_id
	LEFT JOIN site ON site.module_id = frame.module_id AND site.va = frame.va
	LEFT JOIN function ON function.module_id = frame.module_id
		AND function.va = site.function_va
), path AS MATERIALIZED (
	SELECT stack_id, group_concat(text, ';') AS text
	FROM (SELECT walk.stack_id,
			label.text || CASE WHEN walk.depth < walk.kernel_frames THEN '_[k]'
				ELSE '' END AS text
		FROM walk JOIN label USING (frame_id)
		ORDER BY walk.stack_id, walk.depth DESC)
	GROUP BY stack_id
)
SELECT replace(coalesce(nullif(p.comm, ''), '?'), ';', ':')
		|| CASE WHEN coalesce(stack.complete, 0) THEN '' ELSE ';[cut]' END
		|| coalesce(';' || path.text, '') AS folded,
	sum(hit.samples) AS samples, sum(hit.cpu_ns) AS cpu_ns,
	sum(hit.cpu_ns) * 1.0
		/ nullif((SELECT sum(cpu_ns) FROM hit), 0) AS share_of_cpu
FROM hit
LEFT JOIN process AS p ON p.process_id = hit.process_id
LEFT JOIN stack ON stack.stack_id = hit.stack_id
LEFT JOIN path ON path.stack_id = hit.stack_id
GROUP BY folded
ORDER BY samples DESC, folded
LIMIT coalesce(:limit, -1);
