# SPDX-License-Identifier: GPL-2.0-or-later
"""Speed and memory of culvert, of a peer, and of no proxy at all, over the same pods; see scripts/bench."""
from __future__ import annotations

import argparse
import datetime
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sides import BUILD, PYTHON, BenchLab, Culvert, NoProxy, Peer, check_congestion, exe, run  # noqa: I001
import report
from loads import FRESH, Loads
from measure import MB, BenchError, machine
from rows import NOISES, Results, as_markdown, as_text, contract_table, growth_tables, load
from sweeps import Connections, Pods, Workloads

ROOT = Path(__file__).resolve().parents[2]
# What a measurement may end with without ending the bench.
ERRORS = (BenchError, AssertionError, RuntimeError, OSError, subprocess.SubprocessError, ValueError)
# Load of the machine above which figures are not worth much.
BUSY = 0.5
SWEEPS = {"connections": Connections, "workloads": Workloads, "pods": Pods}
PARTS = ("loads", "fresh", *SWEEPS)
# Of an option: normal, and with --quick.
DEFAULTS = {"runs": (3, 1), "seconds": (5, 1), "pods": ([2, 30, 110, 250], [2, 30]),
            "connections": ([0, 100, 1000, 8000, 10000, 50000], [100, 1000]), "workloads": ([1000, 10000, 100000], [1000, 10000])}
# Memory is read after everything of a start has calmed down; an idle side must use no CPU for so long; seconds.
SETTLE, IDLE = (3, 1), (5, 2)


