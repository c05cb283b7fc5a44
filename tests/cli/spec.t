Spec files: what is wrong with one, and what one does to a binary.

## mistakes are told with their line or column
$ printf 'spec: t\nvariants:\n  - name: v\n    match: [{path: x}]\n    probes:\n      - id: p\n        function: f\n        verb: request.begin\n        key: arg1+\n' > bad.yaml; assay spec check bad.yaml
! assay spec: bad.yaml: variant v: probe p: key: column 6: a number is expected here
? 1
$ printf 'spec: t\nvariants:\n  - name: v\n    match: [{path: x}]\n    probes:\n      - id: p\n        function: f\n        verb: request.begin\n        colour: red\n' > bad.yaml; assay spec check bad.yaml
! assay spec: bad.yaml: {*}colour{*}(line: 8{*}
? 1

## a spec of one's own is read and shown
$ printf 'spec: t\ntitle: Mine\nvariants:\n  - name: v\n    match: [{path: "*"}]\n    probes:\n      - id: p\n        function: no_such_function\n        verb: request.begin\n        key: arg1\n' > mine.yaml; assay spec check mine.yaml
| mine.yaml: no errors, 1 variants
$ assay spec show mine.yaml
| Mine
| VARIANT PROBE VERB          AT    BY       CODE             TEMPERATURE RESOURCE
| v       p     request.begin entry function no_such_function{*}
$ mkdir spec.d; cp mine.yaml spec.d; ASSAY_SPEC_PATH=spec.d assay spec list --tsv
| spec	title	variants	probes	path	error
| t	Mine	1	1	spec.d/mine.yaml{*}

## a binary that it does not fit says why
$ ASSAY_SPEC_PATH=spec.d assay spec check mine /bin/cat
| {*}: spec t does not apply (build-id {*})
| variant v does not do: none of its probes can be placed; p: there is no function no_such_function
? 1

## words that make no sense
$ assay spec chek mine.yaml
! assay spec: list, check, show or test, not 'chek'
? 2
$ assay spec check nothing-of-that-name
! assay spec: there is no spec 'nothing-of-that-name'; see assay spec list
? 1
$ assay spec test mine.yaml
! assay spec: which process? its PID
? 2
