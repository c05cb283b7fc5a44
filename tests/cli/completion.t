The completion of bash, asked as readline would ask it.

$ echo 'source <(assay completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _assay; printf "%s\n" "${COMPREPLY[@]}"' > ask; bash ask assay st
| stop
| status
| stacks
$ bash ask assay types --b
| --by
$ bash ask assay types --by f
| field
| function
$ bash ask assay types --by = f
| field
| function
$ bash ask assay types --limit ''
|
$ bash ask assay help an
| annotate
| analyze
$ bash ask assay completion ''
| bash
$ bash ask assay schema v_loss
| v_loss
$ touch some-file; bash ask assay stop some-
| some-file
$ bash ask assay run -- tru
| true
| truncate
$ bash ask assay attach "$(cat /proc/$$/comm)" | head -1
| {*}
