# SPDX-License-Identifier: GPL-2.0-or-later
"""culvertd's first process and warden against a scripted node agent.

Real processes in a network namespace of their own; silo and broker are the
doubles beside this file. The agent's messages are written by hand, so that
wrong ones can be sent too.
"""
import array
import contextlib
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("CULVERT_BUILD", "build"))
PATIENCE = float(os.environ.get("CULVERT_TEST_PATIENCE", "15"))
NET_RAW = 1 << 13

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def wait_for(what, cond, timeout=PATIENCE):
    end = time.monotonic() + timeout
    while True:
        value = cond()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"timed out waiting for {what}")
        time.sleep(0.01)


# --- the agent's side of ZDS ---

def field(number, data):
    """A length-delimited protobuf field."""
    size, out = len(data), bytes([number << 3 | 2])
    while size > 127:
        out += bytes([size & 127 | 128])
        size >>= 7
    return out + bytes([size]) + data


def info(name="good", ns="ns", sa="sa"):
    return field(1, name.encode()) + field(2, ns.encode()) + field(3, sa.encode())


def add(uid, workload=info()):
    return field(1, field(1, uid.encode()) + (field(2, workload) if workload is not None else b""))


def keep(uid):
    return field(5, field(1, uid.encode()))


def delete(uid):
    return field(2, field(2, uid.encode()))


SNAPSHOT = field(3, b"")
OK = b"\x0a\x00"


class Agent:
    """Listens where the warden dials, sends what it is told to."""

    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(path))
        self.listener.listen(8)
        self.listener.settimeout(PATIENCE)
        self.conn = None

    def accept(self):
        if self.conn:
            self.conn.close()
        self.conn, _ = self.listener.accept()
        self.conn.settimeout(PATIENCE)
        assert self.conn.recv(1024) == b"\x08\x01"
        return self

    def send(self, message, *fds):
        anc = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.conn.sendmsg([message], anc)

    def ask(self, message, *fds):
        self.send(message, *fds)
        return self.conn.recv(2048)

    def ack(self, message, *fds):
        answer = self.ask(message, *fds)
        assert answer == OK, answer

    def nack(self, text, message, *fds):
        answer = self.ask(message, *fds)
        assert answer[:1] == b"\x0a" and answer != OK and len(answer) <= 1024, answer
        assert text in answer.decode(errors="replace"), answer

    def is_closed(self):
        try:
            return self.conn.recv(1024) == b""
        except ConnectionResetError:
            return True

    def close(self):
        for sock in (self.conn, self.listener):
            if sock:
                sock.close()


# --- pods and processes ---

class Netns:
    count = 0

    def __init__(self):
        Netns.count += 1
        self.name = f"warden-{os.getpid()}-{Netns.count}"
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        self.fd = os.open(f"/run/netns/{self.name}", os.O_RDONLY)
        self.inode = os.fstat(self.fd).st_ino

    def exec(self, *cmd, **kw):
        return subprocess.run(["ip", "netns", "exec", self.name, *cmd], capture_output=True, text=True, **kw)

    def listens(self, port=15008):
        return f":{port}" in self.exec("ss", "-Hltn").stdout

    def close(self):
        os.close(self.fd)
        subprocess.run(["ip", "netns", "del", self.name], check=False)


def children(pid):
    with contextlib.suppress(OSError):
        return [int(p) for t in os.listdir(f"/proc/{pid}/task") for p in Path(f"/proc/{pid}/task/{t}/children").read_text().split()]
    return []


def status(pid, key):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return line.split(":", 1)[1].strip()
    return None


