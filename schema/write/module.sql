-- SPDX-License-Identifier: Apache-2.0
INSERT INTO module (module_id, run_id, kind, build_id, name, path, debug)
VALUES (:module_id, :run_id, :kind, :build_id, :name, :path, :debug)
ON CONFLICT (module_id) DO UPDATE SET
	run_id = excluded.run_id,
	kind = coalesce(nullif(excluded.kind, 0), kind),
	build_id = coalesce(nullif(excluded.build_id, x''), build_id),
	name = coalesce(nullif(excluded.name, ''), name),
	path = coalesce(nullif(excluded.path, ''), path),
	debug = coalesce(nullif(excluded.debug, ''), debug);
