# SPDX-License-Identifier: GPL-2.0-or-later
"""culvertctl against a live node: every subcommand, pods by their names, a pseudo-terminal for what draws and follows."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios

import pytest

from culvert_e2e.lab import PATIENCE, exe, run, wait_for
from test_a_basic import mesh  # noqa: F401
from test_b_policy import apply, policy
from test_p_admin import hold

VIP = "10.96.7.7"


@pytest.fixture
def node(mesh):
    """client and server are pods, outside is not; the service echo leads to server."""
    server = mesh.pods["server"]
    mesh.service("echo", vips=[f"/{VIP}"], ports={80: 8080}, pods=[server])
    mesh.write_mesh()
    wait_for("the service", lambda: "echo" in mesh.ctl("service").stdout)
    return mesh


def fails(lab, code, needle, *args):
    res = lab.ctl(*args, check=False)
    assert (res.returncode, res.stdout) == (code, ""), res
    assert needle in res.stderr
    return res.stderr


class Terminal:
    """A process on a pseudo-terminal of its own, which it may send signals by keys."""

    @staticmethod
    def _settle():
        """In the child: whoever started the tests in the background ignores SIGINT, a terminal's user does not."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def __init__(self, lab, *args, rows=24, columns=80):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.text = ""
        # setsid and TIOCSCTTY make it the terminal that ^C comes from.
        self.proc = subprocess.Popen(
            [str(exe("culvertctl")), "--run-dir", str(lab.run_dir / "culvert"), *args], stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True, preexec_fn=self._settle)
        os.close(slave)

    def read(self):
        """What has been written so far, all of it."""
        while select.select([self.master], [], [], 0.05)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                break
            if not data:
                break
            self.text += data.decode()
        return self.text

    def wait(self, what, cond, timeout=PATIENCE):
        return wait_for(what, lambda: cond(self.read()), timeout=timeout)

    def key(self, key):
        os.write(self.master, key)

    def end(self):
        def has_ended():
            self.read()
            return self.proc.poll() is not None
        wait_for("the end", has_ended)
        self.read()
        os.close(self.master)
        return self.proc.returncode

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()


# --- lists -------------------------------------------------------------------------------------------


def test_q01_lists(node):
    client, server, outside = (node.pods[n] for n in ("client", "server", "outside"))
    rows = [line.split() for line in node.ctl("workload").stdout.splitlines()]
    assert rows[0] == ["NAMESPACE", "POD", "NAME", "ADDRESS", "NODE", "WAYPOINT", "PROTOCOL"]
    assert [row[1] for row in rows[1:]] == sorted(node.pods)
    only = node.ctl("workload", "--pod", "client.default").stdout.splitlines()
    assert len(only) == 2 and client.ip in only[1] and only[1].endswith("None     HBONE")
    assert node.ctl("workload", "--address", outside.ip).stdout.splitlines()[1].endswith("TCP")
    assert len(node.ctl("workload", "-n", "nowhere").stdout.splitlines()) == 1
    assert f"{VIP}" in node.ctl("svc").stdout and "1/1" in node.ctl("svc").stdout
    assert node.ctl("policy").stdout.split() == ["NAMESPACE", "POLICY", "NAME", "ACTION", "SCOPE"]
    assert [w["name"] for w in json.loads(node.ctl("workload", "-o", "json", "--pod", server.name).stdout)] == ["server"]
    client.curl(f"http://{server.ip}:8080/")
    certs = node.ctl("certificate", "--pod", "client").stdout.splitlines()
    assert certs[1].split()[:4] == [client.spiffe, "Leaf", "Available", "true"] and "Root" in certs[-1]
    assert server.spiffe in node.ctl("certificate").stdout and server.spiffe not in node.ctl("certificate", "--pod", "client").stdout
    assert node.ctl("all", "--with-headers").stdout.count(" INFO ------") == 5
    assert json.loads(node.ctl("all", "-o", "json").stdout)["workloads"] == json.loads(node.ctl("dump").stdout)["workloads"]


def test_q02_connections(node):
    client = node.pods["client"]
    hold(client, VIP, 80)

    def shown():
        return [line.split() for line in node.ctl("connections").stdout.splitlines()[1:]]
    rows = wait_for("both rows", lambda: len(r := shown()) == 2 and r)
    out, into = sorted(rows, key=lambda row: row[1] != "Outbound")
    assert out[:2] == ["client.default", "Outbound"] and out[2].startswith("client.default:")
    assert out[3:] == ["server.default:15008", "echo.default.svc.cluster.local:80", "HBONE"]
    assert into[:3] == ["server.default", "Inbound", "server.default:8080"] and into[3].startswith("client.default:")
    raw = node.ctl("connections", "--raw", "--direction", "outbound").stdout.splitlines()
    assert len(raw) == 2 and f"{VIP}:80" in raw[1]
    assert len(node.ctl("cons", "--pod", "server").stdout.splitlines()) == 2
    # A saved dump says the same.
    saved = node.tmp / "dump.json"
    saved.write_text(node.ctl("dump").stdout)
    assert run(exe("culvertctl"), "connections", "-f", saved).stdout == node.ctl("connections").stdout


