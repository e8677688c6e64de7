# SPDX-License-Identifier: GPL-2.0-or-later
"""ZDS against the real daemon, spoken by a scripted agent: good sequences, every bad input, descriptors counted."""
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from culvert_e2e import zds
from culvert_e2e.lab import exe, run, wait_for
from culvert_e2e.zds import SNAPSHOT_SENT, ScriptedAgent, add, delete, field, info, keep
from test_c_restarts import ECHO

LISTENERS = (15001, 15006, 15008)
ROUNDS = 1000 if os.environ.get("CULVERT_TEST_LONG") == "1" else 200

# Connects to a listener again and again for the given seconds; prints how many attempts and how many found nobody.
# The proxy resets who calls itself: that is an answer, and may come before connect() returns.
KNOCK = "import socket,sys,time\n" \
    "end=time.time()+float(sys.argv[2]); n=bad=0\n" \
    "while time.time()<end:\n" \
    "  n+=1\n" \
    "  try: socket.create_connection(('127.0.0.1',int(sys.argv[1])),timeout=5).close()\n" \
    "  except ConnectionResetError: pass\n" \
    "  except OSError: bad+=1\n" \
    "  time.sleep(0.01)\n" \
    "print(n,bad)\n"

# Sends numbered lines and expects each back until its stdin ends; prints how many came back after the first.
PING = "import select,socket,sys\n" \
    "s=socket.create_connection((sys.argv[1],int(sys.argv[2])),timeout=10); f=s.makefile('rw'); n=0\n" \
    "while not (n and select.select([sys.stdin],[],[],0.02)[0]):\n" \
    "  f.write('%d\\n'%n); f.flush(); assert f.readline()=='%d\\n'%n\n" \
    "  if n==0: print('going',flush=True)\n" \
    "  n+=1\n" \
    "f.write('last\\n'); f.flush(); assert f.readline()=='last\\n'\n" \
    "print('sent',n)\n"

# Sends what the pod's processes dial on port 9200 to the outbound listener; the proxy's own dials carry the mark.
CAPTURE = "table ip e2e { chain output { type nat hook output priority -100; " \
    "tcp dport 9200 meta mark != 1337 redirect to :15001; }; }\n"

# Holds a port without port reuse until it is ended.
SQUAT = "import socket,sys,time\n" \
    "s=socket.socket(socket.AF_INET6); s.bind(('::',int(sys.argv[1]))); s.listen()\n" \
    "print('held',flush=True)\n" \
    "time.sleep(600)\n"


@pytest.fixture
def agent(lab):
    with ScriptedAgent(lab.zds_path) as made:
        yield made


@pytest.fixture
def daemon(lab, agent):
    """Two pods and one outside of the mesh, a daemon that waits for its first snapshot."""
    lab.pod("one")
    lab.pod("two")
    lab.pod("outside", mesh=False)
    lab.start_daemon(ready=False)
    return lab


def listening(pod):
    """Ports of ours on which something listens in the pod, right now."""
    lines = pod.run("ss", "-ltnH").stdout.splitlines()
    ports = {int(line.split()[3].rpartition(":")[2]) for line in lines}
    return ports & set(LISTENERS)


def silos(lab):
    return {name: lab.silo_of(pod) for name, pod in lab.pods.items()}


def can_connect(pod, port):
    """Whether a listener answers; a reset is an answer, see KNOCK."""
    code = f"import socket\ntry: socket.create_connection(('127.0.0.1', {port}), 2)\nexcept ConnectionResetError: pass"
    return pod.run("python3", "-c", code, check=False).returncode == 0


# --- good sequences ------------------------------------------------------------------------------

def test_e01_hello_is_first(agent, daemon):
    start = time.monotonic()
    conn = agent.accept(timeout=5 + zds.SLACK_S)
    assert conn.hello == b"\x08\x01"
    assert time.monotonic() - start < 5 + zds.SLACK_S
    assert conn.is_quiet(1), "after the hello culvertd only answers"


def test_e02_listeners_accept_when_the_ack_comes(agent, daemon):
    one = daemon.pods["one"]
    conn = agent.accept()
    assert listening(one) == set()
    fd = os.open(one.netns_path, os.O_RDONLY)
    conn.send(add(one.uid, info(one.name, one.ns, one.sa)), [fd])
    os.close(fd)
    assert conn.answer() == b"\x0a\x00"
    assert listening(one) == set(LISTENERS)
    assert all(can_connect(one, port) for port in LISTENERS)
    assert not daemon.ready(), "before SnapshotSent nothing is ready"
    assert conn.snapshot_sent() == ""
    daemon.wait_ready()


