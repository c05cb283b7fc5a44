-- SPDX-License-Identifier: Apache-2.0
SELECT module_id, va, run_id FROM function
WHERE (module_id, va) > (?1, ?2) ORDER BY module_id, va LIMIT :batch;
