-- SPDX-License-Identifier: Apache-2.0
DELETE FROM answer WHERE module_id = ?1 AND va = ?2 AND skid = ?3;
