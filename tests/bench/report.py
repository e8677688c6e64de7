# SPDX-License-Identifier: GPL-2.0-or-later
"""A page with pictures of the results of a bench; run alone, from the JSON file of an earlier one.

usage: report.py RESULTS.json DIR
"""
from __future__ import annotations

import sys
from pathlib import Path

from plot import Panel, Series, svg
from rows import CONTRACT, GROWTH, as_markdown, contract_table, growth_tables, load

# What is drawn against all that grows: title, and (metric, name, dashed) of its lines.
PANELS = [
    ("bulk, 1 stream: Gbit/s", [("gbps", "", False)]),
    ("64 busy connections: operations per second", [("rate", "", False)]),
    ("1 busy connection: latency, median and p99: us", [("p50", "", False), ("p99", " p99", True)]),
    ("memory (PSS), no load: MB", [("mem", "", False)]),
]
TITLES = {"pods": "pods on the node", "connections": "open idle connections", "workloads": "known workloads"}


def series_of(results, what, metric, name, dashed, least=0):
    return [Series(side + name, side, dashed=dashed,
                   points={n: results.values.get(side, {}).get(f"{what}/{n}/{metric}", [])
                           for n in results.points(what) if n >= least})
            for side in results.sides if side != "no proxy"]


def has_points(panel):
    return any(values for s in panel.series for values in s.points.values())


def against(results, what):
    """Panels for one thing that grows."""
    panels = []
    for title, lines in PANELS:
        series = [s for metric, name, dashed in lines for s in series_of(results, what, metric, name, dashed)]
        panels.append(Panel(title, results.points(what), TITLES[what], series))
    return [p for p in panels if has_points(p)]


def growth_panels(results):
    panels = []
    for words, what, metric, _, least, _ in GROWTH:
        if metric == "mem":
            continue
        xs = [n for n in results.points(what) if n >= least]
        panels.append(Panel(words, xs, TITLES[what], series_of(results, what, metric, "", False, least)))
    return [p for p in panels if has_points(p)]


def pictures(results):
    """File name -> (alternative text, picture)."""
    found = {}
    for what in CONTRACT:
        panels = against(results, what)
        if panels:
            title = f"against {TITLES[what]}"
            found[f"{what}.svg"] = (title, svg(f"Throughput, latency and memory {title}", panels))
    panels = growth_panels(results)
    if panels:
        found["growth.svg"] = ("how cost grows", svg("How cost grows", panels))
    return found


def conditions(results):
    return as_markdown([["", ""], *([name, words] for name, words in results.conditions.items())], left=2)


def page(results, names):
    """The text, with the pictures of these names."""
    out = ["# What culvert costs", "",
           f"Written by `scripts/bench --report` on {results.conditions['date']} at commit "
           f"{results.conditions['commit']}. Median of the runs, in brackets the least and the greatest.", "",
           "## Conditions", "", conditions(results), ""]
    table = contract_table(results, with_spread=True)
    if len(table) > 1:
        out += ["## The table", "", as_markdown(table), "", NOTES, ""]
    for name, alt in names.items():
        if name != "growth.svg":
            out += [f"## {alt[0].upper()}{alt[1:]}", "", f"![{alt}]({name})", ""]
    tables = growth_tables(results)
    if tables:
        out += ["## How cost grows", "", "The last columns: by how much a cost grows when there are ten times as many, overall "
                "or in the last step, whichever is steeper; 1 is constant, 10 is linear, 100 would be quadratic.", ""]
        for lines in tables.values():
            out += [as_markdown(lines, left=2), ""]
    if "growth.svg" in names:
        out += [f"![{names['growth.svg']}](growth.svg)", ""]
    if results.failures:
        out += ["## Failed", "", *(f"* {words}" for words in results.failures), ""]
    return "\n".join(out)


NOTES = """1 KB each way for requests; MB is 1,000,000 bytes, GB likewise, KiB is 1,024. CPU is the on-CPU time of all processes of a
side, which serves both ends. A fresh TLS session each: both sides run with `POOL_MAX_STREAMS_PER_CONNECTION=1` and
`POOL_UNUSED_RELEASE_TIMEOUT=0s`, and the accepted connections are counted. The peak of memory is PSS plus what each process had
resident at most above what it has. Connections are held over pooled tunnels between two pods, or between more pairs where a
process may not have as many descriptors."""


def write(results, folder):
    folder.mkdir(parents=True, exist_ok=True)
    drawn = pictures(results)
    for name, (_, picture) in drawn.items():
        (folder / name).write_text(picture)
    (folder / "report.md").write_text(page(results, {name: alt for name, (alt, _) in drawn.items()}))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write(load(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
