# SPDX-License-Identifier: GPL-2.0-or-later
"""A node in network namespaces: one bridge, pods on it, and culvert's processes.

Every namespace carries a prefix of this lab, so that two labs can stand side
by side and the clean-up removes exactly what this one made.
"""
from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

BUILD = Path(os.environ.get("CULVERT_BUILD", Path(__file__).resolve().parents[3] / "build"))

# Start the daemon as the stock chart does (see chart.py).
CHART = os.environ.get("CULVERT_TEST_CHART") == "1"

# How long a condition may take before the test gives up; generous, because
# sanitizer builds on two cores are slow.
PATIENCE = float(os.environ.get("CULVERT_TEST_PATIENCE", "15"))


def run(*cmd, check=True, **kw):
    """Runs a command, returns its CompletedProcess with text output."""
    res = subprocess.run([str(c) for c in cmd], text=True, errors="replace", capture_output=True, **kw)
    if check and res.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, cmd))}: exit {res.returncode}\n{res.stdout}{res.stderr}")
    return res


def wait_for(what, cond, timeout=PATIENCE, interval=0.05):
    """Waits until cond() is true; its last value is returned."""
    end = time.monotonic() + timeout
    while True:
        val = cond()
        if val:
            return val
        if time.monotonic() > end:
            raise AssertionError(f"timed out after {timeout:.0f} s waiting for {what}")
        time.sleep(interval)


def exe(name):
    """Path of one of our binaries, wherever the build put it."""
    for sub in ("", "src/warden", "src/broker", "src/silo", "src/ctl", "cni-agent"):
        path = BUILD / sub / name
        if path.is_file():
            return path
    raise RuntimeError(f"{name} is not built in {BUILD}")


def link_programs(folder):
    """One folder with what culvertd executes, as an installation has it; a build has a folder a program."""
    folder.mkdir()
    for name in ("culvert-broker", "culvert-silo"):
        (folder / name).symlink_to(exe(name))
    return folder


# What curl says of a connection that is closed or reset without an answer: a reset may come before it looks, while it
# sends, or while it reads.
REFUSED = (7, 52, 55, 56)


@dataclass
class Pod:
    """A pod: one network namespace with an address of each family."""

    lab: "Lab"
    name: str
    ns: str
    sa: str
    index: int
    uid: str
    procs: list = field(default_factory=list)

    @property
    def netns(self):
        return f"{self.lab.prefix}-{self.name}"

    @property
    def netns_path(self):
        return f"/run/netns/{self.netns}"

    @property
    def ip(self):
        return f"10.{self.lab.net}.0.{10 + self.index}"

    @property
    def ip6(self):
        return f"fd00:{self.lab.net}::{10 + self.index}"

    @property
    def spiffe(self):
        return f"spiffe://cluster.local/ns/{self.ns}/sa/{self.sa}"

    def cmd(self, *args):
        return ["ip", "netns", "exec", self.netns, *map(str, args)]

    def run(self, *args, **kw):
        return run(*self.cmd(*args), **kw)

    def popen(self, *args, **kw):
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stderr", subprocess.STDOUT)
        proc = subprocess.Popen(self.cmd(*args), text=True, **kw)
        self.procs.append(proc)
        return proc

    def curl(self, url, *args, timeout=10, check=True):
        return self.run("curl", "-sS", "--max-time", timeout, *args, url, check=check, timeout=timeout + 20)

    def python(self, code, *args, **kw):
        return self.popen(os.environ.get("CULVERT_PYTHON", "python3"), "-c", code, *args, **kw)

    def wait_port(self, port, proto="tcp"):
        """Waits until something listens on the port inside the pod."""
        flag = "-ltnH" if proto == "tcp" else "-lunH"
        wait_for(f"{self.name}:{port}", lambda: f":{port} " in self.run("ss", flag).stdout)


