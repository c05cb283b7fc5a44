-- SPDX-License-Identifier: Apache-2.0
DELETE FROM function WHERE module_id = ?1 AND va = ?2;