def test_q03_pods_and_dumps_of_one(node):
    assert [p["name"] for p in json.loads(node.ctl("pods", "--pod", "client", "-o", "json").stdout)] == ["client"]
    uid = node.pods["client"].uid
    for name in ("client", "client.default", "default/client", uid):
        assert json.loads(node.ctl("dump", name).stdout)["uid"] == uid
    assert "uid: " in node.ctl("dump", "client", "-o", "yaml").stdout


# --- what changes something ---------------------------------------------------------------------------


def test_q04_log(node):
    start = node.ctl("log").stdout
    assert start.startswith("current log level is ")
    assert "xds=debug" in node.ctl("log", "xds:debug").stdout and "xds=debug" in node.ctl("log").stdout
    assert node.ctl("log", "--reset").stdout == start
    one = node.ctl("log", "--pod", "client", "access:off").stdout
    assert one.startswith("client.default:\n") and "access=off" in one
    assert "access=off" not in node.ctl("log").stdout + node.ctl("log", "--pod", "server").stdout
    fails(node, 2, "Invalid level", "log", "loud")


def test_q05_drain(node):
    client, server = node.pods["client"], node.pods["server"]
    hold(client, VIP, 80)
    before = node.pods_json()
    assert re.fullmatch(r"server\.default: draining; \d+ connections? (is|are) open, new ones are accepted\n",
                        node.ctl("drain", "server").stdout)
    assert "hello from server" in client.curl(f"http://{server.ip}:8080/").stdout
    assert node.pods_json() == before, "it is the same silo"
    assert node.wait_log("requested over the admin socket")


# --- metrics, versions --------------------------------------------------------------------------------


def test_q06_metrics_and_version(node):
    client, server = node.pods["client"], node.pods["server"]
    client.curl(f"http://{server.ip}:8080/")
    text = node.ctl("metrics").stdout
    assert "istio_tcp_connections_opened_total" in text and text.endswith("# EOF\n")
    one = node.ctl("metrics", "--pod", "client").stdout
    samples = [line for line in one.splitlines() if not line.startswith("#")]
    assert samples and all('pod_name="client"' in line for line in samples) and one.endswith("# EOF\n")
    families = [line.split()[2] for line in one.splitlines() if line.startswith("# TYPE")]
    assert families == sorted(set(families), key=families.index) and all(f in one.split("# EOF")[0] for f in families)
    version = json.loads(node.ctl("version", "--json").stdout)
    assert version["client"] == version["daemon"]["version"]
    assert "culvertd:\n" in node.ctl("version").stdout


# --- explain ------------------------------------------------------------------------------------------


def explain(lab, *args):
    return json.loads(lab.ctl("explain", *args, "--json").stdout)


def test_q07_explain_ways(node):
    client, server, outside = (node.pods[n] for n in ("client", "server", "outside"))
    got = explain(node, "client", "echo:80")
    assert got["from"]["identity"] == client.spiffe and got["from"]["isLocal"] and got["from"]["isCaptured"]
    assert got["to"]["address"] == f"{VIP}:80" and got["to"]["service"] == "default/echo.default.svc.cluster.local"
    assert got["route"]["kind"] == "hbone" and got["route"]["connectTo"] == f"{server.ip}:15008"
    assert got["route"]["authority"] == f"{server.ip}:8080" and got["route"]["peerIdentities"] == [server.spiffe]
    assert got["policy"]["isJudged"] and got["policy"]["isAllowed"] and got["policy"]["decidedBy"] is None
    assert got["observer"].startswith("TLS between ") and "8080" not in got["observer"]
    assert explain(node, "client", "echo.default.svc.cluster.local.:80")["to"]["address"] == f"{VIP}:80"
    assert explain(node, client.ip, f"{server.ip}:8080")["route"]["authority"] == f"{server.ip}:8080"
    assert explain(node, "client", f"[{server.ip6}]:8080")["route"]["kind"] == "hbone"
    plain = explain(node, "client", "outside:8080")
    assert plain["route"]["kind"] == "tcp" and "nobody judges" in plain["policy"]["reason"]
    assert plain["observer"] == f"the application's bytes as they are, between {client.ip} and {outside.ip}:8080"
    beyond = explain(node, "client", "192.0.2.1:443")
    assert beyond["route"]["kind"] == "passthrough" and beyond["to"]["service"] is None
    assert explain(node, "client", f"{VIP}:81")["route"] is None or explain(node, "client", f"{VIP}:81")["error"]
    text = node.ctl("explain", "client", "echo:80").stdout
    assert re.search(rf"^route +HBONE tunnel to {server.ip}:15008, CONNECT {server.ip}:8080$", text, re.M)
    assert re.search(r"^policy +allowed: ", text, re.M) and re.search(r"^observer +sees TLS between ", text, re.M)


