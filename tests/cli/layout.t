Structs drawn by cache line. Where the members lie, the compiler says: the fixture holds
static assertions of every offset below; 17 bytes 6 bits are 7 + 6/8 + 1 + 2 + 7.

$ assay analyze --no-cache -q --db drawn.db --stats "$FIXTURES/layout" >/dev/null
$ assay layout drawn --db drawn.db
| struct drawn
| OFFSET SIZE   FIELD              SAMPLES SHARE
|      0 -      -- line 0 --             -     -
|      0 1      first                    -     -
|      1 7      (hole)                   -     -
|      8 8      count                    -     -
|     16 3 bits ready:3                  -     -
|     16 7 bits mode:7                   -     -
|     17 6 bits (hole)                   -     -
|     18 1      in.tag                   -     -
|     19 1      (hole)                   -     -
|     20 2      in.code                  -     -
|     22 2      (hole)                   -     -
|     24 8      either.whole             -     -
|     24 4      | either.parts[]         -     -
|     32 40     name[] (to line 1)       -     -
|     64 -      -- line 1 --             -     -
|     72 8      next                     -     -
|     80 1      last                     -     -
|     81 7      (padding)                -     -
|
| 88 bytes, 2 lines of 64 if it starts at one; 17 bytes 6 bits unused.
$ assay layout 'struct drawn' --db drawn.db --tsv -q | grep mode | cut -f1-8
| field	0	16	3	7	2	7 bits	mode:7
$ assay layout drawn --db drawn.db --module libother.so
! assay layout: no type 'drawn' that code of libother.so uses; 'assay types' lists the sampled ones
? 1

## heat, from the samples
$ assay layout dict --db shop.db
| struct dict
| OFFSET SIZE FIELD        SAMPLES  SHARE HEAT       LOADS
|      0 -    -- line 0 --     400 100.0% -              -
|      0 8    (hole)             -      - -              -
|      8 8    table            300  75.0% ##########   300
|     16 8    (hole)             -      - -              -
|     24 8    size             100  25.0% ####         100
|     32 64   (padding)          -      - -              -
|
| 96 bytes, 2 lines of 64 if it starts at one; 80 bytes 0 bits unused.
| hot lines (80% of the samples): 0.
$ assay layout dict --db shop.db --json | grep -A3 hot_lines
|   "hot_lines": [
|     0
|   ]
| }
$ assay layout nothing --db shop.db
! assay layout: no type 'nothing' in the database: 'assay types' lists the sampled ones, 'assay analyze FILE --db' adds those of a file
? 1

## several workers give what one gives
$ assay analyze --no-cache --tsv "$FIXTURES/server" > one.tsv; assay analyze --jobs 3 --no-cache --tsv "$FIXTURES/server" | cmp - one.tsv && wc -l < one.tsv
| {#}

## the code is gone: only what was sampled is listed
$ assay annotate dict_find --db shop.db
| dict_find
| {...}
| {*}0x100c{*}300{*}struct dict table{*}backward{*}
| {...}
! no disassembly: /opt/shop/server: No such file or directory
$ assay annotate nothing --db shop.db
! assay annotate: no sampled function 'nothing': 'assay types --by function' lists them
? 1