def test_e03_same_namespace_again_is_a_no_op(agent, daemon):
    one = daemon.pods["one"]
    conn = agent.snapshot(one)
    silo = daemon.silo_of(one)
    for _ in range(3):
        assert conn.add(one) == ""
    assert conn.ask(add(one.uid, info("other", "elsewhere", "x")), [fd := os.open(one.netns_path, os.O_RDONLY)]) == ""
    os.close(fd)
    assert daemon.silo_of(one) == silo
    assert [(p["uid"], p["restarts"]) for p in daemon.pods_json()] == [(one.uid, 0)]


def test_e04_other_namespace_moves_the_pod(agent, daemon):
    one, two = daemon.pods["one"], daemon.pods["two"]
    conn = agent.snapshot(one)
    old = daemon.silo_of(one)
    assert conn.add(one, path=two.netns_path) == ""
    assert listening(two) == set(LISTENERS)
    wait_for("the old silo's end", lambda: not Path(f"/proc/{old}").exists())
    assert listening(one) == set()
    assert len(daemon.pods_json()) == 1


def test_e05_del(agent, daemon):
    one, two = daemon.pods["one"], daemon.pods["two"]
    conn = agent.snapshot(one, two)
    assert conn.delete(one) == ""
    wait_for("the silo's end", lambda: daemon.silo_of(one) is None)
    assert conn.delete(one) == "", "a second time"
    assert conn.ask(delete("never-heard-of")) == ""
    assert conn.ask(delete("")) == ""
    assert listening(two) == set(LISTENERS)
    assert conn.add(one) == "", "and back again"


def test_e06_del_before_the_snapshot_only_unmarks(agent, daemon):
    one, two = daemon.pods["one"], daemon.pods["two"]
    conn = agent.accept()
    assert conn.add(one) == "" and conn.add(two) == ""
    assert conn.delete(one) == ""
    assert daemon.silo_of(one), "the reconcile ends it, not the Del"
    assert conn.snapshot_sent() == ""
    wait_for("the silo's end", lambda: daemon.silo_of(one) is None)
    assert daemon.silo_of(two)


def test_e07_reconnect_reconciles(agent, daemon):
    """Whom the new snapshot names keeps accepting all the time; the others are stopped."""
    one, two = daemon.pods["one"], daemon.pods["two"]
    third = daemon.pod("third")
    conn = agent.snapshot(one, two, third)
    before = silos(daemon)
    knocks = [pod.python(KNOCK, 15001, 4) for pod in (one, two)]
    time.sleep(0.5)
    conn.close()
    conn = agent.accept()
    assert silos(daemon) == before, "nothing stops for want of an agent"
    assert conn.add(one) == ""
    assert conn.keep(two) == ""
    assert conn.ask(keep("never-heard-of")) == "", "Keep of an unknown pod is acknowledged"
    assert daemon.silo_of(third), "stopped only at SnapshotSent"
    assert conn.snapshot_sent() == ""
    wait_for("the omitted pod's end", lambda: daemon.silo_of(third) is None)
    for proc in knocks:
        count, bad = proc.communicate(timeout=30)[0].split()
        assert int(count) > 20 and bad == "0"
    after = silos(daemon)
    assert (after["one"], after["two"]) == (before["one"], before["two"])


def test_e08_taken_port_is_a_nack_and_is_retried(agent, daemon):
    one, two = daemon.pods["one"], daemon.pods["two"]
    squatter = one.python(SQUAT, 15008)
    assert squatter.stdout.readline() == "held\n"
    conn = agent.accept()
    error = conn.add(one)
    assert error.startswith("failure to start proxy : Bind([::]:15008, ") and "98" in error and "AddrInUse" in error
    assert listening(one) == {15008}, "all or nothing"
    assert conn.add(two) == "", "the connection stays, others start"
    assert conn.snapshot_sent() == ""
    assert not daemon.ready(), "not ready while a pod is pending"
    failed = time.monotonic()
    daemon._kill([squatter])
    wait_for("the retry", lambda: listening(one) == set(LISTENERS), timeout=6 + zds.SLACK_S)
    assert time.monotonic() - failed < 6 + zds.SLACK_S
    daemon.wait_ready()
    assert conn.is_quiet(0.3), "a retry is not reported"


