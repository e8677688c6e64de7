# SPDX-License-Identifier: GPL-2.0-or-later
"""Speed and memory of culvert, of a peer, and of no proxy at all, over the same two pods; see scripts/bench.

A *side* is one of these three. Loads run from pod `client` to pod `server`,
both ends of the mesh on this one node, so that a side's CPU seconds are those
of both ends. What a side costs is read from /proc for all its processes.
"""
from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from culvert_e2e.lab import BUILD, Lab, exe, run, wait_for  # noqa: E402

IPERF_PORT = 5201
RR_PORT = 5202
HOLD_PORT = 5203
# Memory is read after everything of the start has calmed down, seconds.
SETTLE = 3
# Time over which an idle side must use no CPU, seconds.
IDLE = 5
MB = 1_000_000
# Tunnels without streams are closed after this, so that the row after them need not wait for minutes.
TUNNEL_IDLE = 5
# Memory of many connections is read this long after the last tunnel closed, seconds.
AFTER = 5


class BenchError(Exception):
    """A load that failed: its row stays empty, the bench goes on and ends with status 1."""


class BenchLab(Lab):
    mark = "cvb"

    def start_peer(self, path, **extra):
        """Starts a ztunnel-compatible proxy as upstream's chart does, as far as the environment goes."""
        if not self.mesh_path.exists():
            self.write_mesh()
        log = self.tmp / f"peer-{len(self.daemons)}.log"
        env = {k: v for k, v in self.env(**extra).items() if not k.startswith("CULVERT_")}
        with open(log, "w") as out:
            proc = subprocess.Popen(["ip", "netns", "exec", self.node, path, "proxy", "ztunnel"],
                                    env=env, stdout=out, stderr=subprocess.STDOUT)
        self.daemons.append(proc)
        self.logs[proc.pid] = log
        self.wait_ready()
        return proc


# --- what processes cost ---------------------------------------------------


def cpu_seconds(pids):
    """On-CPU time of all threads of these processes (proc(5), schedstat: nanoseconds)."""
    total = 0
    for pid in pids:
        for stat in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                total += int(stat.read_text().split()[0])
            except (FileNotFoundError, ProcessLookupError):
                continue
    return total / 1e9


def pss_bytes(pid):
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise BenchError(f"no Pss of process {pid}")


# --- sides -----------------------------------------------------------------


class NoProxy:
    name = "no proxy"

    def __init__(self, lab):
        self.lab = lab

    def start(self, **env):
        pass

    def stop(self):
        pass

    def pids(self):
        return []

    def pss(self):
        return sum(map(pss_bytes, self.pids()))

    def enrol(self, pods):
        pass

    def release(self, pods):
        pass


class Culvert(NoProxy):
    name = "culvert"
    proc = None

    def start(self, **env):
        self.proc = self.lab.start_daemon(**env)

    def stop(self):
        self.lab.stop_daemon(self.proc, timeout=30)

    def pids(self):
        return list(self.lab.tree(self.proc))

    def enrol(self, pods):
        self.lab.add(*pods)

    def release(self, pods):
        self.lab.delete(*pods)

    def silo_bytes(self):
        """PSS of one silo, on the average."""
        silos = self.lab.silos_of(self.proc)
        return sum(map(pss_bytes, silos)) / len(silos)


class Peer(Culvert):
    name = "peer"

    def __init__(self, lab, path):
        super().__init__(lab)
        self.path = path

    def start(self, **env):
        self.proc = self.lab.start_peer(self.path, **env)


# --- loads -----------------------------------------------------------------


