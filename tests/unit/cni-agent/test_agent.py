# SPDX-License-Identifier: GPL-2.0-only
"""culvert-cni-agent as a process: in-pod rules judged by nft and ip, ZDS spoken by a python data plane."""
import array
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

AGENT = os.environ["CULVERT_AGENT"]
GOLDEN = Path(os.environ.get("CULVERT_GOLDEN", Path(__file__).resolve().parents[2] / "golden" / "cni-agent"))
PREFIX = f"cna{os.getpid() % 100000}"
TABLES = ("istio-ambient-nat", "istio-ambient-mangle", "istio-ambient-raw")
PATIENCE = float(os.environ.get("CULVERT_TEST_PATIENCE", "15"))


def run(*cmd, check=True, **kw):
    res = subprocess.run([str(c) for c in cmd], text=True, capture_output=True, timeout=60, **kw)
    if check and res.returncode:
        raise RuntimeError(f"{cmd}: exit {res.returncode}: {res.stdout}{res.stderr}")
    return res


def can_namespaces():
    try:
        res = run("ip", "netns", "add", f"{PREFIX}-probe", check=False)
        if res.returncode:
            return False
        ok = run("ip", "netns", "exec", f"{PREFIX}-probe", "nft", "add", "table", "inet", "t", check=False).returncode == 0
        run("ip", "netns", "del", f"{PREFIX}-probe")
        return ok
    except FileNotFoundError:
        return False


pytestmark = pytest.mark.skipif(not can_namespaces(), reason="needs network namespaces, nft and ip")


def wait_for(what, cond):
    end = time.monotonic() + PATIENCE
    while True:
        val = cond()
        if val:
            return val
        assert time.monotonic() < end, f"timed out waiting for {what}"
        time.sleep(0.02)


class Netns:
    """A pod's namespace with one address of each family on lo."""

    def __init__(self, name, index):
        self.name, self.path = f"{PREFIX}-{name}", f"/run/netns/{PREFIX}-{name}"
        self.ip, self.ip6 = f"10.77.0.{index}", f"fd00:77::{index}"
        self.make()

    def make(self):
        run("ip", "netns", "add", self.name)
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "addr", "add", self.ip, "dev", "lo")
        self.run("ip", "addr", "add", self.ip6, "dev", "lo")

    def remove(self):
        run("ip", "netns", "del", self.name, check=False)

    def run(self, *cmd, **kw):
        return run("ip", "netns", "exec", self.name, *cmd, **kw)

    @property
    def ino(self):
        return os.stat(self.path).st_ino

    def state(self):
        """All that the agent may have changed, without counters."""
        rules = re.sub(r"counter packets \d+ bytes \d+", "counter", self.run("nft", "list", "ruleset").stdout)
        return (rules, *(self.run("ip", fam, *what, check=False).stdout
                         for fam in ("-4", "-6") for what in (("rule",), ("route", "show", "table", "100"))))

    def tables(self):
        return {line.split()[-1] for line in self.run("nft", "list", "tables").stdout.splitlines()}

    def is_captured(self):
        _, rule4, route4, rule6, route6 = self.state()
        return {TABLES[0], TABLES[1]} <= self.tables() and all("32764:\tfrom all fwmark 0x111/0xfff lookup 100" in r for r in (rule4, rule6)) \
            and all(r.startswith("local default dev lo") for r in (route4, route6))