def test_e09_pending_pod_added_again(agent, daemon):
    one = daemon.pods["one"]
    squatter = one.python(SQUAT, 15001)
    squatter.stdout.readline()
    conn = agent.snapshot()
    assert "15001" in conn.add(one)
    daemon._kill([squatter])
    assert conn.add(one) == "", "a new Add does not wait for the timer"
    assert listening(one) == set(LISTENERS)


def test_e10_pending_pod_deleted(agent, daemon):
    one = daemon.pods["one"]
    squatter = one.python(SQUAT, 15006)
    squatter.stdout.readline()
    conn = agent.snapshot()
    assert "15006" in conn.add(one)
    assert conn.delete(one) == ""
    daemon._kill([squatter])
    assert daemon.pods_json() == []
    time.sleep(6)
    assert listening(one) == set(), "nothing retries what is gone"
    assert daemon.ready()


def test_e11_agent_restart(agent, daemon):
    """Unready without the agent, dialling with a growing delay, ready after the next snapshot."""
    one = daemon.pods["one"]
    agent.snapshot(one)
    daemon.wait_ready()
    silo = daemon.silo_of(one)
    agent.close()
    wait_for("unready", lambda: not daemon.ready())
    delays = wait_for("five attempts", lambda: (found := [int(line.split("again in ")[1].split()[0])
                      for line in daemon.log_lines("connecting to the node agent failed")]) and len(found) >= 5 and found)
    assert all(b == 2 * a for a, b in zip(delays, delays[1:])), delays
    agent.open()
    agent.snapshot(one)
    daemon.wait_ready()
    assert daemon.silo_of(one) == silo


def test_e12_agent_that_hangs_up_at_once(agent, daemon):
    """Hello and hang-up, again and again: dialled at a bounded rate, not in a loop."""
    start = time.monotonic()
    count = 0
    while time.monotonic() - start < 2:
        agent.accept().close()
        count += 1
    assert 3 <= count < 40


@pytest.mark.parametrize("count", [110])
def test_e13_many_pods_in_one_snapshot(agent, daemon, count):
    pods = []
    for i in range(count):
        pod = type(daemon.pods["one"])(daemon, f"p{i}", "default", "many", 0, f"00000000-0000-4000-8000-{i:012d}")
        run("ip", "netns", "add", pod.netns)
        daemon.extra_netns.append(pod.netns)
        run("ip", "netns", "exec", pod.netns, "ip", "link", "set", "lo", "up")
        pods.append(pod)
    conn = agent.accept()
    start = time.monotonic()
    worst = 0.0
    for pod in pods:
        begin = time.monotonic()
        assert conn.add(pod) == ""
        worst = max(worst, time.monotonic() - begin)
    assert conn.snapshot_sent() == ""
    spent = time.monotonic() - start
    print(f"\n{count} pods in {spent:.2f} s, slowest Add {worst * 1000:.0f} ms")
    assert worst < zds.ANSWER_S
    assert all(listening(pod) == set(LISTENERS) for pod in pods[::10])
    assert len(daemon.pods_json()) == count
    assert daemon.stop_daemon(timeout=60) == 0
    assert not any(daemon.silo_of(pod) for pod in pods)


def fake_silo(lab, script):
    """A folder of programs in which culvert-silo is a script."""
    folder = lab.tmp / "libexec"
    folder.mkdir()
    (folder / "culvert-broker").symlink_to(exe("culvert-broker"))
    silo = folder / "culvert-silo"
    silo.write_text(f"#!/bin/sh\n{script}\n")
    silo.chmod(0o755)
    return folder


@pytest.mark.parametrize("script, reason", [("exec sleep 60", "silo was not ready in time"), ("echo out of luck >&2; exit 3", "out of luck"), ("kill -SEGV $$", "11")],
                         ids=["hangs", "exits", "crashes"])
def test_e14_silo_that_does_not_come_up(agent, lab, script, reason):
    """The agent hears of it within two seconds, and nothing stays in the pod."""
    one = lab.pod("one")
    lab.start_daemon(ready=False, CULVERT_LIBEXEC_DIR=fake_silo(lab, script))
    conn = agent.accept()
    start = time.monotonic()
    error = conn.add(one)
    assert time.monotonic() - start < zds.ANSWER_S
    assert error.startswith("failure to start proxy : ") and reason in error, error
    wait_for("an empty namespace", lambda: listening(one) == set() and not run("ip", "netns", "pids", one.netns).stdout)
    assert conn.delete(one) == "" and conn.snapshot_sent() == ""
    lab.wait_ready()


