Which resources a program defines: names propose, code disposes.

## what the code bears out comes first
$ assay discover "$FIXTURES/resources" --tsv -q | cut -f 2-5 | grep row-lock | sort
| acquire	row-lock	row_lock_acquire	arg1
| release	row-lock	row_lock_release	arg1
| wait	row-lock	row_lock_acquire	arg1
| wait	row-lock	row_lock_wait	arg1

## the way to where it sleeps is told
$ assay discover "$FIXTURES/resources" -r row-lock --json | jq -r '.candidates[] | select(.event == "wait" and .function == "row_lock_acquire") | .evidence'
| {*}can block, on a path that others pass by, at +0x{*}: row_lock_wait > pthread_cond_wait@plt

## what it does not bear out is below the line
$ assay discover "$FIXTURES/resources" --tsv -q | grep -c paper
| 0
? 1
$ assay discover "$FIXTURES/resources" --tsv -q --min-confidence 0 | grep -c paper
| 3

## without a symbol table what is exported is still found
$ strip -o bare "$FIXTURES/resources"; assay discover bare --tsv -q | grep -c .
| 1
$ printf 'int slot_acquire(int *s) { return ++*s; }\nvoid slot_release(int *s) { --*s; }\n' > s.c; gcc -O2 -shared -fPIC -s s.c -o s.so; assay discover s.so --tsv -q | cut -f 2-5
| event	resource	function	object
| acquire	slot	slot_acquire	arg1
| release	slot	slot_release	arg1

## a spec file of them is a spec file, with the evidence in it
$ assay discover "$FIXTURES/resources" -r row-lock -o rows.yaml -q > /dev/null; assay spec check rows.yaml
| rows.yaml: no errors, 1 variants
$ assay spec check rows.yaml "$FIXTURES/resources" --tsv -q | cut -f 2-3 | sort -u | grep row_lock
| resource.acquire	row_lock_acquire
| resource.wait	row_lock_acquire
$ grep -c '#   ' rows.yaml > count; test $(cat count) -ge 8
$ assay discover "$FIXTURES/resources" -o rows.yaml
! assay discover: rows.yaml is there already; name another file or remove it
? 1
$ assay discover /bin/true -o none.yaml
! assay discover: {*}
? 1

## somebody else may judge them
$ printf '#!/bin/sh\njq "{version: 1, candidates: [.candidates[] | select(.resource == \\"row-lock\\") | {id, confidence: 0.25, note: \\"seen\\"}]}"\n' > ranker; chmod +x ranker
$ assay discover "$FIXTURES/resources" --ranker ./ranker --tsv -q | grep -c row-lock
| 0
? 1
$ assay discover "$FIXTURES/resources" --ranker ./ranker --tsv -q --min-confidence 0.2 | grep row_lock_release | grep -c 'ranker: seen'
| 1
$ assay discover "$FIXTURES/resources" --ranker 'cat > question; echo "{\"version\": 1, \"candidates\": []}"' --tsv -q > /dev/null; jq -r '.version, (.candidates[0] | keys | join(" "))' question
| 1
| confidence event evidence function id is_verified object resource symbol

## an answer that makes no sense is an error, not a result
$ assay discover "$FIXTURES/resources" --ranker 'echo hello'
! assay discover: --ranker: its answer is no JSON: {*}
? 1
$ assay discover "$FIXTURES/resources" --ranker 'echo "{\"version\": 1, \"candidates\": [{\"id\": 99999}]}"'
! assay discover: --ranker: its answer has a candidate 99999; there are {#}
? 1
$ assay discover "$FIXTURES/resources" --ranker 'echo "{\"version\": 1, \"candidates\": [{\"id\": 0, \"event\": \"eat\"}]}"'
! assay discover: --ranker: candidate 0: there is no event 'eat'
? 1
$ assay discover "$FIXTURES/resources" --ranker 'exit 3'
! assay discover: --ranker: it ended with status 3
? 1

## files that are none
$ assay discover /etc/passwd
! assay discover: {*}
? 1
$ assay discover "$FIXTURES/resources" --min-confidence 2
! assay discover: --min-confidence: '2' is not between 0 and 1
? 2