class Lab:
    """Owns the namespaces, the mesh file, the run directory and the processes."""

    _next_net = os.getpid() % 200
    # How names of namespaces and of the run directory begin.
    mark = "cvt"

    def __init__(self, tmp: Path):
        Lab._next_net = (Lab._next_net + 1) % 200
        self.net = Lab._next_net + 20
        self.prefix = f"{self.mark}{os.getpid() % 100000}-{self.net}"
        self.tmp = tmp
        # Unix socket paths are at most 107 bytes, pytest's folders are long.
        self.run_dir = Path(tempfile.mkdtemp(prefix=f"{self.mark}-"))
        self.pods: dict[str, Pod] = {}
        self.node = f"{self.prefix}-node"
        self.daemons: list[subprocess.Popen] = []
        self.logs: dict[int, Path] = {}
        self.mesh = {"workloads": [], "services": [], "policies": []}
        self.agent: subprocess.Popen | None = None
        self.extra_netns: list[str] = []
        run("ip", "netns", "add", self.node)
        try:
            self._node_up()
        except BaseException:
            self.close()
            raise

    # --- network ---------------------------------------------------------

    def _in_node(self, *args):
        return run("ip", "netns", "exec", self.node, *args)

    def _node_up(self):
        self._in_node("ip", "link", "set", "lo", "up")
        self._in_node("ip", "link", "add", "br0", "type", "bridge")
        self._in_node("ip", "link", "set", "br0", "up")
        self._in_node("ip", "addr", "add", f"10.{self.net}.0.1/16", "dev", "br0")
        self._in_node("ip", "addr", "add", f"fd00:{self.net}::1/64", "dev", "br0", "nodad")

    def pod(self, name, ns="default", sa=None, mesh=True, **workload):
        """Makes a pod's namespace; with mesh=True it is listed in the mesh file as HBONE."""
        pod = Pod(self, name, ns, sa or name, len(self.pods), f"{name}-uid-{self.net}")
        self.pods[name] = pod
        self._wire(pod)
        self.mesh["workloads"].append(self.workload(pod, hbone=mesh, **workload))
        return pod

    def _wire(self, pod):
        run("ip", "netns", "add", pod.netns)
        host = f"v{pod.index}"
        self._in_node("ip", "link", "add", host, "type", "veth", "peer", "name", "eth0", "netns", pod.netns)
        self._in_node("ip", "link", "set", host, "master", "br0", "up")
        for args in (
            ("link", "set", "lo", "up"),
            ("link", "set", "eth0", "up"),
            ("addr", "add", f"{pod.ip}/16", "dev", "eth0"),
            ("addr", "add", f"{pod.ip6}/64", "dev", "eth0", "nodad"),
            ("route", "add", "default", "via", f"10.{self.net}.0.1"),
            ("-6", "route", "add", "default", "via", f"fd00:{self.net}::1"),
        ):
            pod.run("ip", *args)

    def rewire(self, pod):
        """Replaces the pod's namespace by a fresh one of the same name and address."""
        self._kill(pod.procs)
        # The namespace lives on while a silo holds it; its interface goes now, as a CNI plugin would have it.
        self._in_node("ip", "link", "del", f"v{pod.index}")
        run("ip", "netns", "del", pod.netns)
        self._wire(pod)

    # --- mesh file -------------------------------------------------------

    def workload(self, pod, hbone=True, **extra):
        rec = {
            "uid": f"Kubernetes//Pod/{pod.ns}/{pod.name}",
            "name": pod.name,
            "namespace": pod.ns,
            "serviceAccount": pod.sa,
            "trustDomain": "cluster.local",
            "workloadIps": [pod.ip, pod.ip6],
            "protocol": "HBONE" if hbone else "TCP",
            "node": "local",
            "network": "",
            "clusterId": "Kubernetes",
            "canonicalName": pod.name,
            "workloadName": pod.name,
            "workloadType": "deployment",
            "services": {},
        }
        rec.update(extra)
        return rec

    def record(self, pod):
        """The mesh file's workload record of a pod, to be changed in place."""
        return next(w for w in self.mesh["workloads"] if w["name"] == pod.name and w["namespace"] == pod.ns)

    def service(self, name, ns="default", vips=None, ports=None, pods=(), **extra):
        host = f"{name}.{ns}.svc.cluster.local"
        rec = {"name": name, "namespace": ns, "hostname": host, "vips": vips or [], "ports": ports or {}}
        rec.update(extra)
        self.mesh["services"].append(rec)
        for pod in pods:
            self.record(pod)["services"][f"{ns}/{host}"] = dict(rec["ports"])
        return rec

    @property
    def mesh_path(self):
        return self.tmp / "mesh.yaml"

    def write_mesh(self, text=None):
        """Writes the mesh file atomically, as a ConfigMap update would."""
        new = self.mesh_path.with_suffix(".new")
        new.write_text(text if text is not None else dump_yaml(self.mesh))
        new.rename(self.mesh_path)

    # --- processes -------------------------------------------------------

    @property
    def zds_path(self):
        return self.run_dir / "ztunnel.sock"

    @property
    def agent_path(self):
        return self.run_dir / "agent.sock"

    def libexec(self):
        folder = self.run_dir / "libexec"
        return folder if folder.exists() else link_programs(folder)

    def env(self, **extra):
        env = {
            "PATH": os.environ["PATH"],
            "RUST_LOG": os.environ.get("CULVERT_TEST_LOG", "info"),
            "LOCAL_XDS_PATH": str(self.mesh_path),
            "FAKE_CA": "true",
            "XDS_ADDRESS": "",
            "NODE_NAME": "local",
            "CLUSTER_ID": "Kubernetes",
            "INPOD_UDS": str(self.zds_path),
            "CULVERT_RUN_DIR": str(self.run_dir / "culvert"),
        }
        for key in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "CULVERT_IO_BASELINE"):
            if key in os.environ:
                env[key] = os.environ[key]
        env.update({k: str(v) for k, v in extra.items()})
        return env

    def start_daemon(self, ready=True, wrap=(), args=("proxy", "ztunnel"), **env):
        """Starts culvertd in the node's namespace; its log goes to a file (see log())."""
        if not self.mesh_path.exists():
            self.write_mesh()
        log = self.tmp / f"culvertd-{len(self.daemons)}.log"
        if CHART:
            wrap = [*wrap, sys.executable, Path(__file__).with_name("chart.py"), "--writable", self.run_dir, "--"]
        with open(log, "w") as out:
            proc = subprocess.Popen(
                ["ip", "netns", "exec", self.node, *map(str, wrap), str(exe("culvertd")), *args],
                env=self.env(**{"CULVERT_LIBEXEC_DIR": self.libexec(), **env}), stdout=out, stderr=subprocess.STDOUT)
        self.daemons.append(proc)
        self.logs[proc.pid] = log
        if ready:
            self.wait_ready()
        return proc

    def ready(self):
        res = run("ip", "netns", "exec", self.node, "curl", "-s", "--max-time", "2",
                  "-o", "/dev/null", "-w", "%{http_code}", "http://127.0.0.1:15021/healthz/ready", check=False)
        return res.stdout == "200"

    def wait_ready(self):
        try:
            wait_for("readiness", self.ready)
        except AssertionError as err:
            raise AssertionError(f"{err}\n{self.log()}") from None

    def start_agent(self, *args):
        """Starts the reference node agent without pods."""
        log = open(self.tmp / "agent.log", "a")
        self.agent = subprocess.Popen(
            [str(exe("culvert-cni-agent")), "--zds-socket", str(self.zds_path), "--socket", str(self.agent_path),
             *map(str, args)],
            stdout=log, stderr=subprocess.STDOUT, env=self.env())
        log.close()
        wait_for("the agent's sockets", lambda: answers(self.agent_path) and answers(self.zds_path, probe=False))
        return self.agent

    def agent_call(self, *args, check=True):
        return run(exe("culvert-cni-agent"), "--socket", self.agent_path, *args, check=check)

    def add(self, *pods, **opts):
        """Enrols pods: rules in the pod, then Add over ZDS; returns once acknowledged."""
        for pod in pods:
            extra = [f"--{k.replace('_', '-')}={v}" for k, v in opts.items()]
            self.agent_call("add", "--uid", pod.uid, "--name", pod.name, "--namespace", pod.ns,
                            "--service-account", pod.sa, "--netns", pod.netns_path,
                            "--ip", pod.ip, "--ip", pod.ip6, *extra)

    def delete(self, *pods):
        for pod in pods:
            self.agent_call("del", "--uid", pod.uid)

    def log(self, proc=None):
        proc = proc or self.daemons[-1]
        return self.logs[proc.pid].read_text(errors="replace")

    def log_lines(self, *needles, proc=None):
        return [line for line in self.log(proc).splitlines() if all(n in line for n in needles)]

    def wait_log(self, *needles, count=1, proc=None, timeout=PATIENCE):
        try:
            return wait_for(f"log {needles}", lambda: (m := self.log_lines(*needles, proc=proc))
                            and len(m) >= count and m, timeout=timeout)
        except AssertionError as err:
            raise AssertionError(f"{err}\n--- log\n{self.log(proc)[-6000:]}") from None

    def ctl(self, *args, check=True):
        return run(exe("culvertctl"), "--run-dir", self.run_dir / "culvert", *args, check=check)

    def pods_json(self):
        """`culvertctl pods -o json` as a list of objects."""
        return json.loads(self.ctl("pods", "-o", "json").stdout)

    def tree(self, proc=None):
        """Process tree below a daemon: {pid: comm}, by walking /proc children."""
        proc = proc or self.daemons[-1]
        found = {}
        todo = [proc.pid]
        while todo:
            pid = todo.pop()
            try:
                comm = Path(f"/proc/{pid}/comm").read_text().strip()
                cmdline = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found[pid] = (comm, cmdline)
                for kids in Path(f"/proc/{pid}/task").glob("*/children"):
                    todo += map(int, kids.read_text().split())
            except (FileNotFoundError, ProcessLookupError):
                continue
        return found

    def start_second_daemon(self):
        """A second daemon beside the first, in a namespace of its own (its ports are its pod's), same node agent."""
        second = f"{self.prefix}-two"
        run("ip", "netns", "add", second)
        run("ip", "netns", "exec", second, "ip", "link", "set", "lo", "up")
        self.extra_netns.append(second)
        first, self.node = self.node, second
        try:
            return self.start_daemon()
        finally:
            self.node = first

    def silos_of(self, proc):
        return [pid for pid, (comm, _) in self.tree(proc).items() if comm == "culvert-silo"]

    def pid_of(self, role, proc=None):
        """Pid of the daemon's warden, broker, or the silo of a pod (role = Pod)."""
        if isinstance(role, Pod):
            return self.silo_of(role)
        return wait_for(f"the process of the {role}", lambda: self._find_role(role, proc))

    def _find_role(self, role, proc):
        role = {"warden": "culvert-warden", "broker": "culvert-broker"}.get(role, role)
        for pid, (comm, cmdline) in self.tree(proc).items():
            # By the name it was started under: the warden's program is that of the first process.
            if cmdline.split(" ")[0] == role or comm == role:
                return pid
        return None

    def silo_pids(self):
        return [self.pid_of(pod) for pod in self.pods.values() if any(p["uid"] == pod.uid for p in self.pods_json())]

    def silo_of(self, pod):
        """Pid of a pod's silo: the one culvert-silo process in its network namespace."""
        for pid in run("ip", "netns", "pids", pod.netns).stdout.split():
            try:
                if Path(f"/proc/{pid}/comm").read_text().strip() == "culvert-silo":
                    return int(pid)
            except (FileNotFoundError, ProcessLookupError):
                continue
        return None

    # --- clean-up --------------------------------------------------------

    @staticmethod
    def _kill(procs):
        for proc in procs:
            if proc.poll() is None:
                proc.send_signal(signal.SIGTERM)
        for proc in procs:
            try:
                proc.wait(timeout=8)
            except subprocess.TimeoutExpired:
                proc.kill()
                proc.wait()
            if proc.stdout:
                proc.stdout.close()

    def stop_daemon(self, proc=None, sig=signal.SIGTERM, timeout=PATIENCE):
        proc = proc or self.daemons[-1]
        proc.send_signal(sig)
        return proc.wait(timeout=timeout)

    def left_over(self):
        """Processes whose network namespace is one of ours: must be empty after a clean stop."""
        ours = set()
        for pod in self.pods.values():
            out = run("ip", "netns", "pids", pod.netns, check=False).stdout.split()
            ours.update(map(int, out))
        return ours

    def close(self):
        for pod in self.pods.values():
            self._kill(pod.procs)
        self._kill([p for p in self.daemons if p.poll() is None])
        if self.agent:
            self._kill([self.agent])
        for pid in self.left_over():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for pod in self.pods.values():
            run("ip", "netns", "del", pod.netns, check=False)
        for netns in (self.node, *self.extra_netns):
            run("ip", "netns", "del", netns, check=False)
        shutil.rmtree(self.run_dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


class Tagged:
    """A YAML string with a tag, as the policy matches of the mesh file want it."""

    def __init__(self, tag, value):
        self.tag, self.value = tag, value


def exact(value):
    return Tagged("Exact", value)


def presence():
    return Tagged("Presence", [])


def dump_yaml(value, indent=0):
    """Writes the little YAML that mesh files need: flow style, JSON scalars, tags."""
    if isinstance(value, Tagged):
        return f"!{value.tag} {dump_yaml(value.value, 1)}"
    if isinstance(value, dict):
        body = ", ".join(f"{k if isinstance(k, int) else json.dumps(k)}: {dump_yaml(v, 1)}" for k, v in value.items())
        if indent == 0 and set(value) <= {"workloads", "services", "policies"}:
            return "\n".join(f"{k}:\n" + "\n".join(f"- {dump_yaml(item, 1)}" for item in v) if v else f"{k}: []"
                             for k, v in value.items()) + "\n"
        return "{" + body + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(dump_yaml(v, 1) for v in value) + "]"
    return json.dumps(value)


def access_fields(line):
    """Fields of a text access-log line as a dict of strings, in order."""
    body = line.split("\t")[-1]
    return {m[1]: m[2].strip('"') for m in re.finditer(r'([\w.]+)=("(?:[^"\\]|\\.)*"|\S+)', body)}


def answers(path, probe=True):
    """Whether somebody listens on a unix socket (of whatever type); without probe: whether it is bound."""
    if not probe:
        return path.exists()
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(str(path))
        except OSError as err:
            return err.errno == errno.EPROTOTYPE
    return True


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
