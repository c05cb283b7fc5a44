Whole files: answers are kept, and are the same with, from and without the cache.

$ assay analyze --no-cache --tsv "$FIXTURES/server" > none.tsv; test ! -e $XDG_CACHE_HOME/assay
$ assay analyze --tsv "$FIXTURES/server" > first.tsv && assay analyze --tsv "$FIXTURES/server" > second.tsv
$ cmp none.tsv first.tsv && cmp none.tsv second.tsv && ls $XDG_CACHE_HOME/assay | wc -l
| 2

## the report says where its answers are from
$ assay analyze --stats "$FIXTURES/server" | tail -1
| Kept answers of an earlier run; CPU and memory are that run's. --no-cache analyses anew.
$ assay analyze --stats --no-cache "$FIXTURES/server" | tail -1
| Analysed now; no kept answers were used.

## a damaged entry is made anew
$ for f in $XDG_CACHE_HOME/assay/*; do printf X | dd of=$f bs=1 seek=5000 conv=notrunc status=none; done
$ assay analyze --stats "$FIXTURES/server" | tail -1
| Analysed now; no kept answers were used.
$ assay analyze --tsv "$FIXTURES/server" | cmp - none.tsv

## another analyser does not believe it
$ mkdir other; cp "$(command -v assay)" "$(command -v assay-worker)" other/; printf x >> other/assay-worker
$ other/assay analyze --stats "$FIXTURES/server" | tail -1; ls $XDG_CACHE_HOME/assay | wc -l
| Analysed now; no kept answers were used.
| 3

## a folder that cannot be written costs the cache, not the answers
$ XDG_CACHE_HOME=/dev/null assay analyze --quiet --tsv "$FIXTURES/server" | cmp - none.tsv
