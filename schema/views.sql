-- SPDX-License-Identifier: Apache-2.0
-- The public interface for SQL users: `assay sql "SELECT * FROM v_type LIMIT 10"`.
--
-- *_id is a 64-bit number, shown as 0x...; SQL accepts it in that form. *_at_ns is a
-- moment (ns since 1970), other *_ns are durations. share_of_X is 0 to 1, and X is what
-- it is a share of. A module_id with a va is an instruction in a file's own addresses.

-- v_run: one start of the agent, or one attach
--   run_id          which run
--   start_at_ns     when it began
--   end_at_ns       when it ended; NULL while it runs
--   host            name of the machine
--   boot_id         the kernel's id of this boot
--   kernel          release of the kernel
--   version         of assay
--   target          what was watched: "all", "pid 1234", "service nginx"
--   sources         what sampled: "clock 997 Hz"
--   access_samples  memory access samples stored
--   tick_samples    CPU ticks stored
--   lost_samples    access samples and ticks that were lost, for any reason
CREATE VIEW v_run AS
SELECT run.run_id, run.start_at_ns, run.end_at_ns, run.host, run.boot_id, run.kernel,
	run.version, run.target, run.sources,
	coalesce(a.samples, 0) AS access_samples,
	coalesce(t.samples, 0) AS tick_samples,
	coalesce(l.lost, 0) AS lost_samples
FROM run
LEFT JOIN (SELECT run_id, sum(samples) AS samples FROM access GROUP BY run_id) AS a
	ON a.run_id = run.run_id
LEFT JOIN (SELECT run_id, sum(samples) AS samples FROM tick GROUP BY run_id) AS t
	ON t.run_id = run.run_id
LEFT JOIN (SELECT run_id, sum(lost) AS lost FROM loss JOIN loss_kind USING (kind)
	JOIN loss_reason USING (reason)
	WHERE loss_kind.name IN ('access', 'tick') AND loss_reason.name <> 'reorder'
	GROUP BY run_id) AS l
	ON l.run_id = run.run_id;

-- v_access: memory access samples, one row per time bucket and instruction
--   run_id          which run
--   bucket_at_ns    begin of the bucket
--   length_ns       its length: 1 s, and 10 s, 1 min, 1 h as it grows old
--   process_id      which process
--   pid             its number
--   process         its command name
--   service         unit or container it belongs to; '' unknown
--   module_id       file of the instruction
--   module          its name
--   va              the sampled address
--   function_va     begin of the function; NULL unknown
--   function        its name; NULL unknown
--   file            source file; NULL unknown
--   line            source line; 0 unknown
--   source          what sampled: clock, ibs, pebs-load, ...
--   method          kind of request that was served; '' none
--   samples         how many samples
--   period          events they stand for; ns of CPU for the clock
--   loads           samples of loads, as the CPU or else the instruction says
--   stores          samples of stores, likewise
--   weight_samples  samples that had a latency
--   weight_cycles   sum of their latencies
--   l1              samples served by the first cache level
--   l2              by the second
--   l3              by the third
--   dram            by memory
--   remote          by another socket
--   tlb_miss        samples that missed the first TLB
--   hitm            samples of lines that another core had modified: sharing
--   type_id         which type; 0 none
--   type            its name; NULL none
--   field           path of the field in it; NULL none
--   offset_bytes    accessed offset in the type
--   verdict         how the type was found, or why it was not
--   is_typed        1: a type is named
--   confidence      calibrated probability that the answer is right; 0 without
CREATE VIEW v_access AS
SELECT a.run_id, a.bucket_at_ns, l.length_ns, a.process_id, p.pid, p.comm AS process,
	p.service, a.module_id, m.name AS module, a.va,
	nullif(site.function_va, 0) AS function_va, f.name AS function,
	sf.path AS file, coalesce(site.line, 0) AS line, s.name AS source,
	coalesce(me.name, '') AS method, a.samples, a.period,
	CASE WHEN a.loads + a.stores > 0 THEN a.loads
		WHEN an.access_kind & 1 THEN a.samples ELSE 0 END AS loads,
	CASE WHEN a.loads + a.stores > 0 THEN a.stores
		WHEN an.access_kind & 2 THEN a.samples ELSE 0 END AS stores,
	a.weight_samples, a.weight_cycles, a.l1, a.l2, a.l3, a.dram, a.remote, a.tlb_miss,
	a.hitm, coalesce(an.type_id, 0) AS type_id, ty.name AS type, fi.path AS field,
	coalesce(an.offset_bytes, 0) AS offset_bytes,
	coalesce(v.name, 'none') AS verdict, coalesce(v.is_claim, 0) AS is_typed,
	coalesce(an.confidence, 0.0) AS confidence
