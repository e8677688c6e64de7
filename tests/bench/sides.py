# SPDX-License-Identifier: GPL-2.0-or-later
"""The node of the bench, and its *sides*: no proxy at all, a peer, culvert, each over the same pods.

What a side costs is read from /proc for all of its processes.
"""
from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from culvert_e2e.lab import BUILD, Lab, Pod, exe, run, wait_for  # noqa: E402, F401
from measure import BenchError, Cgroup, peak_bytes, pss_bytes, sysctl  # noqa: E402

PYTHON = os.environ.get("CULVERT_PYTHON", sys.executable)
PROBE = (PYTHON, Path(__file__).with_name("probe.py"))
# Until ready, seconds: 100,000 workloads in a file take a while.
START = 180
# Pods whose address has the same third byte.
BLOCK = 200
# Ports of servers in pods, which no client may take by chance.
SERVER_PORTS = "5200-5299,15000-15100"


class BenchPod(Pod):
    """A pod among up to a thousand, where the lab's own have one byte of address."""

    @property
    def ip(self):
        return f"10.{self.lab.net}.{self.index // BLOCK}.{10 + self.index % BLOCK}"


class BenchLab(Lab):
    mark = "cvb"

    def __init__(self, tmp, congestion=None):
        self.congestion = congestion
        super().__init__(tmp)

    def pod(self, name, ns="default", sa=None, mesh=True, **workload):
        pod = BenchPod(self, name, ns, sa or name, len(self.pods), f"{name}-uid-{self.net}")
        self.pods[name] = pod
        self._wire(pod)
        self.mesh["workloads"].append(self.workload(pod, hbone=mesh, **workload))
        return pod

    def _wire(self, pod):
        """As the lab does it, in four commands instead of nine, because here are hundreds."""
        run("ip", "netns", "add", pod.netns)
        host = f"v{pod.index}"
        self._in_node("ip", "link", "add", host, "type", "veth", "peer", "name", "eth0", "netns", pod.netns)
        self._in_node("ip", "link", "set", host, "master", "br0", "up")
        run("ip", "-n", pod.netns, "-batch", "-", input="\n".join((
            "link set lo up", "link set eth0 up", f"addr add {pod.ip}/16 dev eth0",
            f"addr add {pod.ip6}/64 dev eth0 nodad", f"route add default via 10.{self.net}.0.1",
            f"route add default via fd00:{self.net}::1")))
        # Proxies run in these namespaces, so that both ends of every connection have it.
        if self.congestion:
            pod.run("sysctl", "-qw", f"net.ipv4.tcp_congestion_control={self.congestion}")

    def env(self, **extra):
        """None takes a setting away."""
        env = {k: v for k, v in super().env().items() if extra.get(k, "") is not None}
        return {**env, **{k: str(v) for k, v in extra.items() if v is not None}}

    def launch_peer(self, path, **extra):
        """Starts a ztunnel-compatible proxy as upstream's chart does, as far as the environment goes."""
        log = self.tmp / f"peer-{len(self.daemons)}.log"
        env = {k: v for k, v in self.env(**extra).items() if not k.startswith("CULVERT_")}
        with open(log, "w") as out:
            proc = subprocess.Popen(["ip", "netns", "exec", self.node, path, "proxy", "ztunnel"],
                                    env=env, stdout=out, stderr=subprocess.STDOUT)
        self.daemons.append(proc)
        self.logs[proc.pid] = log
        return proc

    def in_node(self, *args, **kw):
        """A process of the bench in the node's namespace."""
        return subprocess.Popen(["ip", "netns", "exec", self.node, *map(str, args)], text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, **kw)

    def congestion_of(self, pod):
        return pod.run("sysctl", "-n", "net.ipv4.tcp_congestion_control").stdout.strip()


def check_congestion(name):
    """Words against a congestion control that the pods' namespaces cannot take, or nothing."""
    allowed = sysctl("net.ipv4.tcp_allowed_congestion_control")
    if name in allowed:
        return None
    if name not in sysctl("net.ipv4.tcp_available_congestion_control"):
        return f"--congestion {name}: this kernel has not loaded it (modprobe tcp_{name})"
    return (f"--congestion {name}: namespaces may take only {' '.join(allowed)}; allow it with\n"
            f"  sysctl -w net.ipv4.tcp_allowed_congestion_control='{' '.join(allowed)} {name}'")