class Loads:
    """The loads between two pods; each returns {metric: value} for one side."""

    is_serving = False

    def __init__(self, client, server, seconds):
        self.client, self.server, self.seconds = client, server, seconds
        self.rr = next((p for p in (BUILD / "tests/bench/rr", BUILD / "rr") if p.is_file()), None)
        if not self.rr:
            raise SystemExit(f"bench: tests/bench/rr is not built in {BUILD}")
        for pod in (client, server):
            # Tens of thousands of short connections leave ports in TIME_WAIT, whoever proxies them.
            pod.run("sysctl", "-qw", "net.ipv4.tcp_tw_reuse=1", "net.ipv4.ip_local_port_range=2048 65000",
                    "net.ipv4.ip_local_reserved_ports=5201-5203,15000-15100")

    def start_servers(self):
        if self.is_serving:
            return
        self.is_serving = True
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.server.popen("iperf3", "-s", "-p", IPERF_PORT, **quiet)
        self.server.popen(self.rr, "--serve", RR_PORT, **quiet)
        self.server.popen(*HOLD, "serve", HOLD_PORT, **quiet)
        for port in (IPERF_PORT, RR_PORT, HOLD_PORT):
            self.server.wait_port(port)

    def _client(self, *args):
        try:
            res = self.client.run(*args, check=False, timeout=self.seconds + 30)
        except subprocess.TimeoutExpired:
            raise BenchError(f"{args[0]} did not end") from None
        if res.returncode != 0:
            raise BenchError(f"{' '.join(map(str, args))}: {res.stdout[-400:]}{res.stderr[-400:]}".strip())
        return json.loads(res.stdout)

    def rr_once(self, *args, seconds=None):
        return self._client(self.rr, "--host", self.server.ip, "--port", RR_PORT,
                            "--seconds", seconds or self.seconds, *args)

    def warm_up(self):
        """Records, certificates and the tunnel come with the first connection; they are not part of a load."""
        def answered():
            try:
                return self.rr_once("--connections", 2, seconds=1)
            except BenchError as err:
                self.last = err
                return None
        try:
            wait_for("a first answer", answered, timeout=20)
        except AssertionError as err:
            raise BenchError(f"{err}: {self.last}") from None

    def bulk(self, side, streams):
        before = cpu_seconds(side.pids())
        res = self._client("iperf3", "-c", self.server.ip, "-p", IPERF_PORT, "-t", self.seconds, "-P", streams, "-J")
        got = res["end"]["sum_received"]
        cpu = cpu_seconds(side.pids()) - before
        return {f"bulk{streams}_gbps": got["bits_per_second"] / 1e9, f"bulk{streams}_cpu": cpu * 1e9 / got["bytes"]}

    def requests(self, side, connections):
        before = cpu_seconds(side.pids())
        res = self.rr_once("--connections", connections)
        cpu = cpu_seconds(side.pids()) - before
        key = f"rr{connections}"
        return {f"{key}_rate": res["ops"] / res["seconds"], f"{key}_p50": res["p50_us"], f"{key}_p99": res["p99_us"],
                f"{key}_cpu": cpu * 1e6 / res["ops"]}

    def connects(self, side, at_a_time):
        before = cpu_seconds(side.pids())
        res = self.rr_once("--connections", at_a_time, "--reconnect")
        cpu = cpu_seconds(side.pids()) - before
        return {f"crr{at_a_time}_rate": res["ops"] / res["seconds"], f"crr{at_a_time}_cpu": cpu * 1e6 / res["ops"]}

    def hold(self, count):
        """A process that holds idle connections until it is told to close them (hold.py)."""
        proc = self.client.popen(*HOLD, "open", self.server.ip, HOLD_PORT, count, stdin=subprocess.PIPE)
        self.await_word(proc, "open")
        return proc

    def await_word(self, proc, word):
        said = proc.stdout.readline().strip()
        if said != word:
            raise BenchError(f"connections to hold: {said or 'ended'} instead of {word}")

    def noise(self, kind):
        """A background load of the noisy pods: command of its client."""
        if kind == "bulk":
            return ("iperf3", "-c", self.server.ip, "-p", IPERF_PORT, "-t", self.seconds + 4, "-P", 8)
        storm = ("--reconnect",) if kind == "storm" else ()
        return (self.rr, "--host", self.server.ip, "--port", RR_PORT, "--seconds", self.seconds + 4,
                "--connections", 32 if storm else 64, *storm)

    def all(self):
        return [lambda side: self.bulk(side, 1), lambda side: self.bulk(side, 8),
                lambda side: self.requests(side, 1), lambda side: self.requests(side, 64),
                lambda side: self.connects(side, 1), lambda side: self.connects(side, 32)]


HOLD = (os.environ.get("CULVERT_PYTHON", sys.executable), Path(__file__).with_name("hold.py"))


# --- the bench -------------------------------------------------------------