FROM bucket_level AS l
CROSS JOIN access AS a ON a.level = l.level
LEFT JOIN source AS s ON s.source = a.source
LEFT JOIN answer AS an ON an.module_id = a.module_id AND an.va = a.va
	AND an.skid = coalesce(s.skid, 0)
LEFT JOIN verdict AS v ON v.verdict = an.verdict
LEFT JOIN type AS ty ON ty.type_id = an.type_id
LEFT JOIN field AS fi ON fi.field_id = an.field_id
LEFT JOIN process AS p ON p.process_id = a.process_id
LEFT JOIN module AS m ON m.module_id = a.module_id
LEFT JOIN site ON site.module_id = a.module_id AND site.va = a.va
LEFT JOIN function AS f ON f.module_id = a.module_id AND f.va = site.function_va
LEFT JOIN source_file AS sf ON sf.file_id = site.file_id
LEFT JOIN method AS me ON me.method_id = a.method_id;

-- v_type: the types that memory accesses go to
--   run_id          which run
--   type_id         which type
--   type            its name
--   bytes           its size
--   samples         access samples that fell on it
--   share_of_all    of all access samples of the run, typed or not
--   share_of_typed  of the access samples of the run that have a type
--   loads           samples of loads
--   stores          samples of stores
--   weight_samples  samples that had a latency
--   mean_cycles     their mean latency; NULL without any
--   l1              samples served by the first cache level
--   l2              by the second
--   l3              by the third
--   dram            by memory
--   remote          by another socket
--   tlb_miss        samples that missed the first TLB
--   hitm            samples of lines that another core had modified
--   confidence      mean over the samples
CREATE VIEW v_type AS
WITH hit AS MATERIALIZED (
	SELECT run_id, type_id, type, sum(samples) AS samples, sum(loads) AS loads,
		sum(stores) AS stores, sum(weight_samples) AS weight_samples,
		sum(weight_cycles) AS weight_cycles, sum(l1) AS l1, sum(l2) AS l2,
		sum(l3) AS l3, sum(dram) AS dram, sum(remote) AS remote,
		sum(tlb_miss) AS tlb_miss, sum(hitm) AS hitm,
		sum(confidence * samples) AS sure
	FROM v_access GROUP BY run_id, type_id
), total AS (
	SELECT run_id, sum(samples) AS samples,
		sum(samples) FILTER (WHERE type_id <> 0) AS typed
	FROM hit GROUP BY run_id
)
SELECT hit.run_id, hit.type_id, hit.type, type.bytes, hit.samples,
	hit.samples * 1.0 / total.samples AS share_of_all,
	hit.samples * 1.0 / total.typed AS share_of_typed,
	hit.loads, hit.stores, hit.weight_samples,
	hit.weight_cycles * 1.0 / nullif(hit.weight_samples, 0) AS mean_cycles,
	hit.l1, hit.l2, hit.l3, hit.dram, hit.remote, hit.tlb_miss, hit.hitm,
	hit.sure / hit.samples AS confidence
FROM hit JOIN total USING (run_id) LEFT JOIN type USING (type_id)
WHERE hit.type_id <> 0
ORDER BY hit.samples DESC;

