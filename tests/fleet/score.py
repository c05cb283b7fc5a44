#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""score.py FOLDER REQUESTS - the agent's database of a run of tests/fleet/graph against what
the programs logged themselves. Prints TAP, figures as comments."""
import collections
import math
import random
import sqlite3
import sys

folder, requests = sys.argv[1], int(sys.argv[2])
number = 0
PROGRAMS = ("front", "stock", "post")
DRAWS = 40


def verdict(good, name):
    global number
    number += 1
    print("%s %d - %s" % ("ok" if good else "not ok", number, name))


def read(name):
    rows = (line.rstrip("\n").split("\t") for line in open("%s/%s" % (folder, name)))
    return {row[0]: [float(value) for value in row[1:]] for row in rows}


truth = {name: read(name + ".truth") for name in PROGRAMS + ("drive",)}
spans = {}
database = sqlite3.connect("file:%s/a.db?mode=ro" % folder, uri=True)
Span = collections.namedtuple("Span", "parent trace framework method begin duration cpu weight")
for row in database.execute("""SELECT s.span_id, s.parent_id, s.trace_id, coalesce(m.framework, ''),
        coalesce(m.name, ''), s.begin_at_ns, s.duration_ns, s.cpu_ns, s.weight
        FROM span AS s LEFT JOIN method AS m USING (method_id) WHERE s.kind = 1"""):
    spans[row[0]] = Span(*row[1:])


def place(span):
    """Which program of the graph it is of, and the two letters of its kind."""
    if span.framework == "nginx":
        return "nginx", span.method[-2:]
    if span.method.startswith("/fleet.Front/"):
        return "front", span.method[-2:]
    if span.method.startswith("/fleet.Stock/"):
        return "stock", span.method[-2:]
    if span.framework == "thrift":
        return "post", span.method[-2:]
    return span.framework, span.method[-2:] if "post_" in span.method else None


ABOVE = {"front": "nginx", "stock": "front", "post": "front", "redis": "stock",
         "postgresql": "post"}
joined = collections.defaultdict(collections.Counter)
for span in spans.values():
    program, kind = place(span)
    if program not in ABOVE and program != "nginx":
        continue
    if program == "postgresql" and kind is None:
        continue
    above = spans.get(span.parent)
    if program == "nginx":
        joined[program]["wrong" if span.parent else "right"] += 1
    elif not span.parent or not above:
        joined[program]["none" if not span.parent else "lost"] += 1
    else:
        fits = place(above)[0] == ABOVE[program] and kind in (None, place(above)[1])
        fits = fits and above.begin <= span.begin <= above.begin + above.duration
        joined[program]["right" if fits else "wrong"] += 1
for program, counts in sorted(joined.items()):
    print("# %s: %s" % (program, ", ".join("%d %s" % (counts[word], word)
                                           for word in ("right", "none", "lost", "wrong"))))
for program in ("nginx",) + tuple(ABOVE):
    counts = joined[program]
    verdict(not counts["wrong"], "%s: no request has a wrong parent" % program)
    # One that was under way when a window began is not known.
    verdict(counts["right"] >= .99 * sum(counts.values()) - 1,
            "%s: 99 %% of requests have the right parent" % program)
verdict(all(joined[program]["right"] > requests / 10 for program in ("front", "stock", "post")),
        "there are many of them")

# What a request used: "GET ab" of a key that nobody has set; a packet with its query; a
# thread that serves one request at a time either runs for it or does not.
used = database.execute("""SELECT m.framework, m.name, s.in_bytes, s.labels, s.duration_ns,
    s.cpu_ns + s.off_cpu_ns, s.status FROM span AS s JOIN method AS m USING (method_id) WHERE s.kind = 1""").fetchall()
redis = [row for row in used if row[0] == "redis"]
verdict(all(row[2] == 8 for row in redis), "redis: each got the bytes of its command")
verdict(all(row[3] & 2 for row in redis), "redis: each missed the cache")
queries = [row for row in used if row[0] == "postgresql" and "post_" in row[1]]
verdict(queries and all(row[2] in (25, 25 + 41) for row in queries),
        "postgresql: each got its packet, the first of a connection that of its start as well")
posts = [row for row in used if row[0] == "thrift"]
verdict(abs(sum(row[5] for row in posts) / sum(row[4] for row in posts) - 1) < .02,
        "thrift: time on and off the CPU is all the time that there was")

verdict(all(row[6] == 200 for row in used if row[0] == "nginx"), "nginx: each has the status 200")
verdict(posts and all(row[6] == 2 for row in posts), "thrift: each has a status, a reply")

# All are counted, kept or not.
seen = dict(database.execute("""SELECT m.name, sum(r.weight) FROM request AS r
    JOIN method AS m USING (method_id) WHERE r.kind = 1 AND m.framework = 'grpc' GROUP BY m.name"""))
logged = {name: row[0] for program in ("front", "stock") for name, row in truth[program].items()}
off = [name for name, count in logged.items() if abs(seen.get(name, 0) - count) > .01 * count + 1]
verdict(not off, "the count of each method is that of the program's log")

# Traces: what a request to the front costs in all three programs.
def trees():
    children = collections.defaultdict(list)
    for key, span in spans.items():
        children[span.parent].append(key)
    for key, span in spans.items():
        if place(span)[0] != "front":
            continue
        cost, todo = 0, [key]
        while todo:
            at = todo.pop()
            todo += children[at]
            if place(spans[at])[0] in PROGRAMS:
                cost += spans[at].cpu
        yield place(span)[1], cost, span.weight


def cpu(name):
    return {key: row[0] for key, row in read(name).items()}


before, after = cpu("before.cpu"), cpu("after.cpu")
used = sum(after[name] - before[name] for name in PROGRAMS)
accounted, count = collections.Counter(), collections.Counter()
asked = collections.defaultdict(collections.Counter)
for program in PROGRAMS:
    for name, row in truth[program].items():
        accounted[name[-2:]] += row[1]
        asked[program][name[-2:]] += row[0]
        if program == "front":
            count[name[-2:]] += row[0]
share = sum(accounted.values()) / used
kept = list(trees())
print("# %d of %d requests kept; the programs account for %.0f %% of their CPU" %
      (len(kept), sum(count.values()), 100 * share))
estimate, spread = sum(row[2] for row in kept), sum(row[2] * (row[2] - 1) for row in kept)
verdict(abs(estimate - sum(count.values())) <= 4 * math.sqrt(spread) + .005 * estimate,
        "those that were kept stand for all: %.0f for %d" % (estimate, sum(count.values())))
# Frameworks' own work cannot be told apart by kind: it is in the upper bound of the truth.
rest = max(0, used - sum(accounted.values())) / sum(count.values())


def fair(n, share):
    """How likely a draw of this share of n tells n within 10 %."""
    if share >= 1:
        return 1
    low, high = math.ceil(.9 * n * share), math.floor(1.1 * n * share)
    return sum(math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) +
                        k * math.log(share) + (n - k) * math.log(1 - share))
               for k in range(low, min(n, high) + 1))


def fit(points):
    """Least squares for three unknowns, each equation weighed by its error."""
    rows = [[sum(x[i] * x[j] / e ** 2 for x, _, e in points) for j in range(3)] +
            [sum(x[i] * y / e ** 2 for x, y, e in points)] for i in range(3)]
    for i in range(3):
        pivot = max(range(i, 3), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(3):
            if k != i:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i])]
    return [row[3] for row in rows]


def draw(rate, number):
    sample = collections.defaultdict(list)
    chosen = random.Random(number)
    for kind, cost, weight in kept:
        if chosen.random() < rate:
            sample[kind].append((cost, weight / rate))
    return sample


def means(sample):
    """Of kinds of which enough were drawn: name, mean, its error."""
    for kind, rows in sample.items():
        if len(rows) >= 30:
            mean = sum(cost for cost, _ in rows) / len(rows)
            square = sum((cost - mean) ** 2 for cost, _ in rows) / (len(rows) - 1)
            yield kind, mean, math.sqrt(square / len(rows))


def calls_of(kind):
    return 1, asked["stock"][kind] / count[kind], asked["post"][kind] / count[kind]


def judge(one_in, own):
    """QPS and transitive CPU by draws of one in so many traces, several times."""
    share = 1 / one_in
    rate = share * sum(count.values()) / len(kept)
    draws = [draw(rate, number) for number in range(1 if one_in == 1 else DRAWS)]
    within = sum(abs(sum(w for _, w in sample[kind]) / count[kind] - 1) <= .1
                 for sample in draws for kind in count)
    print("# 1/%d, %d draws of some %d traces; QPS within 10 %% for %.1f %% of %d kinds, %.1f %% "
          "expected of fair draws" %
          (one_in, len(draws), len(kept) * rate, 100 * within / len(draws) / len(count), len(count),
           100 * sum(fair(int(n), share) for n in count.values()) / len(count)))
    ranged, exact, sizes = [], [], []
    for sample in draws:
        for kind, mean, error in means(sample):
            low = accounted[kind] / count[kind]
            near = min(max(mean, low), low + rest)
            ranged.append((mean - near) / error)
            frameworks = sum(a * b for a, b in zip(calls_of(kind), own))
            exact.append((mean - low - frameworks) / error)
            sizes.append(abs(mean / (low + frameworks) - 1))
    for scores, what in ((ranged, "the range"), (exact, "the value")):
        if scores:
            print("# 1/%d: 95 %% intervals of transitive CPU meet %s for %.1f %% of %d, "
                  "mean error / se %.2f" %
                  (one_in, what, 100 * sum(abs(score) <= 1.96 for score in scores) / len(scores),
                   len(scores), sum(scores) / len(scores)))
    if sizes:
        print("# 1/%d: median error %.1f %%, p95 %.1f %%" %
              (one_in, 100 * sorted(sizes)[len(sizes) // 2], 100 * sorted(sizes)[len(sizes) * 95 // 100]))


# What frameworks do for a request of each program, as one number per program: by the
# requests themselves, all that were kept.
own = [0, 0, 0]
points = [(calls_of(kind), mean - accounted[kind] / count[kind], error)
          for kind, mean, error in means(draw(1, 0))]
if len(points) > 10:
    own = fit(points)
    print("# the frameworks' own work, fitted: %.0f us for a request of front, %.0f of stock, %.0f of "
          "post" % tuple(value / 1e3 for value in own))
for one_in in (1, 10, 100, 1000):
    if sum(count.values()) / one_in <= 1.05 * len(kept):
        judge(one_in, own)
verdict(len(kept) > 0, "requests were kept with what they asked for")
print("1..%d" % number)
