-- SPDX-License-Identifier: Apache-2.0
INSERT OR REPLACE INTO source (source, name, skid) VALUES (:source, :name, :skid);