-- v_field: the fields that memory accesses go to
--   run_id          which run
--   type_id         which type
--   type            its name
--   field_id        which field; 0: the type is known, the field is not
--   field           its path in the type
--   offset_bytes    where it begins in the type
--   bytes           its size
--   samples         access samples that fell on it
--   share_of_all    of all access samples of the run, typed or not
--   share_of_type   of the samples of this type in the run
--   loads           samples of loads
--   stores          samples of stores
--   weight_samples  samples that had a latency
--   mean_cycles     their mean latency; NULL without any
--   dram            samples served by memory
--   tlb_miss        samples that missed the first TLB
--   hitm            samples of lines that another core had modified
--   confidence      mean over the samples
CREATE VIEW v_field AS
WITH hit AS MATERIALIZED (
	SELECT a.run_id, coalesce(an.type_id, 0) AS type_id,
		coalesce(an.field_id, 0) AS field_id, sum(a.samples) AS samples,
		sum(CASE WHEN a.loads + a.stores > 0 THEN a.loads
			WHEN an.access_kind & 1 THEN a.samples ELSE 0 END) AS loads,
		sum(CASE WHEN a.loads + a.stores > 0 THEN a.stores
			WHEN an.access_kind & 2 THEN a.samples ELSE 0 END) AS stores,
		sum(a.weight_samples) AS weight_samples,
		sum(a.weight_cycles) AS weight_cycles, sum(a.dram) AS dram,
		sum(a.tlb_miss) AS tlb_miss, sum(a.hitm) AS hitm,
		sum(an.confidence * a.samples) AS sure
	FROM access AS a
	LEFT JOIN source AS s ON s.source = a.source
	LEFT JOIN answer AS an ON an.module_id = a.module_id AND an.va = a.va
		AND an.skid = coalesce(s.skid, 0)
	GROUP BY a.run_id, an.type_id, an.field_id
), total AS (
	SELECT run_id, sum(samples) AS samples FROM hit GROUP BY run_id
), of_type AS (
	SELECT run_id, type_id, sum(samples) AS samples FROM hit GROUP BY run_id, type_id
)
SELECT hit.run_id, hit.type_id, type.name AS type, hit.field_id, field.path AS field,
	field.offset_bytes, field.bytes, hit.samples,
	hit.samples * 1.0 / total.samples AS share_of_all,
	hit.samples * 1.0 / of_type.samples AS share_of_type,
	hit.loads, hit.stores, hit.weight_samples,
	hit.weight_cycles * 1.0 / nullif(hit.weight_samples, 0) AS mean_cycles,
	hit.dram, hit.tlb_miss, hit.hitm, hit.sure / hit.samples AS confidence
FROM hit JOIN total USING (run_id) JOIN of_type USING (run_id, type_id)
LEFT JOIN type USING (type_id)
LEFT JOIN field ON field.field_id = hit.field_id
WHERE hit.type_id <> 0
ORDER BY hit.samples DESC;

-- v_function: the functions that access memory
--   run_id          which run
--   module_id       file of the function
--   module          its name
--   function_va     begin of the function; NULL unknown
--   function        its name; NULL unknown
--   file            source file; NULL unknown
--   samples         access samples in it
--   share_of_all    of all access samples of the run
--   typed_samples   samples in it that have a type
--   share_typed     of the samples in this function
--   mean_cycles     mean latency of those that had one
CREATE VIEW v_function AS
WITH hit AS MATERIALIZED (
	SELECT run_id, module_id, module, function_va, function, file,
		sum(samples) AS samples,
		sum(samples) FILTER (WHERE is_typed) AS typed_samples,
		sum(weight_samples) AS weight_samples, sum(weight_cycles) AS weight_cycles
	FROM v_access GROUP BY run_id, module_id, function_va
), total AS (
	SELECT run_id, sum(samples) AS samples FROM hit GROUP BY run_id
)
SELECT hit.run_id, hit.module_id, hit.module, hit.function_va, hit.function, hit.file,
	hit.samples, hit.samples * 1.0 / total.samples AS share_of_all,
	coalesce(hit.typed_samples, 0) AS typed_samples,
	coalesce(hit.typed_samples, 0) * 1.0 / hit.samples AS share_typed,
	hit.weight_cycles * 1.0 / nullif(hit.weight_samples, 0) AS mean_cycles
FROM hit JOIN total USING (run_id)
ORDER BY hit.samples DESC;