class Bench:
    def __init__(self, lab, opts):
        self.lab, self.opts = lab, opts
        self.client, self.server = lab.pod("client"), lab.pod("server")
        self.loads = Loads(self.client, self.server, opts.seconds)
        self.noisy = Loads(lab.pod("noisy"), lab.pod("sink"), opts.seconds)
        self.sides = [NoProxy(lab)]
        if os.environ.get("CULVERT_BENCH_PEER"):
            self.sides.append(Peer(lab, os.environ["CULVERT_BENCH_PEER"]))
        self.sides.append(Culvert(lab))
        self.values = {side.name: {} for side in self.sides}
        self.tls = {}
        self.failures = []

    def book(self, side, values):
        for key, value in values.items():
            self.values[side.name].setdefault(key, []).append(value)

    def attempt(self, side, what):
        """Runs a step of a side; what it throws is told at the end."""
        try:
            self.book(side, what(side))
        except BenchError as err:
            self.failures.append(f"{side.name}: {err}")

    def say(self, text):
        print(f"bench: {text}", file=sys.stderr, flush=True)

    def memory(self, side):
        if not side.pids():
            return {}
        time.sleep(SETTLE)
        return {"mem2": side.pss() / MB}

    def see_tls(self, side):
        """The first connection, and meanwhile somebody who reads what it agrees on."""
        if not side.pids():
            self.loads.warm_up()
            return {}
        ear = self.client.popen(os.environ.get("CULVERT_PYTHON", sys.executable),
                                Path(__file__).with_name("hello.py"), stderr=subprocess.DEVNULL)
        ear.stdout.readline()
        self.loads.warm_up()
        self.tls[side.name] = ear.communicate(timeout=15)[0].strip() or "not seen on the wire"
        return {}

    def one_run(self, side):
        pods = (self.client, self.server)
        side.start()
        try:
            side.enrol(pods)
            self.attempt(side, self.memory)
            self.attempt(side, self.see_tls)
            for load in self.loads.all():
                self.attempt(side, load)
            side.enrol((self.noisy.client, self.noisy.server))
            for kind in NOISES:
                self.attempt(side, lambda side: self.beside_noise(side, kind))
            side.release((self.noisy.client, self.noisy.server))
            side.release(pods)
        finally:
            side.stop()

    def beside_noise(self, side, kind):
        """What a quiet pod feels of a noisy one of the same node."""
        self.noisy.warm_up()
        noise = self.noisy.client.popen(*self.noisy.noise(kind), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(1)
            res = self.loads.rr_once("--connections", 1)
        finally:
            noise.kill()
            noise.wait()
        return {f"quiet_{kind}_p99": res["p99_us"], f"quiet_{kind}_rate": res["ops"] / res["seconds"]}

    def tunnels(self):
        return self.server.run("ss", "-tnH", "state", "established", "( sport = :15008 )").stdout.count("\n")

    def held(self, side):
        """Memory while many connections are open, and after they have gone."""
        pods, count = (self.client, self.server), self.opts.connections
        side.start(POOL_UNUSED_RELEASE_TIMEOUT=f"{TUNNEL_IDLE}s")
        try:
            side.enrol(pods)
            time.sleep(SETTLE)
            idle = side.pss()
            proc = self.loads.hold(count)
            time.sleep(SETTLE)
            per_connection = (side.pss() - idle) / count / 1024
            proc.stdin.write("\n")
            proc.stdin.flush()
            self.loads.await_word(proc, "closed")
            wait_for("the tunnels' end", lambda: self.tunnels() == 0, timeout=60)
            time.sleep(AFTER)
            values = {"held_kb": per_connection, "left_kb": (side.pss() - idle) / 1024}
            side.release(pods)
            return values
        finally:
            side.stop()

    def run_held(self):
        self.loads.start_servers()
        for number in range(1, self.opts.runs + 1):
            for side in self.proxied():
                self.say(f"{self.opts.connections} connections, run {number} of {self.opts.runs}: {side.name}")
                self.attempt(side, self.held)

    def proxied(self):
        return [side for side in self.sides if not type(side) is NoProxy]

    def run_loads(self):
        self.loads.start_servers()
        self.noisy.start_servers()
        for number in range(1, self.opts.runs + 1):
            for side in self.sides:
                self.say(f"run {number} of {self.opts.runs}: {side.name}")
                self.one_run(side)

    def idle(self, side):
        time.sleep(SETTLE)
        before = cpu_seconds(side.pids())
        time.sleep(IDLE)
        values = {"idle_cpu": (cpu_seconds(side.pids()) - before) * 1000 / IDLE,
                  "mem110": side.pss() / MB}
        if isinstance(side, Culvert) and not isinstance(side, Peer):
            values["silo_kb"] = side.silo_bytes() / 1024
        return values

    def many_at_start(self, side):
        """The node agent knows all pods already, as after a restart; ready means that every one of them is served."""
        before = time.monotonic()
        side.start()
        try:
            self.book(side, {"start": time.monotonic() - before})
            self.attempt(side, self.idle)
        finally:
            side.stop()

    def run_pods(self):
        self.say(f"making {self.opts.pods} pods")
        pods = [self.client, self.server, self.noisy.client, self.noisy.server]
        pods += [self.lab.pod(f"p{i}") for i in range(self.opts.pods - len(pods))]
        self.lab.write_mesh()
        proxied = self.proxied()
        first = proxied[0]
        first.start()
        try:
            first.enrol(pods)
        finally:
            first.stop()
        for number in range(1, self.opts.runs + 1):
            for side in proxied:
                self.say(f"{self.opts.pods} pods, run {number} of {self.opts.runs}: {side.name}")
                self.many_at_start(side)

    def run(self):
        self.lab.write_mesh()
        self.lab.start_agent()
        if self.opts.only in (None, "loads"):
            self.run_loads()
        if self.opts.only in (None, "held"):
            self.run_held()
        if self.opts.only in (None, "pods"):
            self.run_pods()

    def median(self, side, key):
        values = self.values.get(side, {}).get(key)
        return statistics.median(values) if values else None


# --- the table -------------------------------------------------------------

# What a noisy pod does beside a quiet one.
NOISES = {"bulk": "8 bulk streams", "storm": "a storm of new connections", "requests": "64 busy request streams"}

# Words, metric, decimals; then the contract: ("ratio", most or least of the peer's, +1 = more is better), or
# ("at most", limit), or None. `added` rows are compared after taking off what no proxy has.
ROWS = [
    ("bulk, 1 stream: CPU seconds per GB, both ends", "bulk1_cpu", 2, ("ratio", 0.75, -1)),
    ("bulk, 1 stream: Gbit/s", "bulk1_gbps", 2, ("ratio", 1.4, +1)),
    ("bulk, 8 streams: CPU seconds per GB, both ends", "bulk8_cpu", 2, ("ratio", 0.7, -1)),
    ("bulk, 8 streams: Gbit/s", "bulk8_gbps", 2, None),
    ("request/response, 1 connection: latency, median us", "rr1_p50", 0, ("added", 0.7, -1)),
    ("request/response, 1 connection: CPU us per operation", "rr1_cpu", 1, None),
    ("request/response, 64 connections: CPU us per operation", "rr64_cpu", 1, ("ratio", 0.6, -1)),
    ("request/response, 64 connections: operations per second", "rr64_rate", 0, ("ratio", 1.5, +1)),
    ("request/response, 64 connections: p99 us", "rr64_p99", 0, None),
    ("connect, request, close, 1 at a time: CPU us", "crr1_cpu", 0, ("ratio", 0.4, -1)),
    ("connect, request, close, 1 at a time: per second", "crr1_rate", 0, None),
    ("connect, request, close, 32 at a time: CPU us", "crr32_cpu", 0, ("ratio", 0.4, -1)),
    ("connect, request, close, 32 at a time: per second", "crr32_rate", 0, None),
    *[(f"quiet pod beside {words}: p99 us", f"quiet_{kind}_p99", 0, ("at most", 600)) for kind, words in NOISES.items()],
    *[(f"quiet pod beside {words}: operations per second", f"quiet_{kind}_rate", 0, ("at least", 3500))
      for kind, words in NOISES.items()],
    # 6 KB, and 32 KB for each end of a tunnel, which a hundred of them share.
    ("memory (PSS) of an open connection, both ends, with its share of a tunnel: KiB", "held_kb", 1, ("at most", 6.6)),
    ("memory (PSS) left of {connections} connections, 5 s after the last tunnel: KiB", "left_kb", 0, ("at most", 512)),
    ("memory (PSS), 2 pods, no open tunnel: MB", "mem2", 1, ("at most", 8)),
    ("memory (PSS), {pods} pods, no open tunnel: MB", "mem110", 1, ("at most", 20)),
    ("memory (PSS), {pods} pods, of one silo: KiB", "silo_kb", 0, ("at most", 128)),
    ("{pods} pods at start, until ready: s", "start", 2, ("at most", 1)),
    ("CPU with {pods} pods and no open tunnel: ms per s", "idle_cpu", 2, ("at most", 0.05)),
]


def ratio(bench, key, kind):
    """culvert's value over the peer's, or None."""
    ours, peers = bench.median("culvert", key), bench.median("peer", key)
    if kind == "added":
        base = bench.median("no proxy", key)
        if base is None or ours is None or peers is None:
            return None
        ours, peers = ours - base, peers - base
    return ours / peers if ours is not None and peers else None


def verdict(bench, key, goal):
    """Goal in words, and whether it is reached; empty where that cannot be said."""
    if not goal:
        return "", ""
    if goal[0] == "at most":
        value = bench.median("culvert", key)
        return f"<= {goal[1]:g}", "" if value is None else "yes" if value <= goal[1] else "NO"
    if goal[0] == "at least":
        value = bench.median("culvert", key)
        return f">= {goal[1]:g}", "" if value is None else "yes" if value >= goal[1] else "NO"
    kind, limit, better = goal
    words = f"{'<=' if better < 0 else '>='} {limit:g} x peer" + (", added" if kind == "added" else "")
    value = ratio(bench, key, kind)
    if value is None:
        return words, ""
    reached = value <= limit if better < 0 else value >= limit
    return words, f"{'yes' if reached else 'NO'} ({value:.2f})"


def cpu_model():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def version_of(*cmd):
    res = run(*cmd, "version", check=False, timeout=10)
    return " ".join(res.stdout.split()) or "unknown"


def print_table(bench):
    names = [side.name for side in bench.sides]
    head = ["", *names, "goal", "reached"]
    lines = [head]
    for words, key, digits, goal in ROWS:
        cells = [bench.median(name, key) for name in names]
        if all(cell is None for cell in cells):
            continue
        # A proxy that is not there costs nothing; a row about costs has no such column.
        shown = ["-" if cell is None or (name == "no proxy" and key.endswith("_cpu")) else f"{cell:,.{digits}f}"
                 for name, cell in zip(names, cells)]
        lines.append([words.format(pods=bench.opts.pods, connections=bench.opts.connections), *shown, *verdict(bench, key, goal)])
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))).rstrip())


