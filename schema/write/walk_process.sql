-- SPDX-License-Identifier: Apache-2.0
SELECT process_id, run_id, seen_at_ns, end_boot_ns IS NOT NULL, exe_module_id
FROM process WHERE process_id > ?1 ORDER BY process_id LIMIT :batch;
