-- SPDX-License-Identifier: Apache-2.0
INSERT OR REPLACE INTO answer (module_id, va, skid, run_id, analyser_version, verdict,
	confidence, type_id, field_id, insn_va, access_kind, width_bytes, offset_bytes)
VALUES (:module_id, :va, :skid, :run_id, :analyser_version, :verdict, :confidence,
	:type_id, :field_id, :insn_va, :access_kind, :width_bytes, :offset_bytes);
