-- SPDX-License-Identifier: Apache-2.0
SELECT type_id, run_id FROM type WHERE type_id > ?1 ORDER BY type_id LIMIT :batch;