-- v_frame: the frames of each stack, leaf first
--   stack_id        which stack
--   depth           0 is the leaf
--   is_kernel       1: a frame of the kernel
--   module_id       file of the frame; 0 unmapped
--   module          its name; NULL unmapped
--   va              address in the file; of the return, except at the leaf
--   function        name of the function; NULL unknown
--   file            source file; NULL unknown
--   line            source line; 0 unknown
CREATE VIEW v_frame AS
WITH RECURSIVE walk (stack_id, kernel_frames, depth, frame_id) AS (
	SELECT stack_id, kernel_frames, 0, frame_id FROM stack WHERE frame_id <> 0
	UNION ALL
	SELECT walk.stack_id, walk.kernel_frames, walk.depth + 1, frame.parent_id
	FROM walk JOIN frame ON frame.frame_id = walk.frame_id
	WHERE frame.parent_id <> 0 AND walk.depth < 512
)
SELECT walk.stack_id, walk.depth, walk.depth < walk.kernel_frames AS is_kernel,
	frame.module_id, module.name AS module, frame.va,
	function.name AS function, source_file.path AS file,
	coalesce(site.line, 0) AS line
FROM walk JOIN frame ON frame.frame_id = walk.frame_id
LEFT JOIN module ON module.module_id = frame.module_id
LEFT JOIN site ON site.module_id = frame.module_id AND site.va = frame.va
LEFT JOIN function ON function.module_id = frame.module_id
	AND function.va = site.function_va
LEFT JOIN source_file ON source_file.file_id = site.file_id;

-- v_stack: CPU time by call path
--   run_id          which run
--   process_id      which process
--   pid             its number
--   process         its command name
--   stack_id        which stack
--   function        name of the leaf; NULL unknown
--   frames          how many frames
--   is_complete     1: the walk reached the root
--   samples         ticks
--   cpu_ns          CPU time they stand for
--   share_of_cpu    of the CPU time of all stacks of the run
CREATE VIEW v_stack AS
WITH hit AS MATERIALIZED (
	SELECT run_id, process_id, stack_id, sum(samples) AS samples, sum(cpu_ns) AS cpu_ns
	FROM tick GROUP BY run_id, process_id, stack_id
), total AS (
	SELECT run_id, sum(cpu_ns) AS cpu_ns FROM hit GROUP BY run_id
)
SELECT hit.run_id, hit.process_id, process.pid, process.comm AS process, hit.stack_id,
	function.name AS function, stack.frames, stack.complete AS is_complete,
	hit.samples, hit.cpu_ns, hit.cpu_ns * 1.0 / nullif(total.cpu_ns, 0) AS share_of_cpu
FROM hit JOIN total USING (run_id)
LEFT JOIN process USING (process_id)
LEFT JOIN stack USING (stack_id)
LEFT JOIN frame ON frame.frame_id = stack.frame_id
LEFT JOIN site ON site.module_id = frame.module_id AND site.va = frame.va
LEFT JOIN function ON function.module_id = frame.module_id
	AND function.va = site.function_va
ORDER BY hit.cpu_ns DESC;

-- v_process: the processes that were seen
--   process_id      which process
--   run_id          the last run that saw it
--   parent_id       the process that forked it; 0 unknown
--   pid             its number
--   uid             of its user
--   process         its command name
--   exe             path of its program
--   service         unit or container it belongs to; '' unknown
--   start_boot_ns   when it started, since boot
--   end_boot_ns     when it ended; NULL while it lives
--   samples         access samples, over all runs
--   cpu_ns          CPU time of its ticks, over all runs
CREATE VIEW v_process AS
SELECT p.process_id, p.run_id, p.parent_id, p.pid, p.uid, p.comm AS process, p.exe,
	p.service, p.start_boot_ns, p.end_boot_ns, coalesce(a.samples, 0) AS samples,
	coalesce(t.cpu_ns, 0) AS cpu_ns
FROM process AS p
LEFT JOIN (SELECT process_id, sum(samples) AS samples FROM access GROUP BY process_id)
	AS a ON a.process_id = p.process_id
LEFT JOIN (SELECT process_id, sum(cpu_ns) AS cpu_ns FROM tick GROUP BY process_id) AS t
	ON t.process_id = p.process_id;

