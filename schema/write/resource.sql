-- SPDX-License-Identifier: Apache-2.0
INSERT OR REPLACE INTO resource (resource_id, spec, name, title, kind, unit, capacity)
VALUES (:resource_id, :spec, :name, :title, :kind, :unit, nullif(:capacity, 0));
