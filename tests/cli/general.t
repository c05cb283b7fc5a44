What the program says about itself, and how it refuses nonsense.

$ assay version
| assay {*}
$ assay --version
| assay {*}
$ assay version --tsv
| version	schema
| {*}	{#}
$ assay
! usage: assay COMMAND [OPTIONS] [ARGUMENTS]
! {...}
? 2
$ assay help
| usage: assay COMMAND [OPTIONS] [ARGUMENTS]
| {...}
| commands:
| {...}
|   types       the struct types, fields or functions that accesses go to
| {...}
$ assay typs
! assay: there is no command 'typs'; did you mean 'types'?
! try: assay help
? 2
$ assay --nix
! assay: there is no command '--nix'
! try: assay help
? 2
$ assay help typs
! assay help: there is no command 'typs'; did you mean 'types'?
? 2
$ assay types --by colour
! assay types: --by: 'colour' is none of type|field|function|method
! try: assay types --help
? 2
$ assay types --since yesterday
! assay types: --since: 'yesterday' is not a duration (10s, 500ms, 5m, 2h, 1d)
! try: assay types --help
? 2
$ assay types --json --tsv
! assay types: --json or --tsv, not both
! try: assay types --help
? 2
$ assay types what
! assay types: unexpected argument 'what'
! try: assay types --help
? 2
$ assay attach
! assay attach: PID|NAME is missing
! try: assay attach --help
? 2
$ assay stop --help
| usage: assay stop [PIDFILE|PID]
|
| Ask the agent to store everything and to end, and wait until it has. Without an argument
| it is the one whose pidfile is $ASSAY_PIDFILE, else /run/assay-attach.pid. Anything but an
| agent of assay is left alone.
|
| options:
|   -q, --quiet           no progress and no remarks on standard error
|   -h, --help            this text, with examples
|
| examples:
|   # the agent that attach --background started
|   assay stop
|   # another one, by its pidfile
|   assay stop /run/assay-redis.pid
|   # or by its process id
|   assay stop 1234
|
| exit codes: 0 done, 1 failed, 2 wrong usage.

## help wins over everything else that is wrong
$ assay attach --help --nix 2>&1 | head -1; assay attach --json --tsv --help | head -1
| assay attach: no such option, or not a unique one: --nix
| usage: assay attach {*}

## every command has its help and its page
$ for c in $(assay help | sed -n '/^commands/,/^$/s/^  \([a-z]*\) .*/\1/p'); do assay $c --help | grep -q "^usage: assay $c" && assay man $c | grep -q '^.SH EXAMPLES' || echo "$c: incomplete"; done; assay help | grep -c '^  [a-z]* '
| {#}

## the pages are understood without a complaint
$ command -v groff >/dev/null || exit 0; for c in '' $(assay help | sed -n '/^commands/,/^$/s/^  \([a-z]*\) .*/\1/p'); do assay man $c | groff -man -ww -z; done

## a report that cannot be written is an error
$ assay schema > /dev/full
! assay schema: write the report: No space left on device
? 1
