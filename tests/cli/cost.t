What requests cost; the comment of data/fleet.c says which figures are right.

$ $FLEET a.db && $FLEET b.db 50000

$ assay cost --db a.db
| SERVICE      METHOD QPS   +- OWN CPU WITH CALLS   +-    TIME SHARE SEEN
| front        buy      2    0 1.00 ms    1.12 ms 0 ns 10.0 ms 61.7%   20
| front        look     2 1.34  500 us     500 us 0 ns 1.00 ms 30.9%    2
| cart.service add      2    0  100 us     120 us 0 ns 8.00 ms  6.2%   20
| redis        get      4    0 10.0 us    10.0 us 0 ns 5.00 ms  1.2%   40
| 
| 82 requests in 22 traces kept, over 10.0 s.

$ assay cost --tree --db a.db
| SERVICE      METHOD  QPS   +- OWN CPU WITH CALLS   +-    TIME SHARE SEEN
| front        buy       2    0 1.00 ms    1.12 ms 0 ns 10.0 ms 61.7%   20
| cart.service   add     2    0  100 us     120 us 0 ns 8.00 ms  6.2%   20
| redis            get   4    0 10.0 us    10.0 us 0 ns 5.00 ms  1.2%   40
| front        look      2 1.34  500 us     500 us 0 ns 1.00 ms 30.9%    2
|
| 82 requests in 22 traces kept, over 10.0 s.

$ assay cost --by path --tsv -q --db a.db | cut -f1,2,4
| service	name	qps
| front	front buy	2
| cart.service	front buy;cart.service add	2
| redis	front buy;cart.service add;redis get	4
| front	front look	2

$ assay cost --by service --db a.db
| SERVICE      QPS CPU PER SECOND SHARE
| front          4        3.00 ms 92.6%
| cart.service   2         200 us  6.2%
| redis          4        40.0 us  1.2%
|
| 82 requests in 22 traces kept, over 10.0 s.

$ assay cost --by caller --db a.db
| SERVICE      METHOD PAID BY ROOT METHOD QPS CPU PER SECOND OF METHOD
| front        buy    front   buy           2        2.00 ms    100.0%
| front        look   front   look          2         999 us    100.0%
| cart.service add    front   buy           2         200 us    100.0%
| redis        get    front   buy           4        40.0 us    100.0%
|
| 82 requests in 22 traces kept, over 10.0 s.

$ assay cost --folded --db a.db
| front buy 20000000
| front buy;cart.service add 2000000
| front buy;cart.service add;redis get 400000
| front look 10000000

$ assay cost diff a.db b.db
| SERVICE      METHOD QPS BEFORE AFTER CPU BEFORE   AFTER   +- VERDICT
| front        buy             2     2    1.12 ms 1.17 ms 0 ns dearer
| front        look            2     2     500 us  500 us 0 ns within error
| cart.service add             2     2     120 us  170 us 0 ns dearer
| redis        get             4     4    10.0 us 10.0 us 0 ns within error

$ assay trace 23 --db a.db
| SERVICE      METHOD    AFTER    TIME     CPU PID               SPAN
| front        buy        0 ns 10.0 ms 1.00 ms   1 0x0000000000000014
| cart.service   add   1.00 ms 8.00 ms  100 us   2 0x0000000000000015
| redis            get 2.00 ms 6.00 ms 10.0 us   3 0x0000000000000016
| redis            get 3.00 ms 4.00 ms 10.0 us   3 0x0000000000000017

Of 32.4 ms, 10 went to looking in vain, 0.2 to what late buyers got.
$ assay cost --by label --db a.db
| SERVICE      METHOD       QPS   +- OWN CPU WITH CALLS   +-    TIME SHARE SEEN
| front        buy            1    0 1.00 ms    1.12 ms 0 ns 10.0 ms 30.9%   10
| front        buy [low]      1    0 1.00 ms    1.12 ms 0 ns 10.0 ms 30.9%   10
| front        look [empty]   2 1.34  500 us     500 us 0 ns 1.00 ms 30.9%    2
| cart.service add            2    0  100 us     120 us 0 ns 8.00 ms  6.2%   20
| redis        get            2    0 10.0 us    10.0 us 0 ns 5.00 ms  0.6%   20
| redis        get [high]     2    0 10.0 us    10.0 us 0 ns 5.00 ms  0.6%   20
|
| 82 requests in 22 traces kept, over 10.0 s.
| 30.9% of the CPU went to requests that found nothing.
| 0.6% went to requests of high priority that one of low priority asked for.

$ assay cost --by label --json --db a.db | grep share_
|   "share_for_empty": 0.308641975,
|   "share_low_for_high": 0.00617283951

## what is asked wrongly
$ assay cost diff a.db
! assay cost: diff wants two databases{*}
? 2
$ assay trace nix --db a.db
! assay trace: nix is no id of a trace or span{*}
? 2
$ assay trace 77777 --db a.db
! assay trace: no trace 77777 was kept
? 1
$ assay cost --db shop.db
! assay cost: shop.db has no requests{*}
? 1

## ns per call, in the form that programs read
$ assay cost --json --db a.db | tr -d ' \n' | grep -o '{"service":"cart.*'
| {"service":"cart.service","name":"add","root":false,"qps":1.99880072,"qps_se":0.0,"cpu_self_ns":100000.0,"cpu_transitive_ns":120000.0,"cpu_se":0.0,"off_cpu_ns":0.0,"in_bytes":0.0,"out_bytes":0.0,"page_faults":0.0,"calls_sampled":20},{"service":"redis","name":"get","root":false,"qps":3.99760144,"qps_se":0.0,"cpu_self_ns":10000.0,"cpu_transitive_ns":10000.0,"cpu_se":0.0,"off_cpu_ns":0.0,"in_bytes":0.0,"out_bytes":0.0,"page_faults":0.0,"calls_sampled":40}],"edges":[{"parent":"front:buy","child":"cart.service:add","calls_per_s":1.99880072},{"parent":"cart.service:add","child":"redis:get","calls_per_s":3.99760144}]}
