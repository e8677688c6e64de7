# SPDX-License-Identifier: GPL-2.0-or-later
"""What is measured while something grows: pods, open connections, known workloads.

Each sweep names its keys <what grows>/<how many>/<metric>; the rows of the
table and the plots look for them there (rows.py, report.py).
"""
from __future__ import annotations

import json
import random
import statistics
import subprocess
import time
from contextlib import ExitStack, contextmanager

from culvert_e2e.zds import ScriptedAgent
from loads import CANARY_PORT, LETTER_PORTS, ask, descriptors, hear, talking
from measure import MB, BenchError, cpu_seconds
from meshes import SERVICE_PORT, ControlPlane, write_file
from sides import PROBE, wait_for

# Tunnels without streams are closed after this, so that the row after them need not wait for minutes, seconds.
TUNNEL_IDLE = 5
# Memory of many connections is read this long after the last tunnel closed, seconds.
AFTER = 5
# CPU is taken to have settled when so long, in seconds, less than this share of it was used.
CALM, CALM_SHARE = 0.5, 0.02
# A change may take this long to settle, seconds.
SETTLING = 60


def key(what, count, metric):
    return f"{what}/{count}/{metric}"


def keyed(what, count, values):
    return {key(what, count, metric): value for metric, value in values.items()}


def until_calm(pids):
    """Waits until processes have done what they were busy with; their CPU seconds then."""
    end = time.monotonic() + SETTLING
    last = cpu_seconds(pids)
    while True:
        time.sleep(CALM)
        now = cpu_seconds(pids)
        if now - last < CALM * CALM_SHARE:
            return now
        if time.monotonic() > end:
            raise BenchError(f"still busy after {SETTLING} s")
        last = now


class Sweep:
    def __init__(self, bench):
        self.bench, self.lab, self.loads, self.opts = bench, bench.lab, bench.loads, bench.opts
        self.pods = (bench.client, bench.server)

    def settle(self):
        time.sleep(self.opts.settle)

    def runs(self, count, what, step):
        """A step for each run and each proxy, told of as `count what`."""
        for number in range(1, self.opts.runs + 1):
            for side in self.bench.proxied():
                self.bench.say(f"{count:,} {what}, run {number} of {self.opts.runs}: {side.name}")
                self.bench.attempt(side, f"{what}/{count}/", lambda side: keyed(what, count, step(side)))


# --- pods ------------------------------------------------------------------


class Pods(Sweep):
    """The node agent knows all pods at the start, as after a restart; ready means that each of them is served."""

    # Scrapes of a measurement; Adds and Deletes of one.
    SCRAPES = 10
    ADDS = 20

    def run(self):
        bench = self.bench
        pods = list(self.lab.pods.values())
        enrolled = 0
        for count in self.opts.pods:
            bench.say(f"making pods up to {count}")
            pods += [self.lab.pod(f"p{i}") for i in range(len(pods), count)]
            self.lab.write_mesh()
            self.enrol(pods[enrolled:count])
            enrolled = count
            self.present = pods[:count]
            self.runs(count, "pods", self.point)
        self.enrol((), pods[:enrolled])
        self.runs(len(self.pods), "adds", self.adds)

    def enrol(self, more, fewer=()):
        """Which pods the node agent has; its answers come from a proxy, here culvert."""
        side = self.bench.proxied()[-1]
        try:
            side.start()
            side.enrol(more)
            side.release(fewer)
        finally:
            side.stop()

    def point(self, side):
        took = side.start()
        try:
            values = {"start": took, "start_cpu": until_calm(side.pids()) * 1000}
            values.update(self.idle(side))
            self.loads.warm_up()
            self.touch()
            values.update(self.scrape(side))
            values.update(self.loads.at_a_point(side))
        finally:
            side.stop()
        return values

    def idle(self, side):
        self.settle()
        before = cpu_seconds(side.pids())
        time.sleep(self.opts.idle)
        values = {"idle_cpu": (cpu_seconds(side.pids()) - before) * 1000 / self.opts.idle, "mem": side.pss() / MB}
        if side.cgroup:
            values["cgroup"] = side.cgroup_bytes() / MB
        if side.name == "culvert":
            values["silo_kb"] = side.silo_bytes() / 1024
        return values

    def touch(self):
        """A connection from each pod, so that each has something to tell a scrape."""
        spaces = [pod.netns_path for pod in self.present if pod is not self.loads.server]
        with talking(self.lab.in_node(*PROBE, "touch", self.loads.server.ip, CANARY_PORT, *spaces,
                                      stderr=subprocess.STDOUT)) as proc:
            hear(proc, "done")

    def scrape(self, side):
        before = cpu_seconds(side.pids())
        with talking(self.lab.in_node(*PROBE, "scrape", self.SCRAPES, stderr=subprocess.STDOUT)) as proc:
            said = proc.communicate(timeout=300)[0]
        try:
            res = json.loads(said)
        except ValueError:
            raise BenchError(f"scrape: {said.strip()[-300:]}") from None
        cpu = (cpu_seconds(side.pids()) - before) / self.SCRAPES
        return {"scrape": res["seconds"] * 1000, "scrape_cpu": cpu * 1000, "scrape_kb": res["bytes"] / 1024}

    def adds(self, side):
        """ZDS Add to Ack, on the wire, from a node agent that does nothing but that."""
        path = self.lab.run_dir / "scripted.sock"
        pod, took = self.loads.client, []
        with ScriptedAgent(path) as agent:
            try:
                side.launch(INPOD_UDS=path)
                conn = agent.snapshot(timeout=20)
                side.wait_ready()
                for _ in range(self.ADDS):
                    before = time.monotonic()
                    error = conn.add(pod)
                    took.append(time.monotonic() - before)
                    if error or conn.delete(pod):
                        raise BenchError(f"Add or Del refused: {error}")
            finally:
                side.stop()
        return {"add": statistics.median(took) * 1000}


