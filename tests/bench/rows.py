# SPDX-License-Identifier: GPL-2.0-or-later
"""Results of a bench, and the tables that are made of them: the contract, and how cost grows."""
from __future__ import annotations

import json
import math
import statistics
from dataclasses import asdict, dataclass, field

# What a noisy pod does beside a quiet one.
NOISES = {"bulk": "8 bulk streams", "storm": "a storm of new connections", "requests": "64 busy request streams"}
# Of what grows, the points that the contract is about; the largest measured one stands in.
CONTRACT = {"pods": 110, "connections": 8000, "workloads": 100000}


@dataclass
class Results:
    """Everything a report needs; goes to a JSON file and comes from one."""

    sides: list
    options: dict
    conditions: dict
    values: dict = field(default_factory=dict)    # side -> key -> one value a run
    failed: dict = field(default_factory=dict)    # side -> beginnings of keys
    failures: list = field(default_factory=list)  # in words

    def median(self, side, key):
        values = self.values.get(side, {}).get(key)
        return statistics.median(values) if values else None

    def has_failed(self, side, key):
        return any(key.startswith(start) for start in self.failed.get(side, ()))

    def points(self, what):
        return self.options[what]

    def contract_point(self, what):
        points = self.points(what)
        return CONTRACT[what] if CONTRACT[what] in points else points[-1]

    def text(self):
        return json.dumps(asdict(self), indent=1) + "\n"


def load(text):
    return Results(**json.loads(text))


# Words, metric, decimals; then the contract: ("ratio", most or least of the peer's, +1 = more is better), or
# ("at most", limit), or None. `added` rows are compared after taking off what no proxy has.
ROWS = [
    ("bulk, 1 stream: CPU seconds per GB, both ends", "bulk1_cpu", 2, ("ratio", 0.75, -1)),
    ("bulk, 1 stream: Gbit/s", "bulk1_gbps", 2, ("ratio", 1.4, +1)),
    ("bulk, 8 streams: CPU seconds per GB, both ends", "bulk8_cpu", 2, ("ratio", 0.7, -1)),
    ("bulk, 8 streams: Gbit/s", "bulk8_gbps", 2, None),
    ("request/response, 1 connection: latency, median us", "rr1_p50", 0, ("added", 0.7, -1)),
    ("request/response, 1 connection: p99 us", "rr1_p99", 0, None),
    ("request/response, 1 connection: CPU us per operation", "rr1_cpu", 1, None),
    ("request/response, 64 connections: CPU us per operation", "rr64_cpu", 1, ("ratio", 0.6, -1)),
    ("request/response, 64 connections: operations per second", "rr64_rate", 0, ("ratio", 1.5, +1)),
    ("request/response, 64 connections: p99 us", "rr64_p99", 0, None),
    ("connect, request, close, 1 at a time: CPU us", "crr1_cpu", 0, ("ratio", 0.4, -1)),
    ("connect, request, close, 1 at a time: per second", "crr1_rate", 0, None),
    ("connect, request, close, 32 at a time: CPU us", "crr32_cpu", 0, ("ratio", 0.4, -1)),
    ("connect, request, close, 32 at a time: per second", "crr32_rate", 0, None),
    ("the same, a fresh TLS session each, 1 at a time: CPU us", "fresh1_cpu", 0, ("ratio", 0.5, -1)),
    ("the same, a fresh TLS session each, 1 at a time: per second", "fresh1_rate", 0, ("ratio", 2, +1)),
    ("the same, a fresh TLS session each, 32 at a time: CPU us", "fresh32_cpu", 0, ("ratio", 0.5, -1)),
    ("the same, a fresh TLS session each, 32 at a time: per second", "fresh32_rate", 0, ("ratio", 2, +1)),
    *[(f"quiet pod beside {words}: p99 us", f"quiet_{kind}_p99", 0, ("at most", 600)) for kind, words in NOISES.items()],
    *[(f"quiet pod beside {words}: operations per second", f"quiet_{kind}_rate", 0, ("at least", 3500))
      for kind, words in NOISES.items()],
    ("memory (PSS), 2 pods, no open tunnel: MB", "mem2", 1, ("at most", 8)),
    ("memory (PSS), {pods:,} pods, no open tunnel: MB", "pods/{pods}/mem", 1, ("at most", 20)),
    ("memory (PSS), {pods:,} pods, of one silo: KiB", "pods/{pods}/silo_kb", 0, ("at most", 128)),
    ("memory (cgroup without page cache), {pods:,} pods: MB", "pods/{pods}/cgroup", 1, ("at most", 25)),
    # 6 KB, and 32 KB for each end of a tunnel, which a hundred of them share.
    ("memory (PSS) of an open connection, both ends, with its share of a tunnel: KiB",
     "connections/{connections}/held_kb", 1, ("at most", 6.6)),
    ("memory (PSS) left of {connections:,} connections, 5 s after the last tunnel: KiB",
     "connections/{connections}/left_kb", 0, ("at most", 512)),
    ("memory (PSS), {workloads:,} workloads from a file: MB", "workloads/{workloads}/file_mem", 1, ("at most", 50)),
    ("memory (PSS), peak while loading {workloads:,} workloads from istiod: MB", "workloads/{workloads}/peak", 1,
     ("at most", 60)),
    ("memory (PSS), {workloads:,} workloads from istiod, afterwards: MB", "workloads/{workloads}/mem", 1, None),
    ("ZDS Add to Ack: ms", "adds/2/add", 2, ("at most", 5)),
    ("{pods:,} pods at start, until ready: s", "pods/{pods}/start", 2, ("at most", 1)),
    ("CPU with {pods:,} pods and no open tunnel: ms per s", "pods/{pods}/idle_cpu", 2, ("at most", 0.05)),
]