def fd_count(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def comm(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
    return ""


class Daemon:
    """culvertd with the doubles, its output in a file."""

    def __init__(self, tmp, prefix=(), **env):
        self.tmp = tmp
        self.out = tmp / "out.log"
        libexec = tmp / "libexec"
        if not libexec.exists():
            libexec.mkdir()
            (libexec / "culvert-silo").symlink_to((BUILD / "tests/unit/warden/fake_silo").resolve())
            (libexec / "culvert-broker").symlink_to((BUILD / "tests/unit/warden/fake_broker").resolve())
        self.env = {
            "PATH": os.environ["PATH"], "CULVERT_LIBEXEC_DIR": str(libexec), "CULVERT_RUN_DIR": str(tmp / "run"),
            "INPOD_UDS": str(tmp / "zds.sock"), "RUST_LOG": "debug", **env,
        }
        for name in ("ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                self.env[name] = os.environ[name]
        self.proc = subprocess.Popen([*prefix, "unshare", "-n", str((BUILD / "src/warden/culvertd").resolve()), "proxy", "ztunnel"],
                                     env=self.env, stdout=open(self.out, "ab"), stderr=subprocess.STDOUT, start_new_session=True)

    def role(self, name):
        return next((p for p in children(self.proc.pid) if comm(p).endswith(name)), None)

    @property
    def warden(self):
        return wait_for("the warden", lambda: self.role("culvert-warden"))

    @property
    def broker(self):
        return wait_for("the broker", lambda: self.role("culvert-broker"))

    def silos(self):
        """All silos, also those that the first process has inherited."""
        found = []
        for parent in [self.proc.pid, *children(self.proc.pid)]:
            found += [p for p in children(parent) if comm(p).endswith("culvert-silo")]
        return sorted(found)

    def silo_in(self, netns):
        for pid in self.silos():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{pid}/ns/net").st_ino == netns.inode:
                    return pid
        return None

    def log(self):
        return self.out.read_text(errors="replace")

    def wait_log(self, text, count=1):
        wait_for(f"log line with {text!r}", lambda: self.log().count(text) >= count)

    def last_node_state(self):
        lines = [line for line in self.log().splitlines() if "NodeState" in line]
        return lines[-1].split("NodeState ")[1] if lines else None

    def instances(self):
        with contextlib.suppress(OSError):
            return [p for p in (self.tmp / "run").iterdir() if p.is_dir()]
        return []

    def term(self, number=signal.SIGTERM):
        self.proc.send_signal(number)
        return self.proc.wait(PATIENCE)

    def end(self):
        if self.proc.poll() is None:
            self.proc.terminate()
            try:
                self.proc.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                for pid in [*self.silos(), *children(self.proc.pid), self.proc.pid]:
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                self.proc.wait()
                raise


@pytest.fixture
def rig(tmp_path):
    """A daemon with a connected agent before its snapshot."""
    agent = Agent(tmp_path / "zds.sock")
    daemon = Daemon(tmp_path)
    try:
        agent.accept()
        yield daemon, agent
        assert "Sanitizer" not in daemon.log()
    finally:
        daemon.end()
        agent.close()


@pytest.fixture
def netns():
    made = []

    def make():
        made.append(Netns())
        return made[-1]
    yield make
    for item in made:
        item.close()


# --- command line ---

def culvertd(*args, **env):
    return subprocess.run([BUILD / "src/warden/culvertd", *args], capture_output=True, text=True, env={"PATH": os.environ["PATH"], **env}, timeout=PATIENCE)


def test_command_line():
    res = culvertd("version", ISTIO_META_ISTIO_VERSION="1.30")
    assert res.returncode == 0
    assert res.stdout.startswith('version.BuildInfo{Version:"') and 'CryptoProvider:"wolfssl-5' in res.stdout
    assert 'IstioVersion:"1.30"' in res.stdout and res.stdout.count("\n") == 1
    assert culvertd("--version").stdout.startswith("version.BuildInfo")
    for word in ("help", "--help", "-h"):
        res = culvertd(word)
        assert res.returncode == 0 and res.stdout.startswith("\nculvert (") and "proxy" in res.stdout
    res = culvertd("nonsense")
    assert res.returncode == 1 and res.stderr == "unknown command: nonsense\n" and "proxy" in res.stdout


@pytest.mark.parametrize("env,code,text", [
    ({"INPOD_PORT_REUSE": "yes"}, 1, "Error: "),
    ({"RUST_LOG": "what=ever=this"}, 101, "Error: "),
    ({"CULVERT_LIBEXEC_DIR": "/nonexistent"}, 1, "Error: program /nonexistent/culvert-broker"),
])
def test_bad_settings(env, code, text, tmp_path):
    res = culvertd("proxy", **{"CULVERT_RUN_DIR": str(tmp_path / "run"), **env})
    assert res.returncode == code
    assert res.stderr.startswith(text)


def test_missing_silo(tmp_path):
    (tmp_path / "libexec").mkdir()
    (tmp_path / "libexec" / "culvert-broker").symlink_to((BUILD / "tests/unit/warden/fake_broker").resolve())
    daemon = Daemon(tmp_path)
    assert daemon.proc.wait(PATIENCE) == 1
    assert f"Error: program {tmp_path}/libexec/culvert-silo" in daemon.log()
    assert daemon.instances() == []


def test_fatal_broker_ends_the_daemon(tmp_path):
    daemon = Daemon(tmp_path, FAKE_BROKER_EXIT="1")
    assert daemon.proc.wait(PATIENCE) == 1
    assert daemon.instances() == []


# --- the conversation with the agent ---

def test_add_and_snapshot(rig, netns):
    daemon, agent = rig
    pod = netns()
    agent.ack(add("uid-1"), pod.fd)
    assert pod.listens(15008) and pod.listens(15006) and pod.listens(15001)
    assert pod.listens(15053)
    agent.ack(SNAPSHOT)
    daemon.wait_log("NodeState connected=1 snapshot=1 pending=0")
    daemon.wait_log("SiloState uid=uid-1 name=good state=1")
    daemon.wait_log("SiloAttach uid=uid-1")
    silo = daemon.silo_in(pod)
    agent.ack(add("uid-1"), pod.fd)
    agent.ack(add("uid-1", info("other", "name")), pod.fd)
    assert daemon.silo_in(pod) == silo and len(daemon.silos()) == 1
    assert list(daemon.instances()[0].glob("silo-uid-1.sock"))
    agent.ack(delete("uid-1"))
    wait_for("the silo's end", lambda: not daemon.silos())
    assert not pod.listens()
    agent.ack(delete("uid-1"))
    agent.ack(delete(""))
    daemon.wait_log("SiloState uid=uid-1 name=other state=2" if "name=other" in daemon.log() else "SiloState uid=uid-1 name=good state=2")
    assert "drain graceful=0" in daemon.log()
    assert not list(daemon.instances()[0].glob("silo-*.sock"))


def test_silo_is_stripped(rig, netns):
    daemon, agent = rig
    pod = netns()
    agent.ack(add("uid-1"), pod.fd)
    silo = daemon.silo_in(pod)
    for name in ("CapPrm", "CapEff", "CapBnd"):
        assert int(status(silo, name), 16) == NET_RAW, name
    assert status(silo, "NoNewPrivs") == "1"
    assert status(silo, "Uid").split()[0] == "0"
    assert next(l for l in Path(f"/proc/{silo}/limits").read_text().splitlines() if l.startswith("Max core file size")).split()[4:6] == ["0", "0"]
    fds = {int(n): os.readlink(f"/proc/{silo}/fd/{n}") for n in os.listdir(f"/proc/{silo}/fd")}
    assert set(range(3, 10)) <= set(fds)
    env = Path(f"/proc/{silo}/environ").read_bytes()
    assert b"CULVERT_LIBEXEC_DIR" not in env and b"RUST_LOG=debug" in env
    broker = daemon.broker
    for name in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb"):
        assert int(status(broker, name), 16) == 0, name
    assert status(broker, "NoNewPrivs") == "1"
    warden = daemon.warden
    allowed = 1 << 21 | 1 << 12 | NET_RAW | 1 << 1
    assert int(status(warden, "CapPrm"), 16) & ~allowed == 0
    assert int(status(warden, "CapBnd"), 16) == NET_RAW


def test_socket_options(rig, netns):
    daemon, agent = rig
    pod = netns()
    agent.ack(add("uid-1"), pod.fd)
    lines = pod.exec("ss", "-Hltne").stdout.splitlines()
    dns = [line for line in lines if ":15053 " in line]
    assert dns and all("fwmark:0x539" in line and "127.0.0.1:" in line or "[::1]:" in line for line in dns)
    traffic = [line for line in lines if line not in dns]
    assert len(traffic) == 3
    for line in traffic:
        assert "*:150" in line and "fwmark:0x539" in line and "v6only:0" in line and line.split()[2] == "128"
    # Another daemon's listener beside ours, as in a rolling update.
    code = "import socket; s = socket.socket(socket.AF_INET6); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1); s.bind(('::', 15008)); s.listen()"
    assert pod.exec("python3", "-c", code).returncode == 0


def test_move_to_another_netns(rig, netns):
    daemon, agent = rig
    old, new = netns(), netns()
    agent.ack(SNAPSHOT)
    agent.ack(add("uid-1"), old.fd)
    agent.ack(add("uid-1"), new.fd)
    assert new.listens()
    wait_for("the old silo's end", lambda: daemon.silo_in(old) is None)
    assert daemon.silo_in(new) and len(daemon.silos()) == 1
    sock = daemon.instances()[0] / "silo-uid-1.sock"
    assert sock.exists()


def test_reconnect_with_keep_and_omission(rig, netns):
    daemon, agent = rig
    kept, omitted = netns(), netns()
    agent.ack(add("uid-1"), kept.fd)
    agent.ack(add("uid-2"), omitted.fd)
    agent.ack(SNAPSHOT)
    silo = daemon.silo_in(kept)
    agent.accept()
    daemon.wait_log("NodeState connected=0")
    agent.ack(keep("uid-1"))
    agent.ack(keep("uid-never-seen"))
    assert daemon.silo_in(omitted)
    agent.ack(SNAPSHOT)
    wait_for("the omitted silo's end", lambda: daemon.silo_in(omitted) is None)
    assert daemon.silo_in(kept) == silo


def test_del_before_the_snapshot(rig, netns):
    daemon, agent = rig
    pod = netns()
    agent.ack(add("uid-1"), pod.fd)
    agent.ack(delete("uid-1"))
    assert daemon.silo_in(pod)
    agent.ack(SNAPSHOT)
    wait_for("the silo's end", lambda: not daemon.silos())


@pytest.mark.parametrize("uid", ["a/b/../c", "x" * 950, "ü", "silo-x.sock", "-", ".."])
def test_uids(rig, netns, uid):
    daemon, agent = rig
    pod = netns()
    agent.ack(add(uid), pod.fd)
    agent.ack(SNAPSHOT)
    assert daemon.silo_in(pod)
    agent.ack(delete(uid))
    wait_for("the silo's end", lambda: not daemon.silos())


def test_uid_of_a_thousand_bytes(rig, netns):
    daemon, agent = rig
    pod = netns()
    uid = "/" * 1000
    message = add(uid, b"")
    assert len(message) <= 1024
    agent.ack(message, pod.fd)
    assert daemon.silo_in(pod)
    agent.ack(delete(uid))


@pytest.mark.parametrize("name,text", [
    ("refuse", "failure to start proxy : no luck"),
    ("exit", "failure to start proxy : silo exited with status 3"),
    ("moan", "failure to start proxy : things are bad"),
    ("garbage", "failure to start proxy : channel to the silo: "),
])
def test_failed_start(rig, netns, name, text):
    daemon, agent = rig
    pod, other = netns(), netns()
    agent.ack(SNAPSHOT)
    agent.nack(text, add("uid-1", info(name)), pod.fd)
    daemon.wait_log("NodeState connected=1 snapshot=1 pending=1")
    assert not pod.listens() and not daemon.silos()
    agent.ack(add("uid-2"), other.fd)
    assert daemon.last_node_state() == "connected=1 snapshot=1 pending=1"
    agent.ack(delete("uid-1"))
    daemon.wait_log("NodeState connected=1 snapshot=1 pending=0", 2)


def test_start_deadline(rig, netns):
    daemon, agent = rig
    pod = netns()
    begin = time.monotonic()
    agent.nack("failure to start proxy : silo was not ready in time", add("uid-1", info("never")), pod.fd)
    assert 1.5 < time.monotonic() - begin < 4
    assert not daemon.silos()


def test_taken_port_is_retried(rig, netns):
    daemon, agent = rig
    pod = netns()
    agent.ack(SNAPSHOT)
    blocker = subprocess.Popen(["ip", "netns", "exec", pod.name, "python3", "-c",
                                "import socket, time; s = socket.socket(); s.bind(('0.0.0.0', 15006)); s.listen(); print(1, flush=True); time.sleep(60)"],
                               stdout=subprocess.PIPE)
    try:
        blocker.stdout.readline()
        agent.nack('failure to start proxy : Bind([::]:15006, Os { code: 98, kind: AddrInUse, message: "Address already in use" })',
                   add("uid-1"), pod.fd)
        assert not pod.listens(15008), "what was bound before the failure is closed"
    finally:
        blocker.kill()
        blocker.wait()
    begin = time.monotonic()
    wait_for("the retry", lambda: daemon.silo_in(pod))
    assert time.monotonic() - begin > 2
    daemon.wait_log("NodeState connected=1 snapshot=1 pending=0", 2)
    agent.ack(add("uid-1"), pod.fd)


def test_wrong_descriptors(rig, netns):
    daemon, agent = rig
    pod = netns()
    before = fd_count(daemon.warden)
    null = os.open("/dev/null", os.O_RDONLY)
    own = os.open(f"/proc/{daemon.warden}/ns/net", os.O_RDONLY)
    fds = [null, own]
    try:
        agent.nack("not a network namespace", add("uid-1"), null)
        agent.nack("culvertd itself", add("uid-1"), own)
        with contextlib.suppress(PermissionError):
            fds.append(os.open("/proc/1/ns/net", os.O_RDONLY))
            agent.nack("that of the host", add("uid-1"), fds[-1])
        agent.ack(add("uid-1"), pod.fd)
        agent.ack(SNAPSHOT)
        agent.ack(delete("uid-1"))
        wait_for("the silo's end", lambda: not daemon.silos())
    finally:
        for fd in fds:
            os.close(fd)
    wait_for("closed descriptors", lambda: fd_count(daemon.warden) <= before)


@pytest.mark.parametrize("case,text", [
    ("no fd", "failure to read message : No control message"),
    ("two fds", "failure to read message : Expected 1 FD, got 2"),
    ("del with fd", "failure to read message : Unexpected control message"),
    ("oversized", "failure to read message : received truncated message"),
    ("unknown payload", "failure to read message : "),
    ("truncated", "failure to read message : "),
    ("no info", 'failure to process message : ProtocolError("workload_info is required but not present")'),
    ("keep after snapshot", 'failure to process message : ProtocolError("pod keep received after snapshot")'),
    ("second snapshot", 'failure to process message : ProtocolError("pod snapshot received already")'),
])
def test_violations(rig, netns, case, text):
    """Each is refused, the connection closed and dialled again; pods and process stay."""
    daemon, agent = rig
    pod, other = netns(), netns()
    agent.ack(add("uid-1"), pod.fd)
    agent.ack(SNAPSHOT)
    warden, silo, before = daemon.warden, daemon.silo_in(pod), fd_count(daemon.warden)
    packets = {
        "no fd": (add("uid-2"),), "two fds": (add("uid-2"), other.fd, other.fd), "del with fd": (delete("uid-1"), other.fd),
        "oversized": (add("u" * 1100), other.fd), "unknown payload": (b"\x7a\x00",), "truncated": (add("uid-2")[:-3], other.fd),
        "no info": (add("uid-2", None), other.fd), "keep after snapshot": (keep("uid-1"),), "second snapshot": (SNAPSHOT,),
    }
    agent.nack(text, *packets[case])
    assert agent.is_closed()
    agent.accept()
    agent.ack(keep("uid-1"))
    agent.ack(SNAPSHOT)
    assert (daemon.warden, daemon.silo_in(pod)) == (warden, silo)
    assert fd_count(daemon.warden) <= before


def test_zero_length_packet_is_a_hang_up(rig):
    daemon, agent = rig
    agent.send(b"")
    assert agent.is_closed()
    agent.accept().ack(SNAPSHOT)


def test_agent_goes_away_during_a_start(rig, netns):
    daemon, agent = rig
    pod = netns()
    agent.send(add("uid-1", info("slow")), pod.fd)
    agent.accept()
    agent.ack(add("uid-1", info("slow")), pod.fd)
    agent.ack(SNAPSHOT)
    assert len(daemon.silos()) == 1


def test_dial_backs_off(tmp_path):
    daemon = Daemon(tmp_path)
    try:
        daemon.wait_log("trying again in 160 ms")
        delays = [int(line.split(" again in ")[1].split()[0]) for line in daemon.log().splitlines() if " again in " in line]
        assert delays[:4] == [20, 40, 80, 160]
        agent = Agent(tmp_path / "zds.sock")
        agent.accept().ack(SNAPSHOT)
        agent.close()
    finally:
        daemon.end()


def test_no_zds_before_the_mesh(tmp_path):
    agent = Agent(tmp_path / "zds.sock")
    daemon = Daemon(tmp_path, FAKE_BROKER_MESH="no")
    try:
        daemon.wait_log("NodeState connected=0 snapshot=0 pending=0")
        agent.listener.settimeout(0.5)
        with pytest.raises(TimeoutError):
            agent.listener.accept()
        assert daemon.term() == 0
    finally:
        daemon.end()
        agent.close()


# --- crashes ---

def test_silo_is_restarted(rig, netns):
    daemon, agent = rig
    pod, other = netns(), netns()
    agent.ack(add("uid-1"), pod.fd)
    agent.ack(add("uid-2"), other.fd)
    agent.ack(SNAPSHOT)
    bystander = daemon.silo_in(other)
    first = daemon.silo_in(pod)
    os.kill(first, signal.SIGKILL)
    second = wait_for("a new silo", lambda: daemon.silo_in(pod) not in (None, first) and daemon.silo_in(pod))
    wait_for("its listeners", pod.listens)
    os.kill(second, signal.SIGKILL)
    wait_for("a new silo", lambda: daemon.silo_in(pod) not in (None, first, second))
    daemon.wait_log("restarting in 100 ms")
    daemon.wait_log("restarts=2")
    assert daemon.silo_in(other) == bystander
    assert daemon.last_node_state() == "connected=1 snapshot=1 pending=0"
    agent.ack(add("uid-1"), pod.fd)


def test_crashing_silo_can_be_deleted(rig, netns):
    daemon, agent = rig
    pod = netns()
    agent.ack(add("uid-1", info("crash")), pod.fd)
    agent.ack(SNAPSHOT)
    daemon.wait_log("restarting in 400 ms")
    agent.ack(delete("uid-1"))
    wait_for("the silo's end", lambda: not daemon.silos())
    time.sleep(0.6)
    assert not daemon.silos()


def test_broker_is_restarted(rig, netns):
    daemon, agent = rig
    pod = netns()
    agent.ack(add("uid-1"), pod.fd)
    agent.ack(SNAPSHOT)
    silo, broker = daemon.silo_in(pod), daemon.broker
    os.kill(broker, signal.SIGKILL)
    wait_for("a new broker", lambda: daemon.role("culvert-broker") not in (None, broker))
    daemon.wait_log("fake: broker attached")
    daemon.wait_log("SiloAttach uid=uid-1", 2)
    wait_for("the node state", lambda: daemon.log().split("broker: started")[-1].count("NodeState connected=1 snapshot=1 pending=0"))
    assert daemon.silo_in(pod) == silo
    os.kill(daemon.broker, signal.SIGUSR2)
    daemon.wait_log("SiloAttach uid=uid-1", 3)
    agent.ack(add("uid-1"), pod.fd)


def test_warden_is_restarted_and_adopts(rig, netns):
    daemon, agent = rig
    pod, second = netns(), netns()
    agent.ack(add("uid-1"), pod.fd)
    agent.ack(add("weird/uid", info("stubborn")), second.fd)
    agent.ack(SNAPSHOT)
    silo, warden = daemon.silo_in(pod), daemon.warden
    os.kill(warden, signal.SIGKILL)
    assert pod.listens()
    agent.accept()
    assert daemon.warden != warden
    agent.ack(add("uid-1"), pod.fd)
    agent.ack(keep("weird/uid"))
    agent.ack(SNAPSHOT)
    assert daemon.silo_in(pod) == silo and len(daemon.silos()) == 2
    daemon.wait_log("adopted the silo of ns/good (uid-1)")
    # An adopted silo is watched and restarted like any other.
    os.kill(silo, signal.SIGKILL)
    wait_for("a new silo", lambda: daemon.silo_in(pod) not in (None, silo))
    wait_for("its listeners", pod.listens)
    agent.ack(delete("uid-1"))
    agent.ack(delete("weird/uid"))
    wait_for("the silos' end", lambda: not daemon.silos())


def test_liar_is_not_adopted(rig, netns):
    daemon, agent = rig
    pod = netns()
    agent.ack(add("uid-1", info("liar")), pod.fd)
    agent.ack(SNAPSHOT)
    liar = daemon.silo_in(pod)
    os.kill(daemon.warden, signal.SIGKILL)
    agent.accept()
    daemon.wait_log("not adopting")
    wait_for("the liar's end", lambda: daemon.silo_in(pod) != liar)
    agent.ack(add("uid-1"), pod.fd)
    assert daemon.silo_in(pod)


def test_stuck_silo_is_not_adopted(rig, netns):
    """It would go on taking connections beside its successor, so it is killed."""
    daemon, agent = rig
    pod, other = netns(), netns()
    agent.ack(add("uid-1"), pod.fd)
    agent.ack(add("uid-2"), other.fd)
    agent.ack(SNAPSHOT)
    stuck, healthy = daemon.silo_in(pod), daemon.silo_in(other)
    os.kill(stuck, signal.SIGSTOP)
    os.kill(daemon.warden, signal.SIGKILL)
    agent.accept()
    daemon.wait_log("silo does not answer")
    wait_for("the stuck silo's end", lambda: daemon.silo_in(pod) != stuck)
    agent.ack(add("uid-1"), pod.fd)
    agent.ack(keep("uid-2"))
    agent.ack(SNAPSHOT)
    assert daemon.silo_in(pod) and daemon.silo_in(other) == healthy


def test_term_while_the_warden_is_down(rig, netns):
    """The next warden adopts first and drains then."""
    daemon, agent = rig
    pod, other = netns(), netns()
    agent.ack(add("uid-1"), pod.fd)
    agent.ack(add("uid-2", info("linger")), other.fd)
    agent.ack(SNAPSHOT)
    os.kill(daemon.silo_in(pod), signal.SIGSTOP)
    os.kill(daemon.warden, signal.SIGKILL)
    assert daemon.term() == 0
    assert not pod.listens() and not other.listens()
    assert daemon.instances() == []


def test_first_process_dies(tmp_path, netns):
    """Warden and broker go, silos stay, the next daemon adopts them."""
    agent = Agent(tmp_path / "zds.sock")
    pod = netns()
    daemon = Daemon(tmp_path)
    agent.accept().ack(add("uid-1"), pod.fd)
    agent.ack(SNAPSHOT)
    silo, warden, broker = daemon.silo_in(pod), daemon.warden, daemon.broker
    daemon.proc.kill()
    daemon.proc.wait()
    for pid in (warden, broker):
        wait_for("the end of its children", lambda: comm(pid) == "" or status(pid, "State").startswith("Z"))
    assert os.path.exists(f"/proc/{silo}") and pod.listens()
    successor = Daemon(tmp_path)
    try:
        agent.accept().ack(add("uid-1"), pod.fd)
        agent.ack(SNAPSHOT)
        assert len(successor.instances()) == 1
        assert comm(silo)
        agent.ack(delete("uid-1"))
        wait_for("the silo's end", lambda: not os.path.exists(f"/proc/{silo}") or status(silo, "State").startswith("Z"))
    finally:
        successor.end()
        agent.close()


def test_leave_and_adopt(tmp_path, netns):
    agent = Agent(tmp_path / "zds.sock")
    pod = netns()
    daemon = Daemon(tmp_path, CULVERT_ON_TERM="leave")
    agent.accept().ack(add("uid-1"), pod.fd)
    agent.ack(SNAPSHOT)
    silo = daemon.silo_in(pod)
    assert daemon.term() == 0
    assert pod.listens() and comm(silo)
    successor = Daemon(tmp_path)
    try:
        agent.accept().ack(add("uid-1"), pod.fd)
        agent.ack(SNAPSHOT)
        assert "adopted the silo of ns/good (uid-1)" in successor.log() and comm(silo)
    finally:
        successor.end()
        agent.close()
    assert not pod.listens() and successor.instances() == []


def test_two_daemons_side_by_side(tmp_path, netns):
    """A rolling update: both serve the pod, the old one's end refuses nothing and leaves the new one's folder alone."""
    pod = netns()
    agents = [Agent(tmp_path / name) for name in ("old.sock", "new.sock")]
    old = Daemon(tmp_path, INPOD_UDS=str(tmp_path / "old.sock"))
    new = None
    try:
        agents[0].accept().ack(add("uid-1"), pod.fd)
        agents[0].ack(SNAPSHOT)
        new = Daemon(tmp_path, INPOD_UDS=str(tmp_path / "new.sock"))
        agents[1].accept().ack(add("uid-1"), pod.fd)
        agents[1].ack(SNAPSHOT)
        assert len(old.instances()) == 2 and "adopted" not in new.log()
        first, second = old.silo_in(pod), new.silo_in(pod)
        assert first and second and first != second
        assert old.term() == 0
        assert pod.listens() and new.silo_in(pod) == second
        assert len(new.instances()) == 1
    finally:
        old.end()
        if new:
            new.end()
        for agent in agents:
            agent.close()


# --- the end ---

@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_graceful_end(tmp_path, netns, number):
    agent = Agent(tmp_path / "zds.sock")
    pods = [netns(), netns()]
    daemon = Daemon(tmp_path, CONNECTION_TERMINATION_DEADLINE="3s")
    agent.accept().ack(add("uid-1", info("linger")), pods[0].fd)
    agent.ack(add("uid-2"), pods[1].fd)
    agent.ack(SNAPSHOT)
    begin = time.monotonic()
    daemon.proc.send_signal(number)
    assert agent.is_closed()
    daemon.proc.send_signal(signal.SIGTERM)
    assert daemon.proc.wait(PATIENCE) == 0
    assert 0.25 < time.monotonic() - begin < 3
    log = daemon.log()
    assert "fake: drain graceful=1 deadline=3000" in log and "broker: Drain graceful=1 deadline=3000" in log
    assert f"received signal {number.name}, starting shutdown" in log
    assert daemon.instances() == []
    agent.close()


def test_stubborn_silo_is_killed(tmp_path, netns):
    agent = Agent(tmp_path / "zds.sock")
    pod = netns()
    daemon = Daemon(tmp_path, CONNECTION_TERMINATION_DEADLINE="1s")
    agent.accept().ack(add("uid-1", info("stubborn")), pod.fd)
    agent.ack(SNAPSHOT)
    begin = time.monotonic()
    assert daemon.term() == 0
    assert 1.9 < time.monotonic() - begin < 4
    assert not pod.listens()
    agent.close()


def test_second_sigint(tmp_path, netns):
    agent = Agent(tmp_path / "zds.sock")
    pod = netns()
    daemon = Daemon(tmp_path, CONNECTION_TERMINATION_DEADLINE="30s")
    agent.accept().ack(add("uid-1", info("stubborn")), pod.fd)
    agent.ack(SNAPSHOT)
    silo = daemon.silo_in(pod)
    daemon.proc.send_signal(signal.SIGINT)
    assert agent.is_closed()
    begin = time.monotonic()
    assert daemon.term(signal.SIGINT) == 0
    assert time.monotonic() - begin < 1
    wait_for("the silo's end", lambda: comm(silo) == "" or status(silo, "State").startswith("Z"))
    agent.close()


def test_sigint_after_sigterm_is_swallowed(tmp_path, netns):
    agent = Agent(tmp_path / "zds.sock")
    pod = netns()
    daemon = Daemon(tmp_path, CONNECTION_TERMINATION_DEADLINE="5s")
    agent.accept().ack(add("uid-1", info("linger")), pod.fd)
    agent.ack(SNAPSHOT)
    daemon.proc.terminate()
    assert agent.is_closed()
    daemon.proc.send_signal(signal.SIGINT)
    daemon.proc.send_signal(signal.SIGINT)
    assert daemon.proc.wait(PATIENCE) == 0
    assert "shutdown complete" in daemon.log()
    agent.close()


def test_stop_request(rig, netns):
    daemon, agent = rig
    pod = netns()
    agent.ack(add("uid-1"), pod.fd)
    os.kill(daemon.broker, signal.SIGUSR1)
    assert daemon.proc.wait(PATIENCE) == 0
    assert not pod.listens()


# --- the chart's privileges, dedicated mode, long runs ---

def test_privileges_of_the_chart(tmp_path, netns):
    """Three capabilities and nothing else: no setuid, no bounding set to touch."""
    agent = Agent(tmp_path / "zds.sock")
    pod = netns()
    caps = "net_admin,sys_admin,net_raw"
    plus = ",".join("+" + c for c in caps.split(","))
    daemon = Daemon(tmp_path, prefix=("setpriv", "--inh-caps=-all," + plus, "--bounding-set=-all," + plus, "--"))
    try:
        agent.accept().ack(add("uid-1"), pod.fd)
        agent.ack(SNAPSHOT)
        silo = daemon.silo_in(pod)
        assert int(status(silo, "CapPrm"), 16) == NET_RAW
        assert int(status(daemon.broker, "CapPrm"), 16) == 0
        assert status(daemon.broker, "Uid").split()[0] == "0"
        assert 'capabilities="net_admin net_raw sys_admin"' in daemon.log()
    finally:
        daemon.end()
        agent.close()


def test_own_uid_of_the_broker(tmp_path, netns):
    """Where the run directory can be reached, the broker gets its uid."""
    agent = Agent(tmp_path / "zds.sock")
    run_dir = Path(f"/tmp/warden-run-{os.getpid()}")
    daemon = Daemon(tmp_path, CULVERT_RUN_DIR=str(run_dir), CULVERT_BROKER_UID="4711", CULVERT_LIBEXEC_DIR=str(tmp_path / "libexec"))
    try:
        agent.accept().ack(SNAPSHOT)
        uid = status(daemon.broker, "Uid").split()[0]
        reachable = all(p.stat().st_mode & 1 for p in (tmp_path / "libexec").parents)
        assert uid == ("4711" if reachable else "0")
    finally:
        daemon.end()
        agent.close()
        subprocess.run(["rm", "-rf", str(run_dir)], check=True)


def test_dedicated(tmp_path):
    daemon = Daemon(tmp_path, PROXY_MODE="dedicated", PROXY_WORKLOAD_INFO="shop/cart/cart-sa")
    try:
        daemon.wait_log("SiloState uid=dedicated name=cart state=1")
        assert len(daemon.silos()) == 1
        assert daemon.term() == 0
    finally:
        daemon.end()


def test_a_thousand_rounds(rig, netns):
    daemon, agent = rig
    pods = [netns(), netns()]
    agent.ack(SNAPSHOT)
    rounds = int(os.environ.get("CULVERT_TEST_ROUNDS", "1000"))

    def one(i):
        uid = f"uid-{i % 3}"
        agent.ack(add(uid), pods[i % 2].fd)
        agent.ack(delete(uid))
    for i in range(20):
        one(i)
    wait_for("the silos' end", lambda: not daemon.silos())
    before = (fd_count(daemon.warden), fd_count(daemon.proc.pid), fd_count(daemon.broker))
    begin = time.monotonic()
    for i in range(rounds):
        one(i)
    took = time.monotonic() - begin
    wait_for("the silos' end", lambda: not daemon.silos())
    # Fewer is fine: the first count may have met a channel that was just being closed.
    wait_for("closed descriptors", lambda: all(
        now <= then for now, then in zip((fd_count(daemon.warden), fd_count(daemon.proc.pid), fd_count(daemon.broker)), before)))
    print(f"{rounds} rounds of Add and Del in {took:.1f} s")


def test_broker_that_does_not_read(rig, netns):
    """What the broker does not know is kept as a debt per pod, not as a queue per event."""
    daemon, agent = rig
    pods = [netns(), netns()]
    agent.ack(SNAPSHOT)
    agent.ack(add("told"), pods[0].fd)
    daemon.wait_log("SiloState uid=told name=good state=1")
    os.kill(daemon.broker, signal.SIGSTOP)
    try:
        begin = int(status(daemon.warden, "VmRSS").split()[0])
        for i in range(400):
            agent.ack(add(f"uid-{i % 5}"), pods[1].fd)
            agent.ack(delete(f"uid-{i % 5}"))
        agent.ack(delete("told"))
        assert "ASAN_OPTIONS" in os.environ or int(status(daemon.warden, "VmRSS").split()[0]) - begin < 4096
    finally:
        os.kill(daemon.broker, signal.SIGCONT)
    daemon.wait_log("SiloState uid=told name=good state=2")
    assert "it does not read" not in daemon.log()
    agent.ack(add("last"), pods[0].fd)
    daemon.wait_log("SiloState uid=last name=good state=1")
    last = {}
    for line in daemon.log().splitlines():
        if "SiloState" in line:
            last[line.split("uid=")[1].split()[0]] = line.split("state=")[1].split()[0]
    assert {uid: state for uid, state in last.items() if state != "2"} == {"last": "1"}


def test_many_pods_at_once(rig, netns):
    daemon, agent = rig
    pods = [netns() for _ in range(40)]
    begin = time.monotonic()
    for i, pod in enumerate(pods):
        agent.ack(add(f"uid-{i}"), pod.fd)
    agent.ack(SNAPSHOT)
    took = time.monotonic() - begin
    assert len(daemon.silos()) == 40
    os.kill(daemon.broker, signal.SIGKILL)
    wait_for("the new broker's view", lambda: daemon.log().split("broker: started")[-1].count("SiloAttach") == 40)
    os.kill(daemon.warden, signal.SIGKILL)
    agent.accept()
    for i in range(len(pods)):
        agent.ack(keep(f"uid-{i}"))
    agent.ack(SNAPSHOT)
    assert len(daemon.silos()) == 40
    print(f"40 pods in {took:.2f} s")
