-- SPDX-License-Identifier: Apache-2.0
INSERT OR REPLACE INTO meta (key, value) VALUES (:key, :value);
