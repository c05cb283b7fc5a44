-- SPDX-License-Identifier: Apache-2.0
DELETE FROM module WHERE module_id = ?1;
