-- SPDX-License-Identifier: Apache-2.0
DELETE FROM process WHERE process_id = ?1;