# --- bad input -----------------------------------------------------------------------------------

def good_info():
    return info("bad", "default", "bad")


def varint_uid():
    return field(1, field(1, 7) + field(2, good_info()))


def varint_info():
    return field(1, field(1, "bad-uid") + field(2, 7))


# name → (packet, what is passed: p the pod's namespace, n /dev/null, o culvertd's own namespace, text of the NACK).
# Each ends the connection: culvertd cannot trust what follows.
BROKEN = {
    "truncated": (add("bad-uid", good_info())[:-3], "p", "failure to read message : "),
    "truncated_varint": (b"\x0a\xff", "", "failure to read message : "),
    "oversized": (add("bad-uid", good_info()) + field(15, b"x" * 1100), "p", "failure to read message : received truncated message"),
    "one_byte_too_long": (add("x" * 1000, info("n" * 6, "", "")).ljust(1025, b"\0"), "p", "failure to read message : received truncated message"),
    "uid_is_a_number": (varint_uid(), "p", "failure to read message : "),
    "info_is_a_number": (varint_info(), "p", "failure to read message : "),
    "payload_is_a_number": (field(1, 7), "p", "failure to read message : "),
    "uid_is_not_utf8": (add(b"\xff\xfe", good_info()), "p", "failure to read message : "),
    "no_fd": (add("bad-uid", good_info()), "", "failure to read message : No control message"),
    "two_fds": (add("bad-uid", good_info()), "pp", "failure to read message : Expected 1 FD, got 2"),
    "fifty_fds": (add("bad-uid", good_info()), "p" * 50, "failure to read message : Expected 1 FD, got 50"),
    "fd_with_keep": (keep("bad-uid"), "p", "failure to read message : Unexpected control message"),
    "fd_with_del": (delete("bad-uid"), "p", "failure to read message : Unexpected control message"),
    "unknown_payload": (field(9, b""), "", "failure to read message : "),
    "unknown_payload_with_fd": (field(9, b""), "p", "failure to read message : "),
    "no_payload": (field(15, 1), "", "failure to read message : "),
    "garbage": (bytes(range(255, 155, -1)), "", "failure to read message : "),
    "no_info": (add("bad-uid"), "p", 'failure to process message : ProtocolError("workload_info is required but not present")'),
    "keep_after_snapshot": (keep("bad-uid"), "", 'failure to process message : ProtocolError("pod keep received after snapshot")'),
    "second_snapshot": (SNAPSHOT_SENT, "", 'failure to process message : ProtocolError("pod snapshot received already")'),
}

# The connection stays: only this start failed, and it will be tried again.
REFUSED = {
    "fd_is_dev_null": (add("bad-uid", good_info()), "n", "failure to start proxy : descriptor is not a network namespace"),
    "fd_is_a_folder": (add("bad-uid", good_info()), "d", "failure to start proxy : descriptor is not a network namespace"),
    "fd_is_a_pid_namespace": (add("bad-uid", good_info()), "i", "failure to start proxy : descriptor is not a network namespace"),
    "fd_is_a_socket": (add("bad-uid", good_info()), "s", "failure to start proxy : descriptor is not a network namespace"),
    "own_namespace": (add("bad-uid", good_info()), "o", "failure to start proxy : network namespace is that of culvertd itself"),
}


class Descriptors:
    """Opens what the letters of a row ask for and closes it again."""

    def __init__(self, lab, letters):
        paths = {"p": lab.pods["two"].netns_path, "n": "/dev/null", "d": "/tmp", "i": "/proc/self/ns/pid",
                 "o": f"/run/netns/{lab.node}"}
        self.fds = []
        for letter in letters:
            if letter == "s":
                self.fds.append(socket.socket(socket.AF_UNIX).detach())
            else:
                self.fds.append(os.open(paths[letter], os.O_RDONLY | os.O_CLOEXEC))

    def __enter__(self):
        return self.fds

    def __exit__(self, *exc):
        for fd in self.fds:
            os.close(fd)


