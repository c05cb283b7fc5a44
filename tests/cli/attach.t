Sampling, with a stand-in for the agent that stores the shop's figures.

$ sleep 60 & assay attach $! --for 20ms --db a.db; kill %1
| types
| TYPE          SAMPLES SHARE {*}
| struct dict       400 {*}
| struct client     300 {*}
|
| fields
| TYPE          FIELD  OFFSET {*}
| struct client argv[]     64 {*}
| struct dict   table       8 {*}
| struct dict   size       24 {*}
|
| 1000 access samples, 70.0% typed; {*}
| 2.4% of access records lost {*}
| {...}
! sampling pid:{#}
$ sed "s|$PWD|DIR|" asked
| --oneshot --target pid:{#} --for 20000000ns --db DIR/a.db --ready-fd 3
$ assay attach $$ -q --for 20ms --db a.db --json | head -2
| {
|   "types": [
$ assay attach $$ -q --for 20ms --db a.db --rate 99 --record r.events > /dev/null; sed "s|$PWD|DIR|g" asked; cat r.events
| --oneshot --target pid:{#} --for 20000000ns --db DIR/a.db --record DIR/r.events --rate 99 --ready-fd 3
| raw
$ assay attach all --for 20ms --db a.db -q | head -1; sed "s|$PWD|DIR|" asked
| types
| --oneshot --target all --for 20000000ns --db DIR/a.db --ready-fd 3
$ assay attach 4194305 --db a.db
! assay attach: no process has the pid 4194305
? 1
$ assay attach no-such-program --db a.db
! assay attach: no process is called 'no-such-program'
? 1

## several processes of a name are listed
$ cp "$(command -v sleep)" assay-nap; ./assay-nap 60 & ./assay-nap 61 & sleep 0.3; assay attach assay-nap --db a.db; s=$?; kill %1 %2; exit $s
! assay attach: 2 processes are called assay-nap, give a pid: {#} (./assay-nap 6{#}), {#} (./assay-nap 6{#})
? 1

## a start that fails is one line
$ FAKE=refuse assay attach $$ --db a.db
! assay attach: {*}
? 1
$ FAKE=die assay attach $$ -q --db a.db
! assay attach: assayd was killed by signal 9 (Killed)
? 1
$ FAKE=fail assay attach $$ -q --for 10ms --db a.db
! assay attach: the disk is full
? 1

## Ctrl-C ends it with its report
$ timeout --preserve-status -s INT 0.5 assay attach $PPID --db a.db | head -1
| types
! sampling pid:{#}
! sampling {*}; Ctrl-C ends it
! ending: storing what was seen

## in the background until stop
$ assay attach $$ --background --pidfile p --db b.db && test -d /proc/$(cat p) && assay stop p && test ! -e p
! sampling pid:{#}
! sampling bash (pid {#}); end it with: assay stop p
! stopped; 'assay types' shows what it saw
$ export ASSAY_PIDFILE=$PWD/usual; assay attach $$ --background --db b.db -q && assay attach $$ --background --db b.db; assay stop -q && test ! -e usual
! assay attach: the agent of {*}/usual still samples: end it with 'assay stop', or name another --pidfile
$ ASSAY_PIDFILE=none assay stop
! assay stop: {*}/none: no such pidfile; nothing runs with it
? 1
$ assay stop one two
! assay stop: {*}
! try: assay stop --help
? 2
$ assay stop p
! assay stop: p: no such pidfile; nothing runs with it
? 1
$ echo $$ > old; assay stop old
! assay stop: process {#} is '{*}', not assayd: an old pidfile?
? 1
$ echo hello > bad; assay stop bad
! assay stop: bad: this is no pidfile
? 1

## when we are killed the agent ends too
$ assay attach $$ -q --pidfile k --db k.db & sleep 0.5; p=$(cat k); kill -9 $!; for i in $(seq 100); do test -d /proc/$p || break; sleep 0.05; done; test ! -d /proc/$p
! {...}

$ assay record e.events --all --for 10ms --db a.db
! sampling all
! 4 B written; read it with: assay replay e.events --db FILE
$ assay record e.events --db a.db
! assay record: say what to record: --pid PID|NAME or --all
? 2
$ assay replay e.events --db c.db -q | head -1; sed "s|$PWD|DIR|g" asked
| types
| --oneshot --replay DIR/e.events --db DIR/c.db --ready-fd 3
$ assay replay e.events
! assay replay: name the database to write: --db FILE
? 2
$ assay replay no.events --db c.db
! assay replay: no.events: No such file or directory
? 1
