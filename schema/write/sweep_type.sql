-- SPDX-License-Identifier: Apache-2.0
DELETE FROM field WHERE type_id = ?1;
DELETE FROM type WHERE type_id = ?1;