# --- connections -------------------------------------------------------------


class Connections(Sweep):
    """Connections that are open and idle: their memory, what a change of policy costs, what others feel of them.

    They are spread over more pairs of pods when one process of the load, or one that serves a single pod, could not
    have so many.
    """

    def run(self):
        with ControlPlane(self.lab) as self.plane:
            for count in self.opts.connections:
                self.pairs = self.bench.pairs(self.shares(count))
                self.lab.write_mesh()
                self.plane.prepare(0)
                self.runs(count, "connections", lambda side, count=count: self.point(side, count))

    @staticmethod
    def shares(count):
        """Pairs of pods for so many connections; an address has not more than 60,000 ports to connect from."""
        return max(1, -(-count // min(descriptors(), 60000)))

    def point(self, side, count):
        if not side.has_process_for_each_pod and 2 * count > descriptors():
            self.bench.leave_out(side, f"{count:,} connections: a process has {descriptors():,} descriptors for them, "
                                 "and no CAP_SYS_RESOURCE")
            return {}
        idle_s = min(TUNNEL_IDLE, self.opts.settle)
        pods = [pod for pair in self.pairs for pod in (pair.client, pair.server)]
        try:
            self.plane.start(side, POOL_UNUSED_RELEASE_TIMEOUT=f"{idle_s}s")
            side.enrol(pods)
            self.settle()
            idle = side.pss()
            values = self.memory(side, count, idle) if count == self.bench.results.contract_point("connections") else {}
            values.update(self.under_load(side, count))
            side.release(pods)
        finally:
            side.stop()
        return values

    @contextmanager
    def held(self, count):
        """The connections are open, spread over the pairs; gives how many there are."""
        share = max(1, -(-count // len(self.pairs)))
        with ExitStack() as stack:
            procs = [stack.enter_context(pair.held(share)) for pair in self.pairs]
            for proc in procs:
                hear(proc, "open")
            self.settle()
            yield share * len(procs)
            for proc in procs:
                still = int(ask(proc, "count"))
                if still != share:
                    raise BenchError(f"only {still} of {share} connections are still open")
            for proc in procs:
                ask(proc, "close")

    def memory(self, side, count, idle):
        """Of connections that carried next to nothing, and what they leave."""
        with self.held(count) as opened:
            per_connection = (side.pss() - idle) / opened / 1024
        wait_for("the tunnels' end", lambda: not any(pair.tunnels() for pair in self.pairs), timeout=90)
        time.sleep(AFTER)
        return {"held_kb": per_connection, "left_kb": (side.pss() - idle) / 1024}

    def under_load(self, side, count):
        with self.held(count):
            values = {"mem": side.pss() / MB}
            if count:
                values.update(self.policy(side))
            values.update(self.loads.at_a_point(side))
        return values

    def policy(self, side):
        """A new policy concerns every connection, and forbids one: until that one is cut, and the CPU of all."""
        until_calm(side.pids())
        canary = self.loads.client.popen(*PROBE, "canary", self.loads.server.ip, CANARY_PORT)
        with talking(canary):
            hear(canary, "open")
            before = until_calm(side.pids())
            start = time.monotonic()
            self.plane.forbid(True)
            said = hear(canary)
            try:
                took = float(said) - start
            except ValueError:
                raise BenchError(f"the forbidden connection: {said}") from None
        cpu = until_calm(side.pids()) - before
        self.plane.forbid(False)
        return {"policy": took * 1000, "policy_cpu": cpu * 1000}


# --- workloads ---------------------------------------------------------------


class Workloads(Sweep):
    """A mesh of many workloads: from a file, from a control plane, and an update of one of them."""

    # Updates whose effect is waited for, and others whose CPU is taken; the first of each warm up.
    SEEN, CHANGED = 10, 50

    def run(self):
        for count in self.opts.workloads:
            write_file(self.lab, count)
            self.runs(count, "workloads", self.from_file)
            self.lab.write_mesh()
            with ControlPlane(self.lab) as self.plane:
                self.plane.prepare(count)
                self.runs(count, "workloads", lambda side, count=count: self.from_control_plane(side, count))

    def from_file(self, side):
        with side.session(self.pods):
            self.settle()
            return {"file_mem": side.pss() / MB, "file_peak": side.peak() / MB}

    def from_control_plane(self, side, count):
        try:
            values = {"load_s": self.plane.start(side), "peak": side.peak() / MB}
            side.enrol(self.pods)
            self.settle()
            values["mem"] = side.pss() / MB
            self.loads.warm_up()
            values.update(self.updates(side, count))
            values.update(self.loads.at_a_point(side))
            side.release(self.pods)
        finally:
            side.stop()
        return values

    def updates(self, side, count):
        ports = list(LETTER_PORTS)
        took = []
        with talking(self.loads.client.popen(*PROBE, "sees", self.plane.vip, SERVICE_PORT,
                                             stdin=subprocess.PIPE)) as proc:
            ask(proc, LETTER_PORTS[ports[0]])
            for n in range(1, self.SEEN + 1):
                port = ports[n % 2]
                proc.stdin.write(LETTER_PORTS[port] + "\n")
                proc.stdin.flush()
                start = time.monotonic()
                self.plane.move(port)
                took.append(float(hear(proc)) - start)
        self.plane.update(0)
        before = until_calm(side.pids())
        for _ in range(self.CHANGED):
            self.plane.update(random.randrange(count))
        cpu = until_calm(side.pids()) - before
        return {"update": statistics.median(took) * 1000, "update_cpu": cpu * 1e6 / self.CHANGED}
