-- SPDX-License-Identifier: Apache-2.0
-- Rows on their way to the next level.
CREATE TEMP TABLE IF NOT EXISTS roll_access AS SELECT * FROM access LIMIT 0;
CREATE TEMP TABLE IF NOT EXISTS roll_tick AS SELECT * FROM tick LIMIT 0;
CREATE TEMP TABLE IF NOT EXISTS roll_loss AS SELECT * FROM loss LIMIT 0;
CREATE TEMP TABLE IF NOT EXISTS roll_request AS SELECT * FROM request LIMIT 0;
CREATE TEMP TABLE IF NOT EXISTS roll_resource_bucket AS SELECT * FROM resource_bucket LIMIT 0;
