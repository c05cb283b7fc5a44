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
    s.cpu_ns + s.off_cpu_ns FROM span AS s JOIN method AS m USING (method_id) WHERE s.kind = 1""").fetchall()
redis = [row for row in used if row[0] == "redis"]
verdict(all(row[2] == 8 for row in redis), "redis: each got the bytes of its command")
verdict(all(row[3] & 2 for row in redis), "redis: each missed the cache")
queries = [row for row in used if row[0] == "postgresql" and "post_" in row[1]]
verdict(queries and all(row[2] in (25, 25 + 41) for row in queries),
        "postgresql: each got its packet, the first of a connection that of its start as well")
posts = [row for row in used if row[0] == "thrift"]
verdict(abs(sum(row[5] for row in posts) / sum(row[4] for row in posts) - 1) < .02,
        "thrift: time on and off the CPU is all the time that there was")

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
for program in PROGRAMS:
    for name, row in truth[program].items():
        accounted[name[-2:]] += row[1]
        if program == "front":
            count[name[-2:]] += row[0]
share = sum(accounted.values()) / used
kept = list(trees())
print("# %d of %d requests kept; the programs account for %.0f %% of their CPU" %
      (len(kept), sum(count.values()), 100 * share))
# Frameworks' own work cannot be told apart by kind: it is in the upper bound of the truth.
rest = max(0, used - sum(accounted.values())) / sum(count.values())


def judge(one_in):
    sample = collections.defaultdict(list)
    chosen = random.Random(one_in)
    total = len(kept)
    rate = min(1, sum(count.values()) / one_in / total)
    for kind, cost, weight in kept:
        if chosen.random() < rate:
            sample[kind].append((cost, weight / rate))
    within = sum(abs(sum(w for _, w in sample[kind]) / count[kind] - 1) <= .1 for kind in count)
    covered, tried, errors, sizes = 0, 0, [], []
    for kind, rows in sample.items():
        if len(rows) < 30:
            continue
        mean = sum(cost for cost, _ in rows) / len(rows)
        error = math.sqrt(sum((cost - mean) ** 2 for cost, _ in rows) / (len(rows) - 1) / len(rows))
        low = accounted[kind] / count[kind]
        near = min(max(mean, low), low + rest)
        tried += 1
        covered += abs(mean - near) <= 1.96 * error
        errors.append((mean - near) / error)
        sizes.append(abs(mean / near - 1))
    print("# 1/%g: %d traces; QPS within 10 %% for %d of %d kinds" %
          (one_in, sum(map(len, sample.values())), within, len(count)))
    if tried:
        sizes.sort()
        print("# 1/%g: transitive CPU of %d kinds with 30 or more traces: 95 %% intervals meet the "
              "truth's for %d (%.1f %%), mean error / se %.2f, median error %.1f %%" %
              (one_in, tried, covered, 100 * covered / tried, sum(errors) / tried,
               100 * sizes[len(sizes) // 2]))
    return tried, covered


for one_in in (1, 10, 100, 1000):
    if sum(count.values()) / one_in <= 1.05 * len(kept):
        tried, covered = judge(one_in)
verdict(len(kept) > 0, "requests were kept with what they asked for")
print("1..%d" % number)
