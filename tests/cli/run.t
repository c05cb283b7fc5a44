A command that is sampled from its start.

## its output is its own, the report stands on standard error
$ assay run --db a.db -- echo hello world
| hello world
! sampling pid:{#}
! types
! {...}
! 1000 access samples, {*}
! {...}
$ assay run --db a.db --json -o r.json -q -- true; head -2 r.json
| {
|   "types": [

## its exit code, signal and input are handed on
$ assay run --db a.db -q -- sh -c 'exit 7' 2>/dev/null
? 7
$ bash -c 'assay run --db a.db -q -- sh -c "kill -TERM \$\$" 2>/dev/null; echo $?'
| 143
! {...}
$ echo through | assay run --db a.db -q -- cat 2>/dev/null
| through

## options behind the command are the command's
$ assay run --db a.db -q echo --json -q 2>/dev/null
| --json -q
$ assay run --db a.db -q -- /no/such/program
! assay run: /no/such/program: No such file or directory
? 127
$ assay run --db a.db -q -- /etc/passwd
! assay run: /etc/passwd: Permission denied
? 126
$ FAKE=refuse assay run --db a.db -- touch started; test ! -e started
! assay run: {*}

## the agent's failure does not lose the command's status
$ FAKE=fail assay run --db a.db -q -- sh -c 'echo done; exit 3'
| done
! assay run: the disk is full
? 3

## a signal to us reaches it
$ assay run --db a.db -q -- sh -c 'trap "echo asked; exit 9" TERM; echo up > up; for i in 1 2 3 4 5 6 7 8 9; do sleep 0.2; done' 2>/dev/null & until test -e up; do sleep 0.05; done; kill $!; wait $!
| asked
? 9
