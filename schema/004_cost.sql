-- SPDX-License-Identifier: Apache-2.0
-- Which spans belong together.

ALTER TABLE span ADD COLUMN trace_id INTEGER NOT NULL DEFAULT 0; -- span_id of the root
