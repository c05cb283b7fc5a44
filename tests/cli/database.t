Databases that are not there, or not what they should be.

$ assay types --db none.db
! assay types: there is no database at none.db: run 'assay attach' first, or name one with --db
? 1
$ echo 'no database, but text that is long enough to be looked at' > text.db; assay types --db text.db
! assay types: {*}text.db{*}
? 1
$ head -c 8192 shop.db > half.db; assay types --db half.db
! assay types: {*}half.db{*}
? 1
$ assay types --db .
! assay types: {*}
? 1
$ : > empty.db; assay types --db empty.db
! assay types: {*}empty.db{*}
? 1
$ cp shop.db dirty.db; dd if=/dev/urandom of=dirty.db bs=4096 seek=1 count=20 conv=notrunc status=none; assay types --db dirty.db > out 2> err; test $? -eq 1 && wc -l < err
| 1
$ assay status --db none.db
| no daemon listens at {*}
! assay status: there is no database at none.db: {*}
? 1
