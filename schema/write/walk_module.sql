-- SPDX-License-Identifier: Apache-2.0
SELECT module_id, run_id FROM module WHERE module_id > ?1
ORDER BY module_id LIMIT :batch;
