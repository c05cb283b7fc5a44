A program is built anew, the answers of what did not change are kept: how many of the four
units, and whether the answers are those of an analysis from nothing.

## by gcc
$ "$TESTS/cli/data/increment" gcc -O2
| a function changes: 3 same, unlike the first
| everything moves: 3 same, unlike the first
| a function goes: 3 same, unlike the first
| a struct of all grows: 1 same, unlike the first
| a hidden struct changes: 2 same, unlike the first
| a result is another struct: 2 same, unlike the first
| a variable is another struct: 2 same, unlike the first
| a constant changes: 3 same
| a field is renamed: 1 same, unlike the first

## by clang, at a fixed address
$ "$TESTS/cli/data/increment" clang -O2 -fno-pie
| a function changes: 3 same, unlike the first
| everything moves: 3 same, unlike the first
| a function goes: 3 same, unlike the first
| a struct of all grows: 1 same, unlike the first
| a hidden struct changes: 2 same, unlike the first
| a result is another struct: 2 same, unlike the first
| a variable is another struct: 2 same, unlike the first
| a constant changes: 3 same
| a field is renamed: 1 same, unlike the first

## by gcc, older debug information, each function for itself
$ "$TESTS/cli/data/increment" gcc -O1 -gdwarf-4 -ffunction-sections
| a function changes: 3 same, unlike the first
| everything moves: 3 same, unlike the first
| a function goes: 3 same, unlike the first
| a struct of all grows: 1 same, unlike the first
| a hidden struct changes: 2 same, unlike the first
| a result is another struct: 2 same, unlike the first
| a variable is another struct: 2 same, unlike the first
| a constant changes: 3 same
| a field is renamed: 1 same, unlike the first

## several processes use and fill the same cache
$ rm -r $XDG_CACHE_HOME/assay; assay analyze --no-cache --tsv program > none.tsv; assay analyze --jobs 2 --tsv program | cmp - none.tsv
$ assay analyze --jobs 2 --tsv program | cmp - none.tsv; ls $XDG_CACHE_HOME/assay | sed 's/.*[.]//'
| units
$ assay analyze --jobs 2 --stats --json program | grep -o '"kept_units": *[4-9]'
| "kept_units": {#}

## what is damaged is found out again
$ for f in $XDG_CACHE_HOME/assay/*.units; do printf XXXXXXXX | dd of=$f bs=1 seek=60 conv=notrunc status=none; done
$ assay analyze --tsv program | cmp - none.tsv; rm $XDG_CACHE_HOME/assay/*.answers
$ for f in $XDG_CACHE_HOME/assay/*.units; do truncate -s 900 $f; done; assay analyze --tsv program | cmp - none.tsv; rm $XDG_CACHE_HOME/assay/*.answers
$ for f in $XDG_CACHE_HOME/assay/*.units; do head -c 3000 /dev/urandom > $f; done; assay analyze --tsv program | cmp - none.tsv; rm $XDG_CACHE_HOME/assay/*.answers
$ assay analyze --stats program | grep -c 'for 4 of 4 compilation units'
| 1

## the folder stays below its limit
$ for i in $(seq 40); do head -c 100000 /dev/zero > $XDG_CACHE_HOME/assay/00000000000000$i-0.answers; touch -d "$i hours ago" $XDG_CACHE_HOME/assay/00000000000000$i-0.answers; done
$ rm program; cp "$FIXTURES/server" program; assay analyze --stats --cache-size 1 program > out; test $(du -sb $XDG_CACHE_HOME/assay | cut -f1) -le 1060000; ls $XDG_CACHE_HOME/assay/*40-0.answers 2>&1 | grep -c 'No such'
| 1
