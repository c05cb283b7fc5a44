-- SPDX-License-Identifier: Apache-2.0
SELECT coalesce(min(bucket_at_ns), -1) FROM resource_bucket WHERE level = :level;
