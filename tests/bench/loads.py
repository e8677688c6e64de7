# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads from one pod to another; each returns {metric: value} for one side.

Both pods are on this one node, so that a side's CPU seconds are those of both ends.
"""
from __future__ import annotations

import json
import resource
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from measure import BenchError, cpu_seconds
from sides import BUILD, PROBE, PYTHON, SERVER_PORTS, wait_for

IPERF_PORT = 5201
RR_PORT = 5202
CANARY_PORT = 5203
LETTER_PORTS = {5204: "a", 5205: "b"}
HOLD_PORTS = range(5210, 5218)
HERE = Path(__file__).parent
HOLD = (PYTHON, HERE / "hold.py")
# A tunnel that takes one stream and is given up at once: every connection needs a session of its own.
FRESH = {"POOL_MAX_STREAMS_PER_CONNECTION": 1, "POOL_UNUSED_RELEASE_TIMEOUT": "0s"}
# Of so many connections that should have had one, a fresh session was seen.
FRESH_SHARE = 0.98
# Of the descriptors that a process may have, those that are for connections.
SPARE_SHARE = 0.8
# The streams of a noisy pod go on for this much longer than what is measured beside them, seconds.
NOISE_MARGIN = 4
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class Loads:
    is_serving = False

    def __init__(self, client, server, seconds):
        self.client, self.server, self.seconds = client, server, seconds
        self.rr = next((p for p in (BUILD / "tests/bench/rr", BUILD / "rr") if p.is_file()), None)
        if not self.rr:
            raise SystemExit(f"bench: tests/bench/rr is not built in {BUILD}")
        for pod in (client, server):
            # Tens of thousands of short connections leave ports in TIME_WAIT, whoever proxies them.
            pod.run("sysctl", "-qw", "net.ipv4.tcp_tw_reuse=1", "net.ipv4.ip_local_port_range=2048 65000",
                    f"net.ipv4.ip_local_reserved_ports={SERVER_PORTS}")

    def start_servers(self):
        if self.is_serving:
            return
        self.is_serving = True
        self.server.popen("iperf3", "-s", "-p", IPERF_PORT, **QUIET)
        self.server.popen(self.rr, "--serve", RR_PORT, **QUIET)
        self.server.popen(*HOLD, "serve", CANARY_PORT, *HOLD_PORTS, **QUIET)
        self.server.popen(*PROBE, "letter", *(word for pair in LETTER_PORTS.items() for word in pair), **QUIET)
        for port in (IPERF_PORT, RR_PORT, HOLD_PORTS[-1], *LETTER_PORTS):
            self.server.wait_port(port)

    def _client(self, *args):
        try:
            res = self.client.run(*args, check=False, timeout=self.seconds + 30)
        except subprocess.TimeoutExpired:
            raise BenchError(f"{Path(args[0]).name} did not end") from None
        if res.returncode != 0:
            words = " ".join([Path(args[0]).name, *map(str, args[1:])])
            raise BenchError(f"{words}: {res.stdout[-400:]}{res.stderr[-400:]}".strip())
        return json.loads(res.stdout)

    def rr_once(self, *args, seconds=None):
        return self._client(self.rr, "--host", self.server.ip, "--port", RR_PORT,
                            "--seconds", seconds or self.seconds, *args)

    def warm_up(self):
        """Records, certificates and the tunnel come with the first connection; they are not part of a load."""
        errors = []

        def answered():
            try:
                return self.rr_once("--connections", 2, seconds=1)
            except BenchError as err:
                errors.append(err)
                return None
        try:
            wait_for("a first answer", answered, timeout=20)
        except AssertionError as err:
            raise BenchError(f"{err}: {errors[-1]}") from None

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

    def connects(self, side, at_a_time, key="crr"):
        before = cpu_seconds(side.pids())
        res = self.rr_once("--connections", at_a_time, "--reconnect")
        cpu = cpu_seconds(side.pids()) - before
        key = f"{key}{at_a_time}"
        return {f"{key}_rate": res["ops"] / res["seconds"], f"{key}_cpu": cpu * 1e6 / res["ops"], "ops": res["ops"]}

    def accepted(self):
        """Connections that anybody in the server's pod has ever accepted (proc_net_snmp, Tcp: PassiveOpens)."""
        names, values = (line.split() for line in self.server.run("cat", "/proc/net/snmp").stdout.splitlines()
                         if line.startswith("Tcp:"))
        return int(values[names.index("PassiveOpens")])

    def fresh(self, side, at_a_time):
        """connects() where each should have a TLS session of its own (FRESH); counts whether it had."""
        before = self.accepted()
        values = self.connects(side, at_a_time, "fresh")
        # Each operation is accepted by the application once, and its tunnel by the proxy.
        sessions = (self.accepted() - before) / values["ops"] - 1
        if sessions < FRESH_SHARE:
            raise BenchError(f"only {sessions:.0%} of the connections had a TLS session of their own")
        return values

    def at_a_point(self, side):
        """What is measured again and again while something grows."""
        res = {**self.bulk(side, 1), **self.requests(side, 1), **self.requests(side, 64)}
        return {"gbps": res["bulk1_gbps"], "rate": res["rr64_rate"], "p50": res["rr1_p50"], "p99": res["rr1_p99"]}

    def basic(self):
        """The loads of the table: keys that each gives, and the load."""
        return [(f"bulk{n}_", lambda side, n=n: self.bulk(side, n)) for n in (1, 8)] + \
            [(f"rr{n}_", lambda side, n=n: self.requests(side, n)) for n in (1, 64)] + \
            [(f"crr{n}_", lambda side, n=n: self.connects(side, n)) for n in (1, 32)]

    # --- a noisy pod -----------------------------------------------------------

    def noise(self, kind):
        """Command of a noisy pod's client."""
        seconds = self.seconds + NOISE_MARGIN
        if kind == "bulk":
            return ("iperf3", "-c", self.server.ip, "-p", IPERF_PORT, "-t", seconds, "-P", 8)
        storm = ("--connections", 32, "--reconnect") if kind == "storm" else ("--connections", 64)
        return (self.rr, "--host", self.server.ip, "--port", RR_PORT, "--seconds", seconds, *storm)

    def beside(self, noisy, kind):
        """What this quiet pod feels of a noisy one of the same node."""
        noise = noisy.client.popen(*noisy.noise(kind), **QUIET)
        try:
            time.sleep(1)
            res = self.rr_once("--connections", 1)
            if noise.poll() is not None:
                raise BenchError(f"the noise ({kind}) ended too early, with status {noise.returncode}")
        finally:
            noise.kill()
            noise.wait()
        return {f"quiet_{kind}_p99": res["p99_us"], f"quiet_{kind}_rate": res["ops"] / res["seconds"]}

    # --- connections that stay ---------------------------------------------------

    @contextmanager
    def held(self, count):
        """Idle connections, being opened and then open for as long; see hold.py, which says "open"."""
        with talking(self.client.popen(*HOLD, "open", self.server.ip, count, *HOLD_PORTS,
                                       stdin=subprocess.PIPE)) as proc:
            yield proc

    def tunnels(self):
        return self.server.run("ss", "-tnH", "state", "established", "( sport = :15008 )").stdout.count("\n")


def descriptors():
    """Connections that one process can have."""
    return int(resource.getrlimit(resource.RLIMIT_NOFILE)[0] * SPARE_SHARE)


@contextmanager
def talking(proc):
    """A process that ends with the block."""
    try:
        yield proc
    finally:
        proc.kill()
        proc.wait()


def ask(proc, line):
    """Says a line to a process and returns its answer."""
    proc.stdin.write(line + "\n")
    proc.stdin.flush()
    return hear(proc)


def hear(proc, want=None):
    """The next line of a process, which must be what is wanted, or anything that is not empty."""
    said = proc.stdout.readline().strip()
    if not said or want not in (None, said):
        raise BenchError(f"{said or 'a process ended'} instead of {want or 'an answer'}")
    return said
