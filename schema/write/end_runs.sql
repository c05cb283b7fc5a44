-- SPDX-License-Identifier: Apache-2.0
-- A crash left them open: they ended with the last flush, but not before they began.
UPDATE run SET end_at_ns = max(start_at_ns, :end_at_ns) WHERE end_at_ns IS NULL;