def print_conditions(bench, load_before):
    print(f"\nMedian of {bench.opts.runs} alternating runs, {bench.opts.seconds} s each; 1 KB each way; "
          "MB = 1,000,000 bytes; GB likewise.")
    print(f"kernel   {platform.release()}, {os.cpu_count()} CPUs, {cpu_model()}")
    print(f"load     {load_before:.2f} before the first run"
          + (" - THE MACHINE WAS BUSY, the figures are not worth much" if load_before > 0.5 else ""))
    print(f"culvert  {version_of(exe('culvertd'))}")
    if os.environ.get("CULVERT_BENCH_PEER"):
        print(f"peer     {version_of(os.environ['CULVERT_BENCH_PEER'])}")
    for name, words in bench.tls.items():
        print(f"TLS      {name}: {words}")
    for failure in bench.failures:
        print(f"FAILED   {failure}")


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench", add_help=False)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--seconds", type=int)
    parser.add_argument("--pods", type=int)
    parser.add_argument("--connections", type=int)
    parser.add_argument("--only", choices=("loads", "held", "pods"))
    parser.add_argument("--json", type=Path)
    opts = parser.parse_args()
    for name, normal, quick in (("runs", 3, 1), ("seconds", 5, 1), ("pods", 110, 20), ("connections", 8000, 1000)):
        if getattr(opts, name) is None:
            setattr(opts, name, quick if opts.quick else normal)
    if not (1 <= opts.runs <= 50 and 1 <= opts.seconds <= 600 and 4 <= opts.pods <= 200 and
            1 <= opts.connections <= 16000):
        parser.error("runs 1 to 50, seconds 1 to 600, pods 4 to 200, connections 1 to 16,000")
    return opts


def end(number, frame):
    raise SystemExit(128 + number)


def main():
    opts = arguments()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="cvb-") as tmp, BenchLab(Path(tmp)) as lab:
        os.chmod(tmp, 0o755)  # a proxy may read the mesh file under a uid of its own
        bench = Bench(lab, opts)
        try:
            bench.run()
        except Exception:
            if lab.daemons:
                print(f"--- end of the last log\n{lab.log()[-4000:]}", file=sys.stderr)
            raise
    print_table(bench)
    print_conditions(bench, load_before)
    if opts.json:
        opts.json.write_text(json.dumps({"values": bench.values, "tls": bench.tls}, indent=2) + "\n")
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
