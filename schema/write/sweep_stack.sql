-- SPDX-License-Identifier: Apache-2.0
DELETE FROM stack WHERE stack_id = ?1;
