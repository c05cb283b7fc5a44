-- SPDX-License-Identifier: Apache-2.0
-- What one address lacks: a symbol; an answer of the present analyser.
SELECT
	NOT EXISTS (SELECT 1 FROM site WHERE module_id = :module_id AND va = :va),
	NOT EXISTS (SELECT 1 FROM answer WHERE module_id = :module_id AND va = :va
		AND skid = :skid AND analyser_version = :analyser_version);
