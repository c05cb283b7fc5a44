// SPDX-License-Identifier: Apache-2.0
exception Refused { 1: string why }
service Ledger {
  i32 add(1: i32 a, 2: i32 b),
  i32 refuse(1: i32 a) throws (1: Refused refused),
  i32 crash(1: i32 a),
  oneway void note(1: i32 a),
}
