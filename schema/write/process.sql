-- SPDX-License-Identifier: Apache-2.0
INSERT INTO process (process_id, run_id, parent_id, pid, uid, start_boot_ns, end_boot_ns,
	exe_module_id, cgroup_id, comm, exe, service, seen_at_ns)
VALUES (:process_id, :run_id, :parent_id, :pid, :uid, :start_boot_ns,
	nullif(:end_boot_ns, 0), :exe_module_id, :cgroup_id, :comm, :exe, :service,
	:seen_at_ns)
ON CONFLICT (process_id) DO UPDATE SET
	run_id = excluded.run_id,
	parent_id = coalesce(nullif(excluded.parent_id, 0), parent_id),
	pid = coalesce(nullif(excluded.pid, 0), pid),
	uid = max(excluded.uid, CASE excluded.comm WHEN '' THEN uid ELSE 0 END),
	start_boot_ns = coalesce(nullif(excluded.start_boot_ns, 0), start_boot_ns),
	end_boot_ns = coalesce(excluded.end_boot_ns, end_boot_ns),
	exe_module_id = coalesce(nullif(excluded.exe_module_id, 0), exe_module_id),
	cgroup_id = coalesce(nullif(excluded.cgroup_id, 0), cgroup_id),
	comm = coalesce(nullif(excluded.comm, ''), comm),
	exe = coalesce(nullif(excluded.exe, ''), exe),
	service = coalesce(nullif(excluded.service, ''), service),
	seen_at_ns = excluded.seen_at_ns;
