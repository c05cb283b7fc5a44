-- SPDX-License-Identifier: Apache-2.0
SELECT frame_id, module_id, va FROM frame WHERE frame_id > ?1
ORDER BY frame_id LIMIT :batch;