-- v_module: the files whose code was sampled
--   module_id       which file
--   run_id          the last run that saw it
--   kind            file, vdso, kernel or kmod
--   module          its name
--   path            where it was
--   build_id        hexadecimal; '' none
--   debug           where its debug information is, or why there is none
--   samples         access samples in it, over all runs
--   typed_samples   those that have a type
--   share_typed     of the access samples in this file; NULL without any
CREATE VIEW v_module AS
SELECT m.module_id, m.run_id,
	CASE m.kind WHEN 1 THEN 'file' WHEN 2 THEN 'vdso' WHEN 3 THEN 'kernel'
		WHEN 4 THEN 'kmod' ELSE 'unknown' END AS kind,
	m.name AS module, m.path, lower(hex(m.build_id)) AS build_id, m.debug,
	coalesce(a.samples, 0) AS samples, coalesce(a.typed_samples, 0) AS typed_samples,
	coalesce(a.typed_samples, 0) * 1.0 / a.samples AS share_typed
FROM module AS m
LEFT JOIN (SELECT module_id, sum(samples) AS samples,
		sum(samples) FILTER (WHERE is_typed) AS typed_samples
	FROM v_access GROUP BY module_id) AS a
	ON a.module_id = m.module_id;

-- v_coverage: how the access samples were explained
--   run_id          which run
--   verdict         how the type was found, or why it was not; none: not analysed yet
--   text            the same in a sentence
--   is_typed        1: a type is named
--   samples         access samples
--   share_of_all    of all access samples of the run
CREATE VIEW v_coverage AS
WITH hit AS MATERIALIZED (
	SELECT run_id, verdict, is_typed, sum(samples) AS samples
	FROM v_access GROUP BY run_id, verdict
), total AS (
	SELECT run_id, sum(samples) AS samples FROM hit GROUP BY run_id
)
SELECT hit.run_id, hit.verdict, verdict.text, hit.is_typed, hit.samples,
	hit.samples * 1.0 / total.samples AS share_of_all
FROM hit JOIN total USING (run_id)
LEFT JOIN verdict ON verdict.name = hit.verdict
ORDER BY hit.is_typed DESC, hit.samples DESC;

-- v_loss: what is missing, and why
--   run_id          which run
--   kind            what was lost: access, tick, task, mmap, ...
--   reason          why: ring, no-mapping, unwind, store, crash, ...
--   lost            records lost; estimated after a crash; reorder: late, not lost
--   records         records of that kind in the run, the lost ones included
--   share_of_kind   lost, of those records; NULL when they are not known
--   lost_ns         time that is not covered at all, after a crash
CREATE VIEW v_loss AS
WITH gone AS MATERIALIZED (
	SELECT run_id, kind, reason, sum(lost) AS lost, sum(seen) AS seen,
		sum(lost_ns) AS lost_ns
	FROM loss GROUP BY run_id, kind, reason
), per_kind AS (
	SELECT run_id, kind, max(seen) AS seen,
		sum(lost) FILTER (WHERE reason IS NOT (
			SELECT reason FROM loss_reason WHERE name = 'reorder')) AS lost
	FROM gone GROUP BY run_id, kind
), kept AS (
	SELECT run_id, 'access' AS name, sum(samples) AS samples FROM access GROUP BY run_id
	UNION ALL
	SELECT run_id, 'tick', sum(samples) FROM tick GROUP BY run_id
	UNION ALL
	SELECT run_id, 'span', sum(requests) FROM request GROUP BY run_id
)
SELECT gone.run_id, loss_kind.name AS kind, loss_reason.name AS reason, gone.lost,
	max(coalesce(kept.samples, 0) + coalesce(per_kind.lost, 0),
		per_kind.seen) AS records,
	gone.lost * 1.0 / nullif(max(coalesce(kept.samples, 0)
		+ coalesce(per_kind.lost, 0), per_kind.seen), 0) AS share_of_kind,
	gone.lost_ns
