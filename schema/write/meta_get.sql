-- SPDX-License-Identifier: Apache-2.0
SELECT value FROM meta WHERE key = :key;