class Bench:
    def __init__(self, lab, opts):
        self.lab, self.opts = lab, opts
        self.client, self.server = lab.pod("client"), lab.pod("server")
        self.loads = Loads(self.client, self.server, opts.seconds)
        self.noisy = Loads(lab.pod("noisy"), lab.pod("sink"), opts.seconds)
        self.all_pairs = [self.loads, self.noisy]
        self.sides = [NoProxy(lab)]
        if opts.peer:
            self.sides.append(Peer(lab, opts.peer))
        self.sides.append(Culvert(lab))
        options = {name: getattr(opts, name) for name in DEFAULTS}
        self.results = Results([side.name for side in self.sides], options, self.conditions())

    def conditions(self):
        """What the figures depend on."""
        load = os.getloadavg()[0]
        words = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), "commit": commit(),
                 "machine": machine(), "kernel": platform.release(),
                 "load before": f"{load:.2f}" + (" - THE MACHINE WAS BUSY, the figures are not worth much"
                                                 if load > BUSY else ""),
                 "congestion control": f"{self.lab.congestion_of(self.client)}, in all pods",
                 "runs": f"{self.opts.runs}, alternating, {self.opts.seconds} s for each load"}
        words.update({side.name: side.version() for side in self.proxied()})
        return words

    def proxied(self):
        return [side for side in self.sides if side.is_proxy]

    def say(self, text):
        print(f"bench: {text}", file=sys.stderr, flush=True)

    def leave_out(self, side, words):
        """Notes what this machine cannot do, once."""
        name = f"left out, {side.name}"
        if words not in self.results.conditions.get(name, ""):
            before = self.results.conditions.get(name)
            self.results.conditions[name] = f"{before}; {words}" if before else words
            self.say(f"left out, {side.name}: {words}")

    def attempt(self, side, starts, what):
        """A measurement of a side, whose keys start with this; what it throws is told at the end."""
        try:
            for key, value in what(side).items():
                self.results.values.setdefault(side.name, {}).setdefault(key, []).append(value)
        except ERRORS as err:
            words = " ".join(str(err).split())[:600] or type(err).__name__
            self.results.failures.append(f"{side.name}, {starts.strip('_/')}: {words}")
            self.results.failed.setdefault(side.name, []).append(starts)
            self.say(f"FAILED: {self.results.failures[-1]}")

    def pairs(self, count):
        """So many pairs of pods, whose servers run."""
        for i in range(len(self.all_pairs), count):
            self.all_pairs.append(Loads(self.lab.pod(f"client{i}"), self.lab.pod(f"server{i}"), self.opts.seconds))
        for pair in self.all_pairs[:count]:
            pair.start_servers()
        return self.all_pairs[:count]

    # --- loads -------------------------------------------------------------------

    def memory(self, side):
        time.sleep(self.opts.settle)
        return {"mem2": side.pss() / MB} if side.is_proxy else {}

    def see_tls(self, side):
        """The first connection, and meanwhile somebody who reads what it agrees on."""
        if not side.is_proxy:
            self.loads.warm_up()
            return {}
        ear = self.client.popen(PYTHON, Path(__file__).with_name("hello.py"), stderr=subprocess.DEVNULL)
        ear.stdout.readline()
        self.loads.warm_up()
        seen = ear.communicate(timeout=15)[0].strip()
        self.results.conditions[f"TLS, {side.name}"] = seen or "not seen on the wire"
        return {}

    def one_run(self, side):
        pods, noisy = (self.client, self.server), (self.noisy.client, self.noisy.server)
        with side.session(pods):
            self.attempt(side, "mem2", self.memory)
            self.attempt(side, "TLS", self.see_tls)
            for starts, what in self.loads.basic():
                self.attempt(side, starts, what)
            side.enrol(noisy)
            self.attempt(side, "quiet_", lambda side: self.noisy.warm_up() or {})
            for kind in NOISES:
                self.attempt(side, f"quiet_{kind}_", lambda side, kind=kind: self.loads.beside(self.noisy, kind))
            side.release(noisy)
        return {}

    def run_loads(self):
        self.noisy.start_servers()
        for number in range(1, self.opts.runs + 1):
            for side in self.sides:
                self.say(f"loads, run {number} of {self.opts.runs}: {side.name}")
                self.attempt(side, "", self.one_run)

    def fresh(self, side):
        with side.session((self.client, self.server), **FRESH):
            self.loads.warm_up()
            for at_a_time in (1, 32):
                self.attempt(side, f"fresh{at_a_time}_", lambda side, n=at_a_time: self.loads.fresh(side, n))
        return {}

    def run_fresh(self):
        for number in range(1, self.opts.runs + 1):
            for side in self.proxied():
                self.say(f"fresh TLS sessions, run {number} of {self.opts.runs}: {side.name}")
                self.attempt(side, "fresh", self.fresh)

    def run(self):
        self.lab.write_mesh()
        self.lab.start_agent()
        self.loads.start_servers()
        for part in self.opts.only or PARTS:
            if part in SWEEPS:
                SWEEPS[part](self).run()
            else:
                getattr(self, f"run_{part}")()


def commit():
    """Of the tree that this file is in."""
    git = ("git", "-c", "safe.directory=*", "-C", ROOT)
    res = run(*git, "rev-parse", "--short=12", "HEAD", check=False)
    if res.returncode != 0:
        return "unknown"
    changed = run(*git, "status", "--porcelain", "--untracked-files=no", check=False).stdout.strip()
    return res.stdout.strip() + (" with changes" if changed else "")


# --- the command ---------------------------------------------------------------


def numbers(least, most):
    """Type of an option: rising numbers within limits."""
    def parse(text):
        try:
            found = [int(word.replace("_", "")) for word in text.split(",")]
        except ValueError:
            found = []
        if not found or found != sorted(set(found)) or found[0] < least or found[-1] > most:
            raise argparse.ArgumentTypeError(f"'{text}' is not a rising list of numbers from {least:,} to {most:,}")
        return found
    return parse


def number(least, most):
    parse = numbers(least, most)

    def parse_one(text):
        found = parse(text)
        if len(found) != 1:
            raise argparse.ArgumentTypeError(f"'{text}' is not one number")
        return found[0]
    return parse_one