# Words, what grows, metric, decimals, least point, whether it is judged.
GROWTH = [
    ("update of one workload, until a new connection sees it: ms", "workloads", "update", 2, 1000, True),
    ("update of one workload: CPU us", "workloads", "update_cpu", 0, 1000, True),
    ("policy change, until an open connection is cut: ms", "connections", "policy", 2, 100, True),
    ("policy change, all open connections judged: CPU ms", "connections", "policy_cpu", 1, 100, True),
    ("start, until every pod is served: s", "pods", "start", 3, 2, True),
    ("start: CPU ms", "pods", "start_cpu", 0, 2, True),
    ("scrape of all metrics: ms", "pods", "scrape", 2, 2, True),
    ("scrape of all metrics: CPU ms", "pods", "scrape_cpu", 2, 2, True),
    ("whole state from istiod, until answered: s", "workloads", "load_s", 2, 1000, True),
    ("memory (PSS): MB", "pods", "mem", 1, 2, True),
    ("memory (PSS): MB", "connections", "mem", 1, 100, True),
    ("memory (PSS): MB", "workloads", "mem", 1, 1000, True),
]
# Linear growth is tenfold for tenfold, quadratic a hundredfold; above this it is called quadratic.
TOO_STEEP = 30


def ratio(results, key, kind):
    """culvert's value over the peer's, or None."""
    ours, peers = results.median("culvert", key), results.median("peer", key)
    if kind == "added":
        base = results.median("no proxy", key)
        if base is None or ours is None or peers is None:
            return None
        ours, peers = ours - base, peers - base
    return ours / peers if ours is not None and peers else None


def verdict(results, key, goal):
    """Goal in words, and whether it is reached; empty where that cannot be said."""
    if not goal:
        return "", ""
    kind, limit = goal[:2]
    if kind in ("at most", "at least"):
        value = results.median("culvert", key)
        words = f"{'<=' if kind == 'at most' else '>='} {limit:g}"
        if value is None:
            return words, ""
        return words, "yes" if (value <= limit if kind == "at most" else value >= limit) else "NO"
    better = goal[2]
    words = f"{'<=' if better < 0 else '>='} {limit:g} x peer" + (", added" if kind == "added" else "")
    value = ratio(results, key, kind)
    if value is None:
        return words, ""
    reached = value <= limit if better < 0 else value >= limit
    return words, f"{'yes' if reached else 'NO'} ({value:.2f})"


def cell(results, side, key, digits, with_spread=False):
    if results.has_failed(side, key):
        return "failed"
    value = results.median(side, key)
    # A proxy that is not there costs nothing; a row about costs has no such column.
    if value is None or (side == "no proxy" and key.endswith("_cpu")):
        return "-"
    values = results.values[side][key]
    spread = f" ({min(values):,.{digits}f} to {max(values):,.{digits}f})" if with_spread and len(values) > 1 else ""
    return f"{value:,.{digits}f}{spread}"


def contract_table(results, with_spread=False):
    """Lines of cells, the first of headings; rows of parts that were not run are left out."""
    lines = [["", *results.sides, "goal", "reached"]]
    points = {what: results.contract_point(what) for what in CONTRACT}
    for words, key, digits, goal in ROWS:
        # A goal is for the size that the contract names.
        if any(f"{{{what}}}" in key and points[what] != CONTRACT[what] for what in CONTRACT):
            goal = None
        key = key.format(**points)
        cells = [cell(results, side, key, digits, with_spread) for side in results.sides]
        if any(text != "-" for text in cells):
            lines.append([words.format(**points), *cells, *verdict(results, key, goal)])
    return lines


def steepness(series):
    """By how much a cost grows for ten times as many: overall, or in the last step when that is steeper."""
    def per_tenfold(first, last):
        (n, a), (m, b) = first, last
        return (max(b, 1e-9) / max(a, 1e-9)) ** (1 / math.log10(m / n))
    steep = per_tenfold(series[0], series[-1])
    before, last = series[-2], series[-1]
    return max(steep, per_tenfold(before, last)) if last[0] >= 2 * before[0] else steep


def growth_series(results, side, what, metric, least):
    found = [(n, results.median(side, f"{what}/{n}/{metric}")) for n in results.points(what) if n >= least]
    return [(n, value) for n, value in found if value is not None]


def growth_tables(results):
    """What grows -> lines of cells, the first of headings."""
    tables = {}
    for words, what, metric, digits, least, is_judged in GROWTH:
        points = [n for n in results.points(what) if n >= least]
        for side in results.sides:
            series = growth_series(results, side, what, metric, least)
            has_failed = any(results.has_failed(side, f"{what}/{n}/{metric}") for n in points)
            if not series and not has_failed:
                continue
            shown = [cell(results, side, f"{what}/{n}/{metric}", digits) if n >= least else ""
                     for n in results.points(what)]
            steep = steepness(series) if len(series) > 1 else None
            judged = "" if steep is None or not is_judged else "NO" if steep > TOO_STEEP else "yes"
            head = [what, "", *(f"{n:,}" for n in results.points(what)), "x for tenfold", "not quadratic"]
            tables.setdefault(what, [head]).append(
                [words, side, *shown, "" if steep is None else f"{steep:.1f}", judged])
    return tables


def as_text(lines, left=1):
    """Columns of plain text; the first ones are set to the left."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))).rstrip()
                     for line in lines)


def as_markdown(lines, left=1):
    rule = ["---" if i < left else "--:" for i in range(len(lines[0]))]
    return "\n".join("| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in (lines[0], rule, *lines[1:]))
