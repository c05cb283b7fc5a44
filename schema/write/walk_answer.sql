-- SPDX-License-Identifier: Apache-2.0
SELECT module_id, va, skid, run_id, type_id FROM answer
WHERE (module_id, va, skid) > (?1, ?2, ?3) ORDER BY module_id, va, skid LIMIT :batch;
