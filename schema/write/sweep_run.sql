-- SPDX-License-Identifier: Apache-2.0
DELETE FROM run WHERE run_id = ?1;