class NoProxy:
    name = "no proxy"
    is_proxy = False

    def __init__(self, lab):
        self.lab = lab

    def launch(self, **env):
        pass

    def start(self, **env):
        pass

    def stop(self):
        pass

    @contextmanager
    def session(self, pods=(), **env):
        """The side runs, with these pods enrolled for as long."""
        try:
            self.start(**env)
            self.enrol(pods)
            yield
            # Without pods it need not drain their tunnels when it stops.
            self.release(pods)
        finally:
            self.stop()

    def pids(self):
        return []

    def pss(self):
        return sum(map(pss_bytes, self.pids()))

    def peak(self):
        return sum(map(peak_bytes, self.pids()))

    def enrol(self, pods):
        pass

    def release(self, pods):
        pass


class Culvert(NoProxy):
    name = "culvert"
    is_proxy = True
    has_process_for_each_pod = True
    proc = None
    cgroup = None

    def launch(self, **env):
        """Starts it, in a cgroup of its own where there may be one."""
        try:
            self.cgroup = Cgroup(f"{self.lab.prefix}-{len(self.lab.daemons)}")
        except BenchError as err:
            self.cgroup, self.no_cgroup = None, err
        with self.cgroup.entered() if self.cgroup else nullcontext():
            self.proc = self.process(**env)

    def process(self, **env):
        return self.lab.start_daemon(ready=False, **env)

    def start(self, **env):
        """Seconds until ready, asked every few milliseconds from within the node's namespace."""
        asker = self.lab.in_node(*PROBE, "ready", START)
        try:
            asker.stdout.readline()
            before = time.monotonic()
            self.launch(**env)
            while asker.poll() is None and self.proc.poll() is None:
                time.sleep(0.01)
            said = "" if asker.poll() is None else asker.stdout.read().strip()
        finally:
            asker.kill()
            asker.wait()
        if not said:
            self.fail("not ready")
        return float(said) - before

    def fail(self, words):
        """Throws, with the last line of the log."""
        lines = self.lab.log(self.proc).strip().splitlines() or ["no log"]
        raise BenchError(f"{words}, {'still running' if self.is_running() else 'ended'}: {lines[-1][-300:]}")

    def is_running(self):
        return self.proc is not None and self.proc.poll() is None

    def wait_ready(self):
        wait_for("readiness", lambda: self.lab.ready() or not self.is_running(), timeout=START)
        if not self.is_running():
            self.fail("not ready")

    def stop(self):
        if not self.proc:
            return
        proc, self.proc = self.proc, None
        try:
            self.lab.stop_daemon(proc, timeout=40)
        except subprocess.TimeoutExpired:
            for pid in self.lab.tree(proc):
                os.kill(pid, 9)
            proc.wait()
            raise BenchError("did not stop within 40 s") from None
        finally:
            if self.cgroup:
                self.cgroup.remove()

    def pids(self):
        """All processes; it is an error when the side is no longer there."""
        if not self.is_running():
            raise BenchError("it does not run any more")
        return list(self.lab.tree(self.proc))

    def cgroup_bytes(self):
        if not self.cgroup:
            raise self.no_cgroup
        return self.cgroup.bytes()

    def enrol(self, pods):
        self.lab.add(*pods)

    def release(self, pods):
        self.lab.delete(*pods)

    def silo_bytes(self):
        """PSS of one silo, on the average."""
        silos = self.lab.silos_of(self.proc)
        return sum(map(pss_bytes, silos)) / len(silos)

    def version(self):
        return version_of(exe("culvertd"))


class Peer(Culvert):
    name = "peer"
    has_process_for_each_pod = False

    def __init__(self, lab, path):
        super().__init__(lab)
        self.path = path

    def process(self, **env):
        return self.lab.launch_peer(self.path, **env)

    def silo_bytes(self):
        raise NotImplementedError("a peer has no silos")

    def version(self):
        return version_of(self.path)


def version_of(path):
    """What it says of itself (version.BuildInfo{...}), as few words as tell one build from another."""
    said = run(path, "version", check=False, timeout=10).stdout
    found = dict(re.findall(r'(\w+):"([^"]*)"', said))
    words = [found[name] for name in ("Version", "GitRevision", "CryptoProvider", "BuildProfile") if name in found]
    return ", ".join(dict.fromkeys(words)) or " ".join(said.split()) or "unknown"
