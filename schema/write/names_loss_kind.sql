-- SPDX-License-Identifier: Apache-2.0
INSERT OR REPLACE INTO loss_kind (kind, name) VALUES (:kind, :name);