class Bystander:
    """A connection from pod one through its silo that must survive everything, and a count of what is open."""

    def __init__(self, lab):
        self.lab = lab
        self.silo = lab.silo_of(lab.pods["one"])
        # The topmost of that name: the warden's program is the same.
        first = lab.pid_of("culvertd")
        self.pids = {"first": first, "warden": lab.pid_of("warden"), "broker": lab.pid_of("culvert-broker")}
        self.ping = self._dial(lab.pods["one"], lab.pods["outside"])

    def _dial(self, one, outside):
        if not outside.procs:
            outside.python(ECHO, 9200)
            outside.wait_port(9200)
        one.run("nft", "-f", "-", input=CAPTURE)
        proc = one.python(PING, outside.ip, 9200, stdin=subprocess.PIPE)
        assert proc.stdout.readline() == "going\n"
        return proc

    def settled_fds(self):
        """What is open once a probe's connection has gone."""
        seen = [self.open_fds()]
        wait_for("a steady number of descriptors", lambda: seen.append(self.open_fds()) or (time.sleep(0.1) or
                 len(seen) > 5 and all(count == seen[-1] for count in seen[-5:])))
        return seen[-1]

    def open_fds(self):
        return {name: len(os.listdir(f"/proc/{pid}/fd")) for name, pid in self.pids.items()}

    def assert_undisturbed(self):
        """Same processes, and the connection still echoes. Ends the connection."""
        assert self.lab.silo_of(self.lab.pods["one"]) == self.silo
        assert {name: pid for name, pid in self.pids.items() if not Path(f"/proc/{pid}").exists()} == {}
        out, _ = self.ping.communicate(timeout=30)
        assert out.startswith("sent ") and int(out.split()[1]) > 0, out
        self.lab.wait_log("connection complete", 'direction="outbound"', f"{self.lab.pods['outside'].ip}:9200")


def break_connection(lab, agent, conn, row):
    """Sends a broken packet: one NACK with the text, the end, and a new connection with its snapshot."""
    packet, letters, text = row
    with Descriptors(lab, letters) as fds:
        error = conn.ask(packet, fds)
    assert error.startswith(text) and len(error) > len("failure to read message : "), error
    assert conn.is_ended()
    conn.close()
    return agent.snapshot(lab.pods["one"])


@pytest.mark.parametrize("name", BROKEN)
def test_e20_broken_packet(agent, daemon, name):
    conn = agent.snapshot(daemon.pods["one"])
    bystander = Bystander(daemon)
    conn = break_connection(daemon, agent, conn, BROKEN[name])
    bystander.assert_undisturbed()
    assert listening(daemon.pods["two"]) == set()
    assert conn.add(daemon.pods["two"]) == ""
    daemon.wait_ready()


def test_e21_empty_packet_is_a_hang_up(agent, daemon):
    """Zero bytes are the end of a stream on both sides (an empty request cannot be told from it)."""
    conn = agent.snapshot(daemon.pods["one"])
    bystander = Bystander(daemon)
    conn.send(b"")
    assert conn.is_ended()
    conn.close()
    agent.snapshot(daemon.pods["one"])
    bystander.assert_undisturbed()


@pytest.mark.parametrize("name", REFUSED)
def test_e22_wrong_descriptor(agent, daemon, name):
    one, two = daemon.pods["one"], daemon.pods["two"]
    conn = agent.snapshot(one)
    bystander = Bystander(daemon)
    packet, letters, text = REFUSED[name]
    with Descriptors(daemon, letters) as fds:
        assert conn.ask(packet, fds) == text
    assert conn.add(two) == "", "the connection stays"
    assert conn.ask(delete("bad-uid")) == ""
    daemon.wait_ready()
    bystander.assert_undisturbed()


@pytest.mark.parametrize("uid", ["", "../../../etc/passwd", "/", ".", "..", "a/b", "x" * 1000, "sp ace\n\t", "é\u20ac"],
                         ids=["empty", "dots", "slash", "dot", "dotdot", "inner", "1000", "blanks", "utf8"])
def test_e23_uid_is_opaque(agent, daemon, uid):
    """Any text is a uid; none of it becomes a path."""
    one, two = daemon.pods["one"], daemon.pods["two"]
    conn = agent.snapshot(one)
    with Descriptors(daemon, "p") as fds:
        assert conn.ask(add(uid, info("n", "d", "s")), fds) == ""
    assert listening(two) == set(LISTENERS)
    assert {p["uid"] for p in daemon.pods_json()} == {one.uid, uid}
    base = daemon.run_dir / "culvert"
    found = sorted(p.name for p in daemon.run_dir.rglob("silo-*"))
    assert len(found) == 2 and all(len(list(base.glob(f"*/{name}"))) == 1 for name in found), "all in the instance's folder"
    assert conn.ask(delete(uid)) == ""
    wait_for("the silo's end", lambda: listening(two) == set())


