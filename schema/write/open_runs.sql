-- SPDX-License-Identifier: Apache-2.0
SELECT run_id FROM run WHERE end_at_ns IS NULL;