FROM gone JOIN per_kind ON per_kind.run_id = gone.run_id AND per_kind.kind = gone.kind
LEFT JOIN loss_kind ON loss_kind.kind = gone.kind
LEFT JOIN loss_reason ON loss_reason.reason = gone.reason
LEFT JOIN kept ON kept.run_id = gone.run_id AND kept.name = loss_kind.name
ORDER BY gone.lost DESC;

-- v_request: what was asked of the services, by kind of request
--   run_id           which run
--   process_id       which process
--   pid              its number
--   process          its command name
--   service          unit or container it belongs to; '' unknown
--   framework        spec that named it: redis, nginx, ...
--   method           kind of request
--   kind             served here, client: asked of another, batch
--   requests         how many ended while probes were on
--   estimate         how many there were, by the weights
--   estimate_error   its standard error; 0 when all were seen
--   mean_ns          mean duration
--   max_ns           longest duration
--   cpu_ns           CPU of those seen
--   mean_cpu_ns      mean CPU
--   own_cpu_ns       cpu_ns without the calibrated cost of the probes
--   unfinished       that never returned, of those seen
CREATE VIEW v_request AS
WITH hit AS MATERIALIZED (
	SELECT run_id, process_id, method_id, kind, sum(requests) AS requests,
		sum(weight) AS weight, sum(weight2 - weight) AS variance,
		sum(duration_ns) AS duration_ns, max(max_duration_ns) AS max_duration_ns,
		sum(cpu_ns) AS cpu_ns, sum(probe_ns) AS probe_ns,
		sum(unfinished) AS unfinished
	FROM request GROUP BY run_id, process_id, method_id, kind
)
SELECT hit.run_id, hit.process_id, p.pid, p.comm AS process, p.service,
	coalesce(m.framework, '') AS framework, coalesce(m.name, '') AS method,
	CASE hit.kind WHEN 1 THEN 'served' WHEN 2 THEN 'client' ELSE 'batch' END AS kind,
	hit.requests, hit.weight AS estimate, sqrt(max(hit.variance, 0)) AS estimate_error,
	hit.duration_ns * 1.0 / nullif(hit.requests, 0) AS mean_ns,
	hit.max_duration_ns AS max_ns, hit.cpu_ns,
	hit.cpu_ns * 1.0 / nullif(hit.requests, 0) AS mean_cpu_ns,
	max(hit.cpu_ns - hit.probe_ns, 0) AS own_cpu_ns, hit.unfinished
FROM hit
LEFT JOIN process AS p ON p.process_id = hit.process_id
LEFT JOIN method AS m ON m.method_id = hit.method_id
ORDER BY hit.cpu_ns DESC;

-- v_span: some requests one by one
--   run_id           which run
--   span_id          which request or call
--   trace_id         span_id of the request with which it all began
--   parent_id        the request on whose behalf, also in another process; 0 none
--   process_id       which process
--   pid              its number
--   process          its command name
--   service          unit or container it belongs to, else its program
--   tid              thread that saw the end
--   framework        spec that named it
--   method           kind of request
--   kind             served, client, batch
--   begin_at_ns      when it began
--   duration_ns      how long it took
--   cpu_ns           CPU by all threads that worked for it
--   own_cpu_ns       the same without the calibrated cost of the probes
--   weight           how many like it this one stands for
--   flags            enum abi_hit_flags of bpf/abi.h
--   off_cpu_ns       time in which threads that served it did not run
--   in_bytes         received by sockets for it; not those that HTTP/2 calls share
--   out_bytes        sent
--   page_faults      by threads that served it
--   labels           what its spec says of it: hit, miss, empty, error, low, high
--   status           as the application has it; NULL unknown
CREATE VIEW v_span AS
SELECT s.run_id, s.span_id, s.trace_id, s.parent_id, s.process_id, p.pid,
	p.comm AS process, coalesce(nullif(p.service, ''),
		nullif(replace(p.exe, rtrim(p.exe, replace(p.exe, '/', '')), ''), ''),
		p.comm, '') AS service, s.tid,
	coalesce(m.framework, '') AS framework, coalesce(m.name, '') AS method,
	CASE s.kind WHEN 1 THEN 'served' WHEN 2 THEN 'client' ELSE 'batch' END AS kind,
	s.begin_at_ns, s.duration_ns, s.cpu_ns,
	max(s.cpu_ns - s.probe_ns, 0) AS own_cpu_ns, s.weight, s.flags, s.off_cpu_ns,
	s.in_bytes, s.out_bytes, s.page_faults,
	rtrim(iif(s.labels & 1, 'hit ', '') || iif(s.labels & 2, 'miss ', '') ||
		iif(s.labels & 4, 'empty ', '') || iif(s.labels & 8, 'error ', '') ||
		iif(s.labels & 16, 'low ', '') || iif(s.labels & 32, 'high ', '')) AS labels,
	s.status