class Zds:
    """The data plane's end: an independent reading of the protocol, byte by byte."""

    def __init__(self, path, hello=True):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(str(path))
        if hello:
            self.sock.send(b"\x08\x01")

    @staticmethod
    def fields(data):
        """Length-delimited fields of a message as (number, bytes)."""
        out, at = [], 0

        def varint():
            nonlocal at
            val = shift = 0
            while True:
                byte = data[at]
                at += 1
                val |= (byte & 0x7f) << shift
                shift += 7
                if byte < 0x80:
                    return val
        while at < len(data):
            tag = varint()
            assert tag & 7 == 2
            size = varint()
            out.append((tag >> 3, data[at:at + size]))
            at += size
        return out

    def recv(self):
        """(kind, uid, info, inode of the descriptor); None at the end."""
        data, control, flags, _ = self.sock.recvmsg(1024, socket.CMSG_LEN(32))
        assert not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC)
        fds = array.array("i")
        for level, kind, payload in control:
            assert (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
            fds.frombytes(payload[:len(payload) - len(payload) % fds.itemsize])
        if not data:
            return None
        [(number, body)] = self.fields(data)
        kind = {1: "add", 2: "del", 3: "sent", 5: "keep"}[number]
        inner = dict(self.fields(body))
        uid = inner.get({"add": 1, "del": 2, "keep": 1, "sent": 0}[kind], b"").decode()
        info = None
        if kind == "add":
            named = dict(self.fields(inner[2]))
            info = tuple(named[n].decode() for n in (1, 2, 3))
            assert len(fds) == 1
        else:
            assert len(fds) == 0
        ino = os.fstat(fds[0]).st_ino if fds else None
        for fd in fds:
            os.close(fd)
        return kind, uid, info, ino

    def ack(self, error=b""):
        body = b"\x0a" + bytes([len(error)]) + error if error else b""
        self.sock.send(b"\x0a" + bytes([len(body)]) + body)

    def take(self, kind, uid="", error=b""):
        got = self.recv()
        assert got and got[:2] == (kind, uid), got
        self.ack(error)
        return got

    def snapshot(self):
        """Acknowledges a snapshot; what it named, by uid."""
        named = {}
        while True:
            kind, uid, info, ino = self.recv()
            self.ack()
            if kind == "sent":
                return named
            assert uid not in named
            named[uid] = (kind, info, ino)

    def is_silent(self, seconds=0.3):
        self.sock.settimeout(seconds)
        try:
            self.sock.recv(1024)
            return False
        except socket.timeout:
            return True
        finally:
            self.sock.settimeout(PATIENCE)

    def close(self):
        self.sock.close()


class Agent:
    def __init__(self, tmp):
        self.tmp = tmp
        self.zds, self.control = tmp / "zds.sock", tmp / "ctl.sock"
        self.log = tmp / "agent.log"
        self.proc = None

    def start(self, *args, wait=True):
        with open(self.log, "a") as log:
            self.proc = subprocess.Popen([AGENT, "--zds-socket", str(self.zds), "--socket", str(self.control), "--log-level", "debug", *map(str, args)],
                                         stderr=log, stdout=log)
        if wait:
            # A killed agent leaves its files behind: only an answer tells that there is a new one.
            wait_for("sockets", lambda: self.zds.exists() and self.call("list", check=False).returncode == 0)
        return self

    def stop(self, sig=signal.SIGTERM):
        if self.proc and self.proc.poll() is None:
            self.proc.send_signal(sig)
            return self.proc.wait(timeout=PATIENCE)
        return None

    def call(self, *args, check=True):
        return run(AGENT, "--socket", self.control, *args, check=check)

    def add_args(self, pod, uid="u", *more, name="web", sa="web-sa"):
        return ["add", "--uid", uid, "--name", name, "--namespace", "shop", "--service-account", sa, "--netns", pod.path,
                "--ip", pod.ip, "--ip", pod.ip6, *more]

    def add_async(self, *args, **kw):
        return subprocess.Popen([AGENT, "--socket", str(self.control), *map(str, self.add_args(*args, **kw))], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def call_async(self, *args):
        return subprocess.Popen([AGENT, "--socket", str(self.control), *map(str, args)], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def pods(self):
        return {p["uid"]: p for p in json.loads(self.call("list", "-o", "json").stdout)}

    def wait_state(self, uid, state):
        return wait_for(f"{uid} {state}", lambda: self.pods().get(uid, {}).get("state") == state)

    def fds(self):
        return len(os.listdir(f"/proc/{self.proc.pid}/fd"))

    def connect(self, **kw):
        peer = Zds(self.zds, **kw)
        return peer


@pytest.fixture
def agent(tmp_path_factory):
    # Unix socket paths are short.
    tmp = tmp_path_factory.mktemp("a")
    it = Agent(tmp)
    yield it
    it.stop(signal.SIGKILL)


@pytest.fixture
def pods():
    made = []

    def make(name="a"):
        pod = Netns(name, 10 + len(made))
        made.append(pod)
        return pod
    yield make
    for pod in made:
        pod.remove()


def finish(proc, status=0):
    out, err = proc.communicate(timeout=PATIENCE + 15)
    assert proc.returncode == status, (proc.returncode, out, err)
    return err


def enrol(agent, peer, pod, uid="u", *more, **kw):
    proc = agent.add_async(pod, uid, *more, **kw)
    got = peer.take("add", uid)
    finish(proc)
    return got


# --- rules ---------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(p.stem for p in GOLDEN.glob("*.nft")))
def test_goldens_are_what_nft_accepts(pods, name):
    pod = pods()
    pod.run("nft", "-f", GOLDEN / f"{name}.nft")
    pod.run("nft", "-f", GOLDEN / f"{name}.nft")
    pod.run("nft", "-f", GOLDEN / "undo.nft")
    assert pod.tables() == set()


@pytest.mark.parametrize("args,golden", [
    ([], "dns"),
    (["--dns-capture=false"], "default"),
    (["--ingress-mode=true", "--dns-capture=false"], "ingress"),
    (["--virtual-interface", "tap0", "--virtual-interface", "vm-1.2", "--dns-capture=false"], "virtual-interface"),
])
def test_rules_in_and_out(agent, pods, args, golden):
    pod, judge = pods(), pods("judge")
    before = pod.state()
    agent.start()
    peer = agent.connect()
    assert peer.snapshot() == {}
    enrol(agent, peer, pod, "u", *args)
    assert pod.is_captured()
    # nft itself, fed with the stored text, must give the same ruleset.
    judge.run("nft", "-f", GOLDEN / f"{golden}.nft")
    assert pod.state()[0] == judge.state()[0]
    once = pod.state()
    enrol(agent, peer, pod, "u", *args)
    assert pod.state() == once, "adding twice changes nothing"
    proc = agent.call_async("del", "--uid", "u")
    peer.take("del", "u")
    finish(proc)
    assert pod.state() == before
    assert agent.pods() == {}


def test_foreign_rules_stay(agent, pods):
    pod = pods()
    pod.run("nft", "add table inet mine; add chain inet mine c; add rule inet mine c counter")
    pod.run("ip", "rule", "add", "prio", "100", "fwmark", "5", "table", "55")
    before = pod.state()
    agent.start()
    peer = agent.connect()
    peer.snapshot()
    enrol(agent, peer, pod)
    proc = agent.call_async("del", "--uid", "u")
    peer.take("del", "u")
    finish(proc)
    assert pod.state() == before


def test_dns_off_again_removes_the_raw_table(agent, pods):
    pod = pods()
    agent.start()
    peer = agent.connect()
    peer.snapshot()
    enrol(agent, peer, pod)
    assert TABLES[2] in pod.tables()
    enrol(agent, peer, pod, "u", "--dns-capture=false")
    assert TABLES[2] not in pod.tables() and pod.is_captured()


def test_tampered_rules_are_redone(agent, pods):
    pod = pods()
    agent.start()
    peer = agent.connect()
    peer.snapshot()
    enrol(agent, peer, pod)
    good = pod.state()
    pod.run("nft", "add rule inet istio-ambient-nat istio-output counter drop")
    pod.run("ip", "rule", "del", "prio", "32764")
    enrol(agent, peer, pod)
    assert pod.state() == good


def test_v4_only(agent, pods):
    pod = pods()
    agent.start("--ipv6=false")
    peer = agent.connect()
    peer.snapshot()
    enrol(agent, peer, pod)
    rules, rule4, route4, rule6, route6 = pod.state()
    assert "ip6" not in rules and "32764" in rule4 and "32764" not in rule6 and route4 and not route6


def test_ipv6_disabled_on_lo(agent, pods):
    pod = pods()
    pod.run("sysctl", "-qw", "net.ipv6.conf.lo.disable_ipv6=1")
    agent.start()
    peer = agent.connect()
    peer.snapshot()
    enrol(agent, peer, pod)
    _, rule4, route4, _, route6 = pod.state()
    assert "32764" in rule4 and route4 and not route6


def test_no_rules(agent, pods):
    pod = pods()
    before = pod.state()
    agent.start("--no-rules")
    peer = agent.connect()
    peer.snapshot()
    enrol(agent, peer, pod)
    assert pod.state() == before
    proc = agent.call_async("del", "--uid", "u")
    peer.take("del", "u")
    finish(proc)


# --- what is refused -----------------------------------------------------------


def test_wrong_pods_are_refused(agent, pods, tmp_path):
    pod, other = pods(), pods("b")
    agent.start()
    peer = agent.connect()
    peer.snapshot()
    before = pod.state()
    plain = tmp_path / "plain"
    plain.write_text("x")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    def refused(*args, part):
        res = agent.call("add", "--uid", "u", "--name", "n", "--namespace", "ns", "--service-account", "sa", *args, check=False)
        assert res.returncode == 1 and part in res.stderr and res.stderr.count("\n") == 1, res
    refused("--netns", "/nowhere", "--ip", pod.ip, part="No such file")
    refused("--netns", plain, "--ip", pod.ip, part="not a network namespace")
    refused("--netns", fifo, "--ip", pod.ip, part="not a network namespace")
    refused("--netns", "/proc/self/ns/mnt", "--ip", pod.ip, part="not a network namespace")
    refused("--netns", "/proc/self/ns/net", "--ip", pod.ip, part="of the agent itself")
    refused("--netns", pod.path, "--ip", other.ip, part="no interface of the network namespace carries an address")
    refused("--netns", pod.path, "--ip", "frob", part="add.ips[0]: an IP address")
    refused("--pid", "4194303", "--ip", pod.ip, part="No such file")
    assert agent.pods() == {} and pod.state() == before
    enrol(agent, peer, pod, "first")
    refused("--netns", pod.path, "--ip", pod.ip, part="that of pod first already")
    assert set(agent.pods()) == {"first"} and pod.is_captured()
    assert peer.is_silent()


def test_a_failed_change_leaves_the_pod_as_it_was(agent, pods):
    pod, other = pods(), pods("b")
    agent.start()
    peer = agent.connect()
    peer.snapshot()
    enrol(agent, peer, pod)
    good = pod.state()
    proc = agent.call_async("add", "--uid", "u", "--name", "web", "--namespace", "shop", "--service-account", "web-sa", "--netns", other.path, "--ip", pod.ip)
    assert "carries an address" in finish(proc, 1)
    assert peer.take("add", "u")[3] == pod.ino
    agent.wait_state("u", "enrolled")
    assert agent.pods()["u"]["netns"] == pod.path and pod.state() == good and other.tables() == set()


def test_usage_and_absence(agent, tmp_path):
    res = run(AGENT, "--socket", tmp_path / "none", "list", check=False)
    assert res.returncode == 1 and "no agent at" in res.stderr
    assert run(AGENT, "frob", check=False).returncode == 2
    assert run(AGENT, "add", check=False).returncode == 2
    assert "usage:" in run(AGENT, "--help").stdout
    assert run(AGENT, "--version").stdout.startswith("culvert-cni-agent ")
    agent.start()
    assert "no such pod" in agent.call("del", "--uid", "u", check=False).stderr
    res = run(AGENT, "--zds-socket", tmp_path / "z", "--socket", tmp_path / "s", "--log-level", "a=b=c", check=False)
    assert res.returncode != 0 and not (tmp_path / "z").exists()


# --- ZDS -----------------------------------------------------------------------


def test_add_carries_name_and_namespace(agent, pods):
    pod = pods()
    agent.start()
    peer = agent.connect()
    assert peer.snapshot() == {}
    kind, uid, info, ino = enrol(agent, peer, pod)
    assert info == ("web", "shop", "web-sa") and ino == pod.ino
    assert peer.is_silent()
    again = agent.connect()
    assert again.snapshot() == {"u": ("add", ("web", "shop", "web-sa"), pod.ino)}


def test_by_pid(agent, pods):
    pod = pods()
    sleeper = subprocess.Popen(["ip", "netns", "exec", pod.name, "sleep", "60"])
    try:
        wait_for("sleep", lambda: os.stat(f"/proc/{sleeper.pid}/ns/net").st_ino == pod.ino)
        agent.start()
        peer = agent.connect()
        peer.snapshot()
        proc = agent.call_async("add", "--uid", "u", "--name", "n", "--namespace", "ns", "--service-account", "sa", "--pid", sleeper.pid, "--ip", pod.ip)
        assert peer.take("add", "u")[3] == pod.ino
        finish(proc)
    finally:
        sleeper.kill()
        sleeper.wait()


def test_add_waits_for_a_data_plane(agent, pods):
    pod = pods()
    agent.start()
    proc = agent.add_async(pod)
    agent.wait_state("u", "pending")
    assert agent.pods()["u"]["error"] == "no ztunnel connection" and proc.poll() is None
    peer = agent.connect()
    assert set(peer.snapshot()) == {"u"}
    finish(proc)
    assert agent.pods()["u"]["state"] == "enrolled"


def test_nack_is_told_and_tried_again(agent, pods):
    pod = pods()
    agent.start()
    peer = agent.connect()
    peer.snapshot()
    proc = agent.add_async(pod)
    peer.take("add", "u", error=b"failure to start proxy : no")
    err = finish(proc, 1)
    assert "got ack error: failure to start proxy : no" in err and "pending" in err
    for _ in range(3):
        peer.take("add", "u", error=b"still no")
    peer.take("add", "u")
    agent.wait_state("u", "enrolled")
    assert "error" not in agent.pods()["u"] and peer.is_silent()


def test_two_data_planes(agent, pods):
    one, two = pods("a"), pods("b")
    agent.start()
    old = agent.connect()
    old.snapshot()
    enrol(agent, old, one, "one")
    new = agent.connect()
    assert set(new.snapshot()) == {"one"}
    enrol(agent, new, two, "two")
    assert old.is_silent()
    proc = agent.call_async("del", "--uid", "one")
    new.take("del", "one")
    assert proc.poll() is None
    old.take("del", "one")
    finish(proc)
    new.close()
    enrol(agent, old, one, "one")


def test_slow_data_plane_is_dropped_and_resynchronised(agent, pods):
    pod = pods()
    agent.start()
    slow = agent.connect()
    slow.snapshot()
    proc = agent.add_async(pod)
    assert slow.recv()[:2] == ("add", "u")
    start = time.monotonic()
    assert slow.recv() is None, "five seconds without an ack end the connection"
    assert 4 < time.monotonic() - start < 8
    slow.close()
    peer = agent.connect()
    assert set(peer.snapshot()) == {"u"}
    finish(proc)
    agent.wait_state("u", "enrolled")


def test_hello_deadline(agent):
    agent.start()
    mute = agent.connect(hello=False)
    start = time.monotonic()
    assert mute.recv() is None
    assert 4 < time.monotonic() - start < 8


def test_unasked_packet_ends_the_connection(agent):
    agent.start()
    peer = agent.connect()
    peer.snapshot()
    peer.ack()
    assert peer.recv() is None


def test_accept_rate(agent):
    agent.start()
    peers = [agent.connect() for _ in range(4)]
    start = time.monotonic()
    for peer in peers:
        peer.snapshot()
    assert time.monotonic() - start > 0.5


def test_new_namespace_and_new_name(agent, pods):
    pod = pods()
    agent.start()
    peer = agent.connect()
    peer.snapshot()
    enrol(agent, peer, pod)
    old_ino, old_fd = pod.ino, os.open(pod.path, os.O_RDONLY)
    pod.remove()
    pod.make()
    got = enrol(agent, peer, pod)
    assert got[3] == pod.ino != old_ino and pod.is_captured()
    res = run("nsenter", f"--net=/proc/self/fd/{old_fd}", "nft", "list", "ruleset", pass_fds=[old_fd])
    assert res.stdout == "", "the namespace it left is clean"
    os.close(old_fd)
    proc = agent.add_async(pod, "u", sa="other")
    peer.take("del", "u")
    assert peer.take("add", "u")[2] == ("web", "shop", "other")
    finish(proc)


def test_no_descriptor_leaks(agent, pods):
    pod = pods()
    agent.start()
    peer = agent.connect()
    peer.snapshot()

    def cycle():
        enrol(agent, peer, pod)
        proc = agent.call_async("del", "--uid", "u")
        peer.take("del", "u")
        finish(proc)
        extra = agent.connect()
        extra.snapshot()
        extra.close()
    cycle()
    wait_for("quiet", lambda: agent.pods() == {})
    before = agent.fds()
    for _ in range(5):
        cycle()
    wait_for(f"{before} descriptors", lambda: agent.fds() <= before)
    assert not list(Path(f"/proc/{agent.proc.pid}/task/{agent.proc.pid}").glob("children")) or \
        Path(f"/proc/{agent.proc.pid}/task/{agent.proc.pid}/children").read_text() == ""


# --- pods file -----------------------------------------------------------------


def pod_yaml(pod, uid, **more):
    rec = {"name": uid, "namespace": "shop", "serviceAccount": "sa", "uid": uid, "netns": pod.path, "ips": [pod.ip, pod.ip6], **more}
    return json.dumps(rec)


def write_pods(path, *records):
    path.with_suffix(".tmp").write_text("pods:\n" + "".join(f"- {r}\n" for r in records))
    path.with_suffix(".tmp").rename(path)


def test_pods_file(agent, pods, tmp_path):
    one, two = pods("a"), pods("b")
    path = tmp_path / "pods.yaml"
    write_pods(path, pod_yaml(one, "one"))
    agent.start("--pods", path)
    peer = agent.connect()
    assert set(peer.snapshot()) == {"one"}
    write_pods(path, pod_yaml(one, "one"), pod_yaml(two, "two"))
    peer.take("add", "two")
    write_pods(path, pod_yaml(two, "two"))
    peer.take("del", "one")
    wait_for("rules out", lambda: one.tables() == set())
    # A bad file changes nothing and is named with its key.
    for bad, part in ((pod_yaml(two, "two", colour="red"), "pods[0].colour: unknown key"), (pod_yaml(two, "two", ips="x"), "pods[0].ips"),):
        write_pods(path, bad)
        wait_for(part, lambda part=part: part in agent.log.read_text())
    write_pods(path, pod_yaml(two, "two"), pod_yaml(two, "two"))
    wait_for("twice", lambda: "`two` is there twice" in agent.log.read_text())
    path.unlink()
    wait_for("missing", lambda: agent.log.read_text().count("the running state stays") >= 4)
    assert peer.is_silent() and two.is_captured()
    assert "listed in a pods file" in agent.call("del", "--uid", "two", check=False).stderr
    assert "listed in a pods file" in agent.call(*agent.add_args(two, "two"), check=False).stderr
    write_pods(path)
    peer.take("del", "two")
    wait_for("rules out", lambda: two.tables() == set())


def test_pods_directory(agent, pods, tmp_path):
    one, two = pods("a"), pods("b")
    where = tmp_path / "pods.d"
    where.mkdir()
    write_pods(where / "one.yaml", pod_yaml(one, "one"))
    agent.start("--pods", where, "--dns-capture=false")
    peer = agent.connect()
    assert set(peer.snapshot()) == {"one"}
    write_pods(where / "two.yaml", pod_yaml(two, "two", dnsCapture=True))
    peer.take("add", "two")
    assert TABLES[2] in two.tables()
    (where / "one.yaml").unlink()
    peer.take("del", "one")


def test_pods_file_before_the_namespace(agent, pods, tmp_path):
    path = tmp_path / "pods.yaml"
    pod = pods()
    pod.remove()
    write_pods(path, pod_yaml(pod, "early"))
    agent.start("--pods", path)
    peer = agent.connect()
    # A pod that cannot be reached may be running all the same.
    assert peer.snapshot() == {"early": ("keep", None, None)}
    pod.make()
    assert peer.take("add", "early")[3] == pod.ino
    agent.wait_state("early", "enrolled")


def test_bad_pods_file_at_start(agent, tmp_path):
    path = tmp_path / "pods.yaml"
    path.write_text("pods: [{uid: u}]")
    agent.start("--pods", path, wait=False)
    assert agent.proc.wait(timeout=PATIENCE) == 1
    assert "missing key" in agent.log.read_text()
    assert not agent.zds.exists() and not agent.control.exists()


def test_many_pods_in_one_snapshot(agent, pods, tmp_path):
    made = [pods(f"m{i}") for i in range(20)]
    path = tmp_path / "pods.yaml"
    write_pods(path, *(pod_yaml(p, f"uid-{i}") for i, p in enumerate(made)))
    agent.start("--pods", path)
    peer = agent.connect()
    named = peer.snapshot()
    assert {uid: ino for uid, (_, _, ino) in named.items()} == {f"uid-{i}": p.ino for i, p in enumerate(made)}
    assert all(p.is_captured() for p in made)


# --- life ----------------------------------------------------------------------


def test_clean_exit_leaves_rules_and_takes_sockets(agent, pods):
    pod = pods()
    agent.start()
    peer = agent.connect()
    peer.snapshot()
    enrol(agent, peer, pod)
    assert agent.stop() == 0
    assert not agent.zds.exists() and not agent.control.exists()
    assert pod.is_captured() and peer.recv() is None
    agent.start()
    assert agent.stop(signal.SIGINT) == 0


def test_sockets_of_a_successor_stay(agent, tmp_path_factory):
    agent.start()
    successor = Agent(agent.tmp)
    first = agent.zds.stat().st_ino
    successor.start(wait=False)
    try:
        wait_for("new sockets", lambda: agent.zds.exists() and agent.zds.stat().st_ino != first and agent.control.exists())
        wait_for("answer", lambda: successor.call("list", check=False).returncode == 0)
        assert agent.stop() == 0
        assert agent.zds.exists() and agent.control.exists()
        successor.connect().snapshot()
    finally:
        successor.stop(signal.SIGKILL)


def test_killed_with_state(agent, pods, tmp_path):
    one, two = pods("a"), pods("b")
    where = tmp_path / "state"
    agent.start("--state", where, "--dns-capture=false")
    peer = agent.connect()
    peer.snapshot()
    enrol(agent, peer, one, "one")
    enrol(agent, peer, two, "odd / uid", "--dns-capture=true")
    assert sorted(p.stat().st_mode & 0o777 for p in where.iterdir()) == [0o600, 0o600]
    agent.stop(signal.SIGKILL)
    one.run("nft", "flush", "ruleset")
    agent.start("--state", where, "--dns-capture=false")
    again = agent.connect()
    named = again.snapshot()
    assert {uid: ino for uid, (_, _, ino) in named.items()} == {"one": one.ino, "odd / uid": two.ino}
    assert one.is_captured() and TABLES[2] in two.tables()
    proc = agent.call_async("del", "--uid", "one")
    again.take("del", "one")
    finish(proc)
    assert len(list(where.iterdir())) == 1
    agent.stop(signal.SIGKILL)
    two.remove()
    agent.start("--state", where)
    third = agent.connect()
    assert third.snapshot() == {"odd / uid": ("keep", None, None)}
    proc = agent.call_async("del", "--uid", "odd / uid")
    third.take("del", "odd / uid")
    finish(proc)
    assert list(where.iterdir()) == []


def test_killed_without_state(agent, pods):
    pod = pods()
    agent.start()
    peer = agent.connect()
    peer.snapshot()
    enrol(agent, peer, pod)
    agent.stop(signal.SIGKILL)
    agent.start()
    assert agent.connect().snapshot() == {}


def test_more_clients_than_places(agent):
    agent.start()
    idle = []
    for _ in range(70):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(str(agent.control))
        idle.append(sock)
    # Places are freed when those who ask nothing are dropped, after 5 s, or leave.
    idle.pop(0).close()
    for sock in idle[:10]:
        sock.close()
    assert agent.pods() == {}
    for sock in idle[10:]:
        sock.close()


def test_control_socket_takes_no_nonsense(agent):
    agent.start()
    assert agent.control.stat().st_mode & 0o777 == 0o600 and agent.zds.stat().st_mode & 0o777 == 0o600
    for text, part in ((b"", "a map"), (b"\xff", "UTF-8"), (b'{"frob": {}}', "frob: unknown key"), (b"x" * 40000, "too long")):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(PATIENCE)
        sock.connect(str(agent.control))
        sock.sendall(text)
        sock.shutdown(socket.SHUT_WR)
        answer = json.loads(sock.recv(65536))
        assert answer["outcome"] == "refused" and part in answer["error"], answer
        sock.close()
    # Clients that vanish at any point harm nobody.
    for text in (b"", b'{"list": {}}'):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(str(agent.control))
        sock.send(text)
        sock.close()
    assert agent.pods() == {}
