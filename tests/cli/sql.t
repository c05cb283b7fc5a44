$ assay sql --db shop.db 'SELECT type, samples FROM v_type ORDER BY samples'
| type          samples
| struct client     300
| struct dict       400
$ echo "SELECT type_id, 12345678 AS n, 0.5 AS share_x, NULL AS empty FROM v_type LIMIT 1" | assay sql --db shop.db --json
| {
|   "rows": [
|     {
|       "type_id": "0x00000000000000c1",
|       "n": 12345678,
|       "share_x": 0.5,
|       "empty": null
|     }
|   ]
| }

## ids can be pasted back
$ assay sql --db shop.db --tsv 'SELECT type FROM v_type WHERE type_id = 0x00000000000000c2'
| type
| struct client

## nothing can be written
$ assay sql --db shop.db 'DELETE FROM run'; assay sql --db shop.db 'ATTACH "x" AS x'; assay sql --db shop.db 'SELECT count(*) AS runs FROM v_run'
| runs
|    1
! assay sql: {*}
! assay sql: {*}
$ assay sql --db shop.db 'SELECT * FROM nix'
! assay sql: no such table: nix{*}
? 1
$ assay sql --db shop.db 'SELECT 1; SELECT 2'
! assay sql: {*}
? 1
$ assay sql --db shop.db ''
! assay sql: {*}
? 1

## a query that never ends can be given a time
$ assay sql --db shop.db --timeout 100ms 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n'
! assay sql: {*}
? 1

## Ctrl-C ends a query, with the status of a shell
$ timeout --preserve-status -s INT 0.3 assay sql --db shop.db 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n'
? 130

$ assay schema | head -2
| VIEW       WHAT IT SHOWS
| v_run      one start of the agent, or one attach
$ assay schema --list | grep -c '^v_'
| {#}
$ assay schema v_loss
| v_loss: what is missing, and why
|   run_id {*}
| {...}
$ assay schema nix
! assay schema: there is no view 'nix'; 'assay schema' lists them
? 1

## every view that is described can be read
$ for v in $(assay schema --list); do assay sql --db shop.db "SELECT * FROM $v LIMIT 1" >/dev/null || echo $v; done