FROM span AS s
LEFT JOIN process AS p ON p.process_id = s.process_id
LEFT JOIN method AS m ON m.method_id = s.method_id
ORDER BY s.begin_at_ns;

-- v_probe: the probes on applications
--   run_id           which run
--   probe_id         which probe
--   module_id        file of the probed instruction
--   module           its name
--   va               the probed address
--   spec             spec that asked for it
--   name             of the probe in the spec
--   function         what is probed
--   state            on; windows: only in some; cut: cost too much
--   hits             how often it ran
--   skipped          of these for other processes, or a condition did not hold
--   unread           of these with an expression that could not be read
--   dropped          of these without room for the record or context
--   hit_ns           calibrated cost of one hit
--   share_of_target  of the targets' CPU while it is on
--   duty             share of the time in which it is on
--   hot_at_ns        when it last cost too much to stay; NULL never
CREATE VIEW v_probe AS
SELECT probe.run_id, probe.probe_id, probe.module_id, module.name AS module, probe.va,
	probe.spec, probe.name, probe.function, probe.state, probe.hits, probe.skipped,
	probe.unread, probe.dropped, probe.hit_ns, probe.share AS share_of_target,
	probe.duty, probe.hot_at_ns
FROM probe LEFT JOIN module USING (module_id)
ORDER BY probe.hits * probe.hit_ns DESC;

-- v_resource: what happened to the resources of applications, one row per bucket
--   run_id           which run
--   bucket_at_ns     begin of the bucket
--   length_ns        its length: 1 s, and 10 s, 1 min, 1 h as it grows old
--   pid              first process of the application
--   spec             spec that declares the resource
--   resource         its name there
--   title            and for people
--   kind             lock, cache, pool, slots, buffer, log, loop, pin, other
--   unit             of its amounts; '' pieces
--   capacity         NULL unknown
--   wait_ns          time that tasks waited for it, open waits included
--   hold_ns          time that tasks held it, likewise
--   waits            how many waits began
--   acquires         how often it was acquired
--   releases         how often it was given back
--   uses             how often it was used
--   refusals         attempts to acquire it that got nothing
--   max_balance      largest amount held at the end of a bucket
--   max_holders      most tasks that held it then
--   on_ns            how long its probes were on
CREATE VIEW v_resource AS
SELECT b.run_id, b.bucket_at_ns, l.length_ns, b.pid, r.spec, r.name AS resource, r.title,
	r.kind, r.unit, r.capacity, b.wait_ns, b.hold_ns, b.waits, b.acquires, b.releases,
	b.uses, b.refusals, b.max_balance, b.max_holders, b.on_ns
FROM resource_bucket AS b
JOIN bucket_level AS l USING (level)
JOIN resource AS r USING (resource_id)
ORDER BY b.bucket_at_ns;

-- v_finding: what is wrong with which resource
--   run_id           which run
--   finding_id       which finding
--   pid              first process of the application
--   class            contention, inefficient_policy, under_provisioned, ...
--   resource         what it is about
--   object           which one of them
--   score            seconds that are lost in a second
--   since_at_ns      when it began
--   until_at_ns      when it was over; NULL while it goes on
--   seen_at_ns       when it was there last
--   text             the whole finding as JSON, see assay-finding(5)
CREATE VIEW v_finding AS
SELECT run_id, finding_id, pid, class, resource, object, score, since_at_ns, until_at_ns,
	seen_at_ns, text
FROM finding
WHERE text <> ''
ORDER BY score DESC;