def parts(text):
    found = text.split(",")
    for part in found:
        if part not in PARTS:
            raise argparse.ArgumentTypeError(f"'{part}' is none of {', '.join(PARTS)}")
    return found


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench", add_help=False, allow_abbrev=False)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=number(1, 50))
    parser.add_argument("--seconds", type=number(1, 600))
    parser.add_argument("--pods", type=numbers(2, 1000))
    parser.add_argument("--connections", type=numbers(0, 100000))
    parser.add_argument("--workloads", type=numbers(1, 300000))
    parser.add_argument("--only", type=parts)
    parser.add_argument("--congestion")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--table", choices=("text", "markdown"), default="text")
    parser.add_argument("--from", type=Path, dest="earlier")
    opts = parser.parse_args()
    for name, values in DEFAULTS.items():
        if getattr(opts, name) is None:
            setattr(opts, name, values[opts.quick])
    opts.settle, opts.idle = SETTLE[opts.quick], IDLE[opts.quick]
    opts.peer = os.environ.get("CULVERT_BENCH_PEER")
    if not opts.earlier:
        check(parser, opts)
    return opts


def check(parser, opts):
    """Whatever would end a long run late is found before it starts."""
    if os.geteuid() != 0:
        parser.error("needs root, to make network namespaces")
    if opts.congestion and (words := check_congestion(opts.congestion)):
        parser.error(words)
    if opts.peer and not os.access(opts.peer, os.X_OK):
        parser.error(f"CULVERT_BENCH_PEER: no program at {opts.peer}")
    if opts.pods[-1] < 4 and "pods" in (opts.only or PARTS):
        parser.error("--pods: the last number must be 4 or more")
    for tool in ("ip", "ss", "iperf3", "curl", "sysctl", "protoc"):
        if not shutil.which(tool):
            parser.error(f"{tool} is not installed")
    for path in (opts.json, opts.report):
        if path and not path.resolve().parent.is_dir():
            parser.error(f"there is no folder {path.resolve().parent}")
    for name in ("culvertd", "culvert-broker", "culvert-silo", "culvert-cni-agent"):
        try:
            exe(name)
        except RuntimeError:
            parser.error(f"{name} is not built in {BUILD}")


def raise_limits():
    """Every process may have as many descriptors as in a container, or as the machine lets us."""
    most = int(Path("/proc/sys/fs/nr_open").read_text())
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except ValueError:  # no CAP_SYS_RESOURCE
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def show(results, kind):
    tables = [(contract_table(results), 1), *((lines, 2) for lines in growth_tables(results).values())]
    if kind == "markdown":
        print("\n\n".join(as_markdown(lines, left) for lines, left in tables if len(lines) > 1))
        return
    for lines, left in tables:
        if len(lines) > 1:
            print(as_text(lines, left) + "\n")
    width = max(map(len, results.conditions))
    for name, words in results.conditions.items():
        print(f"{name:<{width}}  {words}")
    print("1 KB each way for requests; MB = 1,000,000 bytes, GB likewise; median of the runs")
    for failure in results.failures:
        print(f"FAILED  {failure}")


def end(number_of, frame):
    raise SystemExit(128 + number_of)


def measure(opts):
    raise_limits()
    for signal_number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signal_number, end)
    with tempfile.TemporaryDirectory(prefix="cvb-") as tmp, BenchLab(Path(tmp), opts.congestion) as lab:
        os.chmod(tmp, 0o755)  # a proxy may read the mesh file under a uid of its own
        start = time.monotonic()
        bench = Bench(lab, opts)
        try:
            bench.run()
        except Exception:
            if lab.daemons:
                print(f"--- end of the last log\n{lab.log()[-4000:]}", file=sys.stderr)
            raise
        bench.results.conditions["took"] = f"{(time.monotonic() - start) / 60:.1f} minutes"
    return bench.results


def earlier(path):
    try:
        return load(path.read_text())
    except (OSError, ValueError, TypeError) as err:
        raise SystemExit(f"bench: --from {path}: {err}") from None


def main():
    opts = arguments()
    results = earlier(opts.earlier) if opts.earlier else measure(opts)
    if opts.json:
        opts.json.write_text(results.text())
    if opts.report:
        report.write(results, opts.report)
    show(results, opts.table)
    return 1 if results.failures else 0


if __name__ == "__main__":
    sys.exit(main())
