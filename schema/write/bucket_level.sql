-- SPDX-License-Identifier: Apache-2.0
UPDATE bucket_level SET keep_ns = :keep_ns WHERE level = :level;
