Reports on a database whose figures can be checked by hand, see data/shop.c.

$ assay types --db shop.db
| TYPE          SAMPLES SHARE OF TYPED LOADS STORES PROVENANCE  CONF     SIZE
| struct dict       400 40.0%    57.1%   400      0 backward   0.875     96 B
| struct client     300 30.0%    42.9%   300      0 join        0.95 8.00 KiB
|
| 1000 access samples, 70.0% typed; the rest: 20.0% no-debug, 10.0% stack.
| 2.4% of access records lost (ring 20, no-mapping 5).
| note: /opt/shop/libold.so (build-id cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd) has no debug information: build it with -g, or install its -dbgsym package
| {...}
$ ASSAY_DB=shop.db assay types --by field --limit 1
| TYPE          FIELD  OFFSET SAMPLES SHARE OF TYPE LOADS STORES PROVENANCE CONF
| struct client argv[]     64     300 30.0%  100.0%   300      0 join       0.95
|
| 1000 access samples, 70.0% typed; the rest: {*}
| {...}
$ assay types --db shop.db --by function --limit 2
| FUNCTION    MODULE SAMPLES SHARE  TYPED LOADS STORES TOP TYPE
| dict_find   server     400 40.0% 100.0%   400      0 struct dict
| client_read server     300 30.0% 100.0%   300      0 struct client
| {...}

## the share is of the samples selected
$ assay types --db shop.db --pid 101 | head -2
| TYPE          SAMPLES  SHARE OF TYPED LOADS STORES PROVENANCE CONF     SIZE
| struct client     300 100.0%   100.0%   300      0 join       0.95 8.00 KiB
$ assay types --db shop.db --process server --tsv -q | cut -f1-3
| type	samples	share_of_all
| struct dict	400	0.571429

## what is less sure than asked for counts as not typed, and is said to
$ assay types --db shop.db --min-confidence 0.85
| TYPE          SAMPLES SHARE OF TYPED LOADS STORES PROVENANCE CONF     SIZE
| struct client     300 30.0%    50.0%   300      0 join       0.95 8.00 KiB
| struct dict       300 30.0%    50.0%   300      0 backward    0.9     96 B
|
| 1000 access samples, 60.0% typed; the rest: 20.0% no-debug, 10.0% below-confidence, 10.0% stack.
| {...}
$ assay types --db shop.db --min-confidence 2
! assay types: --min-confidence: '2' is not between 0 and 1
? 2

## what is older than --since does not count
$ assay types --db shop.db --since 10m
| no access samples.
| 0.0% of access records lost.
$ assay types --db shop.db --run 0x1111 -n 1 | head -2 | tail -1
| struct dict     400 {*}
$ assay types --db shop.db --run 5
| no access samples.
| 0.0% of access records lost.
$ assay types --db shop.db --run yesterday
! assay types: --run: 'yesterday' is no run; 'assay status' lists them
? 2

## TSV is for programs: one table, remarks apart
$ assay types --db shop.db --tsv
| type	samples	share_of_all	share_of_typed	loads	stores	mean_cycles	l1	l2	l3	dram	remote	tlb_miss	hitm	provenance	confidence	bytes	type_id
| struct dict	400	0.4	0.571429	400	0		0	0	0	0	0	0	0	backward	0.875	96	0x00000000000000c1
| struct client	300	0.3	0.428571	300	0		0	0	0	0	0	0	0	join	0.95	8192	0x00000000000000c2
! 1000 access samples, {*}
! 2.4% of access records lost (ring 20, no-mapping 5).
! note: {*}
! {...}
$ assay types --db shop.db --json -n 1
| {
|   "types": [
|     {
|       "type": "struct dict",
|       "samples": 400,
|       "share_of_all": 0.4,
| {...}
|       "type_id": "0x00000000000000c1"
|     }
|   ],
|   "coverage": {
|     "access_samples": 1000,
|     "typed_samples": 700,
|     "share_typed": 0.7
|   },
|   "loss": {
|     "access": {
|       "lost": 25,
|       "records": 1025,
|       "share_lost": 0.0243902439
|     },
| {...}

## a narrow terminal loses the spare columns, then text, never a figure
$ COLUMNS=60 assay types --db shop.db --by field -n 1 | head -2
| TYPE          FIELD  OFFSET SAMPLES SHARE OF TYPE PROVENANCE
| struct client argv[]     64     300 30.0%  100.0% join
$ COLUMNS=48 assay types --db shop.db --by field -n 1 | head -2 | awk 'length($0) > 48 { print "too wide" } NR == 2'
| {*} 64     300 30.0% join

$ assay stacks --db shop.db
| STACK                 SAMPLES    CPU SHARE
| server;main;dict_find      75 750 ms 75.0%
| server;main                25 250 ms 25.0%
|
| {...}
| 0.0% of tick records lost.
$ assay stacks 100 --folded --db shop.db -q
| server;main;dict_find 75
| server;main 25
$ assay stacks helper --folded --db shop.db -q
$ assay stacks --folded --json --db shop.db
! assay stacks: --folded is a format of its own
? 2
$ assay status --db shop.db
| no daemon listens at {*}/no-daemon
| runs
|                RUN               START                 END TARGET  SOURCES      ACCESSES TICKS LOST
| 0x0000000000001111 2023-11-14 22:13:20 2023-11-14 22:13:30 pid:100 clock 997 Hz     1000   100 2.2%
|
| shop.db: {*} on disk, {*} in use.
