-- SPDX-License-Identifier: Apache-2.0
DELETE FROM answer
WHERE module_id = :module_id
	AND verdict = (SELECT verdict FROM verdict WHERE name = 'no-debug');
DELETE FROM site WHERE module_id = :module_id AND (function_va = 0 OR file_id = 0);
