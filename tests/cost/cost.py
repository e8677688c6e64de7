# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts the instructions of tests/cost/cost with callgrind and compares them with figures.json: see scripts/cost.

    cost.py BUILD [--json | --update]
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FIGURES = pathlib.Path(__file__).with_name("figures.json")
TOLERANCE = 0.10
# Callgrind takes ten seconds on a machine with nothing else to do.
TIMEOUT = 600
# What each operation is, in the order of the table; unknown ones come last, by name.
WORDS = {
    "record-16k-seal": "one TLS record of 16 KB sealed",
    "record-16k-open": "... and opened",
    "record-64-seal": "one TLS record of 64 bytes sealed",
    "record-64-open": "... and opened",
    "handshake-client": "mutual TLS 1.3 handshake, client's side",
    "handshake-server": "... server's side",
    "request-client": "HBONE CONNECT over HTTP/2, 1 KB each way, client's side",
    "request-server": "... server's side",
    "route-lookup": "way to one of 1,000 services, from a silo's cache",
    "view-cut": "view of a service, from the broker's store",
    "policy-check": "one connection judged by 20 policies",
    "xds-load": "one of 10,000 workloads that come at once",
    "xds-update": "one workload of 10,000 changes",
}


class Skipped(Exception):
    """Counting makes no sense here; the text says why."""


class Failed(Exception):
    """Counting did not come about; the text says why."""


def about(program):
    """Compiler, processor and kind of the build."""
    return subprocess.run([program, "--about"], check=True, text=True, capture_output=True).stdout.split("\n")[:3]


def has_avx2():
    """Callgrind shows programs one fixed processor with AVX2, or a lesser one; code chooses by it."""
    try:
        return re.search(r"^flags\s*:.*\bavx2\b", pathlib.Path("/proc/cpuinfo").read_text(), re.M) is not None
    except OSError:
        return False


def must_be_able(program):
    """Refuses what could not be compared. Returns compiler and processor."""
    if not shutil.which("valgrind"):
        raise Skipped("no valgrind here")
    if not program.exists():
        raise Failed(f"{program} is not there: build it first (scripts/build)")
    compiler, machine, kind = about(program)
    if kind != "optimised":
        raise Skipped(f"the build is {kind}")
    if machine == "x86_64" and not has_avx2():
        raise Skipped("the processor has no AVX2, for which the figures are")
    return compiler, machine


def total(path):
    """Instructions in one file of callgrind's."""
    found = re.search(r"^totals: (\d+)$", path.read_text(), re.M)
    if not found:
        raise Failed(f"callgrind wrote no sum into {path.name}")
    return int(found[1])


def count(program):
    """Instructions of each operation, by its name."""
    with tempfile.TemporaryDirectory(prefix="culvert-cost-") as folder:
        out = pathlib.Path(folder) / "out"
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=cost_count",
             "--dump-after=cost_dump", f"--callgrind-out-file={out}", program],
            text=True, capture_output=True, timeout=TIMEOUT)
        if run.returncode != 0:
            raise Failed(f"the program ended with {run.returncode}:\n{run.stderr}")
        figures = {}
        # The n-th dump belongs to the n-th line.
        for number, line in enumerate(run.stdout.splitlines(), 1):
            name, times = line.split()
            figures[name] = round(total(out.with_name(f"out.{number}")) / int(times))
    if not figures or min(figures.values()) == 0:
        raise Failed(f"callgrind has counted nothing: {figures}")
    return figures


def judge(stored, now):
    """One row for each figure, stored or counted."""
    rows = []
    order = list(WORDS)
    for name in sorted(stored.keys() | now.keys(), key=lambda n: (order.index(n) if n in WORDS else len(order), n)):
        old, new = stored.get(name), now.get(name)
        ratio = new / old if old and new else None
        if ratio is None:
            verdict = "not stored" if new else "not counted"
        elif ratio > 1 + TOLERANCE:
            verdict = "over"
        elif ratio < 1 - TOLERANCE:
            verdict = "lower"
        else:
            verdict = "ok"
        rows.append({"name": name, "what": WORDS.get(name, ""), "stored": old, "now": new, "ratio": ratio and round(ratio, 3),
                     "verdict": verdict})
    return rows


def measure(program):
    """The whole answer: status ok, over, skipped or failed."""
    stored = json.loads(FIGURES.read_text())
    report = {"status": "ok", "reason": "", "tolerance": TOLERANCE, "compiler": stored["compiler"],
              "machine": stored["machine"], "figures": judge(stored["instructions"], {})}
    try:
        here = must_be_able(program)
        if here != (stored["compiler"], stored["machine"]):
            raise Skipped(f"the figures are of {stored['compiler']} on {stored['machine']}, this is {' on '.join(here)}")
        report["figures"] = judge(stored["instructions"], count(program))
        if not all(row["verdict"] in ("ok", "lower") for row in report["figures"]):
            report["status"] = "over"
    except Skipped as skipped:
        report.update(status="skipped", reason=str(skipped))
    except (Failed, OSError, subprocess.SubprocessError) as failed:
        report.update(status="failed", reason=str(failed))
    return report


def number(value):
    return "-" if value is None else f"{value:,}"


REMARKS = {
    "ok": "",
    "over": "OVER by more than 10 %",
    "lower": "less than stored: lower it (scripts/cost --update)",
    "not stored": "no stored figure (scripts/cost --update)",
    "not counted": "stored, but not counted any more (scripts/cost --update)",
}


def print_table(report):
    if report["status"] in ("skipped", "failed"):
        print(f"{report['status']}: {report['reason']}")
        return
    print(f"instructions of one operation, {report['compiler']}, {report['machine']}\n")
    print(f"{'name':<18} {'stored':>12} {'now':>12} {'ratio':>7}  what")
    for row in report["figures"]:
        ratio = "-" if row["ratio"] is None else f"{row['ratio']:.3f}"
        print(f"{row['name']:<18} {number(row['stored']):>12} {number(row['now']):>12} {ratio:>7}  "
              f"{REMARKS[row['verdict']] or row['what']}")


def update(program):
    try:
        compiler, machine = must_be_able(program)
        figures = {"compiler": compiler, "machine": machine, "instructions": count(program)}
    except (Skipped, Failed) as reason:
        print(f"cost: nothing is stored: {reason}", file=sys.stderr)
        return 2
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n")
    print(f"stored in {os.path.relpath(FIGURES)}")
    return 0


def main():
    program = pathlib.Path(sys.argv[1]).absolute() / "tests" / "cost" / "cost"
    if "--update" in sys.argv[2:]:
        return update(program)
    report = measure(program)
    if "--json" in sys.argv[2:]:
        print(json.dumps(report, indent=2))
    else:
        print_table(report)
    return {"ok": 0, "skipped": 0, "over": 1, "failed": 2}[report["status"]]


if __name__ == "__main__":
    sys.exit(main())
