-- SPDX-License-Identifier: Apache-2.0
INSERT OR REPLACE INTO verdict (verdict, name, text, is_claim)
VALUES (:verdict, :name, :text, :is_claim);
