-- SPDX-License-Identifier: Apache-2.0
-- What a request used besides CPU, and what its application says of it.

ALTER TABLE span ADD COLUMN off_cpu_ns INTEGER NOT NULL DEFAULT 0; -- by threads serving it
ALTER TABLE span ADD COLUMN in_bytes INTEGER NOT NULL DEFAULT 0; -- by sockets
ALTER TABLE span ADD COLUMN out_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE span ADD COLUMN page_faults INTEGER NOT NULL DEFAULT 0;
ALTER TABLE span ADD COLUMN labels INTEGER NOT NULL DEFAULT 0; -- enum abi_label
ALTER TABLE span ADD COLUMN status INTEGER; -- NULL unknown
