-- SPDX-License-Identifier: Apache-2.0
-- the figures of one run: the one given, or else the newest
-- share_typed is of the access samples stored; share_of_access_lost and share_of_ticks_lost
-- of those stored and those lost together. database_bytes are pages in use.
WITH run_now AS MATERIALIZED (
	SELECT * FROM run WHERE :run_id IS NULL OR run_id = :run_id
	ORDER BY start_at_ns DESC LIMIT 1
), hit AS MATERIALIZED (
	SELECT coalesce(sum(samples), 0) AS samples,
		coalesce(sum(samples) FILTER (WHERE is_typed), 0) AS typed,
		coalesce(sum(samples) FILTER (WHERE verdict = 'none'), 0) AS open,
		count(DISTINCT nullif(type_id, 0)) AS types
	FROM v_access WHERE run_id = (SELECT run_id FROM run_now)
), ticks AS MATERIALIZED (
	SELECT coalesce(sum(samples), 0) AS samples, coalesce(sum(cpu_ns), 0) AS cpu_ns
	FROM tick WHERE run_id = (SELECT run_id FROM run_now)
), gone AS MATERIALIZED (
	SELECT coalesce(sum(lost) FILTER (WHERE kind = 'access'), 0) AS access,
		coalesce(sum(lost) FILTER (WHERE kind = 'tick'), 0) AS tick
	FROM v_loss
	WHERE run_id = (SELECT run_id FROM run_now) AND reason <> 'reorder'
)
SELECT r.run_id, r.start_at_ns, r.end_at_ns,
	(SELECT value FROM meta WHERE key = 'flush_at_ns') AS flush_at_ns,
	r.target, r.sources, r.host, r.kernel, r.version, hit.samples AS access_samples,
	hit.typed AS typed_samples, hit.typed * 1.0 / nullif(hit.samples, 0) AS share_typed,
	hit.open AS unanalysed_samples, gone.access AS lost_access,
	gone.access * 1.0 / nullif(hit.samples + gone.access, 0) AS share_of_access_lost,
	ticks.samples AS tick_samples, ticks.cpu_ns, gone.tick AS lost_ticks,
	gone.tick * 1.0 / nullif(ticks.samples + gone.tick, 0) AS share_of_ticks_lost,
	(SELECT count(*) FROM process WHERE process.run_id = r.run_id) AS processes,
	(SELECT count(*) FROM module WHERE module.run_id = r.run_id) AS modules,
	hit.types,
	((SELECT page_count FROM pragma_page_count())
		- (SELECT freelist_count FROM pragma_freelist_count()))
		* (SELECT page_size FROM pragma_page_size()) AS database_bytes
FROM run_now AS r, hit, ticks, gone;