def test_q08_explain_agrees_with_policies(node):
    client, server = node.pods["client"], node.pods["server"]
    apply(node, policy("no-8080", "Deny", {"destinationPorts": [8080]}))
    wait_for("the policy", lambda: "no-8080" in node.ctl("policy").stdout)
    got = explain(node, "client", "echo:80")["policy"]
    assert (got["isJudged"], got["isAllowed"], got["decidedBy"]) == (True, False, "default/no-8080")
    assert explain(node, "client", f"{server.ip}:8081")["policy"]["isAllowed"]
    wait_for("the refusal", lambda: client.curl(f"http://{server.ip}:8080/", check=False).returncode != 0)
    assert "denied by default/no-8080" in node.ctl("explain", "client", "echo:80").stdout


def test_q09_explain_refusals(node):
    fails(node, 5, "there is no workload nobody", "explain", "nobody", "echo:80")
    fails(node, 5, "nothing in the mesh is called nothing", "explain", "client", "nothing:80")
    fails(node, 2, "a port is a number", "explain", "client", "echo:http")
    fails(node, 2, "a port is a number", "explain", "client", "echo:65536")
    fails(node, 2, "TO:PORT is", "explain", "client", "fd00::1:80")


# --- terminals ----------------------------------------------------------------------------------------


def test_q10_top_on_a_terminal(node):
    client, server = node.pods["client"], node.pods["server"]
    with Terminal(node, "top", "-i", "300ms", columns=40) as term:
        term.wait("the first screen", lambda t: "client" in t and "NAMESPACE" in t)
        client.curl(f"http://{server.ip}:8080/")
        term.wait("a second one", lambda t: t.count("NAMESPACE") >= 3)
        assert term.text.startswith("\x1b[?1049h\x1b[?25l")
        plain = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", term.text)
        assert max(len(line.rstrip("\r")) for line in plain.split("\n")) <= 40
        term.key(b"\x03")
        assert term.end() == 0
        assert term.text.endswith("\x1b[?25h\x1b[?1049l")


def test_q11_top_in_a_small_terminal_says_what_is_left_out(node):
    with Terminal(node, "top", "-i", "200ms", "-n", "2", rows=6) as term:
        assert term.end() == 0
        assert "and 1 more" in term.text


def test_q12_top_elsewhere(node):
    once = node.ctl("top", "--once", "-i", "100ms").stdout
    lines = [line.split() for line in once.splitlines()]
    assert lines[0] == ["NAMESPACE", "POD", "CPU%", "MEMORY", "CONNS", "NEW/S", "IN/S", "OUT/S"]
    assert sorted(line[1] for line in lines[1:]) == ["client", "server"] and "\x1b" not in once
    assert all(re.fullmatch(r"\d+\.\d", line[2]) and re.fullmatch(r"\d+[KMG]", line[3]) for line in lines[1:])
    assert node.ctl("top", "-n", "2", "-i", "100ms", "--pod", "client").stdout.count("client") == 2
    fails(node, 5, "there is no pod on this node cli; did you mean client.default?", "top", "--once", "--pod", "cli")


def test_q13_trace(node):
    client, server = node.pods["client"], node.pods["server"]
    client.curl(f"http://{server.ip}:8080/")
    wait_for("the event", lambda: node.ctl("trace", "client", "--once").stdout)
    with Terminal(node, "trace", "client", columns=400) as term:
        term.wait("the held event", lambda t: f"{server.ip}:8080" in t)
        client.curl(f"http://{VIP}/")
        term.wait("a new one", lambda t: f"-> {VIP}:80" in t)
        assert re.search(rf"outbound HBONE +{client.ip}:\d+ -> {VIP}:80 via={server.ip}:15008 peer={server.spiffe} total=", term.text)
        assert "closed=client/end" in term.text
        # A new silo begins its numbers anew; the trace goes on.
        os.kill(next(p["pid"] for p in node.pods_json() if p["name"] == "client"), signal.SIGKILL)

        def again(text):
            client.curl(f"http://[{server.ip6}]:8080/", check=False)
            return f"-> [{server.ip6}]:8080" in text
        term.wait("an event of the next silo", again)
        term.key(b"\x03")
        assert term.end() == -signal.SIGINT
    events = [json.loads(line) for line in node.ctl("trace", "client", "--once", "--json").stdout.splitlines()]
    assert events and all(event["direction"] == "outbound" for event in events)


# --- errors -------------------------------------------------------------------------------------------


def test_q14_errors(node):
    for args in (["dump", "clint"], ["trace", "clint"], ["drain", "clint"], ["log", "--pod", "clint"], ["metrics", "--pod", "clint"],
                 ["connections", "--pod", "clint"], ["workload", "--pod", "clint"], ["pods", "--pod", "clint"]):
        fails(node, 5, "did you mean client.default", *args)
    node.stop_daemon()
    assert str(node.run_dir / "culvert") in fails(node, 3, "no running culvertd", "pods")
