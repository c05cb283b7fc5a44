-- SPDX-License-Identifier: Apache-2.0
INSERT OR REPLACE INTO loss_reason (reason, name) VALUES (:reason, :name);