def test_e24_empty_info(agent, daemon):
    """Present but empty is there: the names are not ours to judge."""
    conn = agent.snapshot(daemon.pods["one"])
    with Descriptors(daemon, "p") as fds:
        assert conn.ask(add("bare", b""), fds) == ""
    assert listening(daemon.pods["two"]) == set(LISTENERS)


def test_e25_unknown_fields_are_skipped(agent, daemon):
    one, two = daemon.pods["one"], daemon.pods["two"]
    conn = agent.snapshot(one)
    body = field(1, two.uid) + field(2, info(two.name, two.ns, two.sa) + field(4, "cluster.local") + field(77, 1)) + field(9, "x")
    with Descriptors(daemon, "p") as fds:
        assert conn.ask(field(1, body) + field(100, 5), fds) == ""
    assert listening(two) == set(LISTENERS)


def test_e26_requests_that_do_not_wait(agent, daemon):
    """Twenty requests in a row: each answered, in order."""
    one, two = daemon.pods["one"], daemon.pods["two"]
    conn = agent.snapshot(one)
    with Descriptors(daemon, "pn") as fds:
        conn.send(add(two.uid, good_info()), fds[:1])
        conn.send(add("null", good_info()), fds[1:])
        for i in range(18):
            conn.send(delete(f"none-{i}"))
    errors = [zds.ack_error(conn.answer()) for _ in range(20)]
    assert errors[0] == "" and errors[1].startswith("failure to start proxy : ") and errors[2:] == [""] * 18


def test_e27_hang_up_during_a_start(agent, daemon):
    one, two = daemon.pods["one"], daemon.pods["two"]
    conn = agent.snapshot(one)
    with Descriptors(daemon, "p") as fds:
        conn.send(add(two.uid, info(two.name, two.ns, two.sa)), fds)
    conn.close()
    conn = agent.accept()
    assert conn.add(one) == "" and conn.add(two) == "", "the pod's start is taken up again or was finished"
    assert conn.snapshot_sent() == ""
    assert listening(two) == set(LISTENERS)
    daemon.wait_ready()


def test_e30_no_descriptor_is_lost(agent, daemon):
    """Every bad row, hundreds of times: what runs goes on, and each process has as many descriptors as before."""
    one = daemon.pods["one"]
    conn = agent.snapshot(one)
    bystander = Bystander(daemon)
    conn = break_connection(daemon, agent, conn, BROKEN["no_fd"])
    daemon.wait_ready()
    knock = one.python(KNOCK, 15001, 5)
    before = bystander.settled_fds()
    rows = list(BROKEN.values()) + list(REFUSED.values())
    for i in range(ROUNDS):
        packet, letters, text = rows[i % len(rows)]
        if i % len(rows) < len(BROKEN):
            conn = break_connection(daemon, agent, conn, (packet, letters, text))
            continue
        with Descriptors(daemon, letters) as fds:
            assert conn.ask(packet, fds) == text
        assert conn.ask(delete("bad-uid")) == ""
    wait_for("the same number of descriptors", lambda: bystander.open_fds() == before, timeout=5)
    bystander.assert_undisturbed()
    assert knock.communicate(timeout=30)[0].split()[1] == "0"


def test_e31_no_descriptor_is_lost_over_pods(agent, daemon):
    """Pods come, fail, move and go; in the end everything is as it was."""
    one, two = daemon.pods["one"], daemon.pods["two"]
    conn = agent.snapshot(one)
    bystander = Bystander(daemon)
    daemon.wait_ready()
    before = bystander.settled_fds()
    for _ in range(ROUNDS // 20):
        assert conn.add(two) == ""
        assert conn.add(two) == ""
        assert conn.delete(two) == ""
        with Descriptors(daemon, "n") as fds:
            assert conn.ask(add(two.uid, good_info()), fds)
        assert conn.delete(two) == ""
    wait_for("the same number of descriptors", lambda: bystander.open_fds() == before)
    bystander.assert_undisturbed()
