# SPDX-License-Identifier: GPL-2.0-or-later
"""Envoy as a client of our inbound side, as ingress gateways are, and as an application behind a PROXY header."""
import json
import re
import signal
import sys
import time

import pytest

from culvert_e2e import envoy, pki
from culvert_e2e.lab import access_fields, wait_for
from culvert_e2e.soak import PEER
from test_a_basic import serve

pytestmark = pytest.mark.skipif(envoy.binary() is None, reason="Envoy is not in the virtual environment")

# Opens many connections at once, keeps them, exchanges words on all of them each time a line comes; prints how many were
# right. "reset N" ends N of them by RST first.
MANY = "import os,socket,struct,sys\n" \
    "conns=[socket.create_connection((sys.argv[1],int(sys.argv[2])),timeout=60) for _ in range(int(sys.argv[3]))]\n" \
    "def word(s):\n" \
    "  w=os.urandom(3000); s.sendall(w); d=b''\n" \
    "  while len(d)<len(w):\n" \
    "    b=s.recv(len(w)-len(d))\n" \
    "    if not b: return False\n" \
    "    d+=b\n" \
    "  return d==w\n" \
    "print(sum(map(word,conns)),flush=True)\n" \
    "for line in sys.stdin:\n" \
    "  if line.startswith('reset'):\n" \
    "    for _ in range(int(line.split()[1])):\n" \
    "      s=conns.pop(); s.setsockopt(socket.SOL_SOCKET,socket.SO_LINGER,struct.pack('ii',1,0)); s.sendall(b'x'*500000); s.close()\n" \
    "  print(sum(map(word,conns)),flush=True)\n"

STREAMS = 40


class Many:
    """The program above in a pod."""

    def __init__(self, pod, ip, port, count=STREAMS):
        self.proc = pod.python(MANY, ip, port, count, stdin=-1)

    def answer(self):
        return int(self.proc.stdout.readline())

    def tell(self, line):
        self.proc.stdin.write(line + "\n")
        self.proc.stdin.flush()
        return self.answer()


@pytest.fixture
def ingress(lab, tmp_path):
    """outside -> Envoy in the pod `gateway` -> our tunnel end -> the server's echo on 9000."""
    server, gateway, outside = lab.pod("server"), lab.pod("gateway"), lab.pod("outside", mesh=False)
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False)
    lab.add(server)
    lab.wait_ready()
    path = wait_for("the CA", lambda: next(iter((lab.run_dir / "culvert").glob("*/ca-root.key")), None))
    files = pki.Ca.from_dir(path.parent).issue(tmp_path, [gateway.spiffe], name="gateway")
    server.popen(sys.executable, PEER, "serve", 9000)
    server.wait_port(9000)
    envoy.start(gateway, envoy.ingress(gateway.ip, files, (server.ip, 15008), f"{server.ip}:9000", server.spiffe), tmp_path)
    return lab


def tunnels(lab):
    """TCP connections between Envoy and our inbound listener."""
    return len(lab.pods["gateway"].run("ss", "-tnH", "state", "established", "dport", "=", ":15008").stdout.splitlines())


def inbound(lab):
    return [access_fields(line) for line in lab.log_lines("connection complete", 'direction="inbound"')]


def test_u01_many_streams_on_pooled_tunnels(ingress):
    """Forty connections share Envoy's tunnels; a reset of some is theirs alone."""
    gateway, outside = ingress.pods["gateway"], ingress.pods["outside"]
    many = Many(outside, gateway.ip, 8080)
    assert many.answer() == STREAMS
    # Envoy has one pool a worker, and one worker.
    assert 1 <= tunnels(ingress) <= 2
    assert many.tell("reset 10") == STREAMS - 10
    wait_for("the ends of those that were reset", lambda: len(inbound(ingress)) == 10)
    assert many.tell("again") == STREAMS - 10
    assert 1 <= tunnels(ingress) <= 2
    assert all(f["src.identity"] == gateway.spiffe for f in inbound(ingress))
    many.proc.stdin.close()
    wait_for("all ends", lambda: len(inbound(ingress)) == STREAMS)
    stats = gateway.curl(f"http://127.0.0.1:{envoy.ADMIN}/stats?filter=cluster.pod").stdout
    assert re.search(r"upstream_rq_total: 40$", stats, re.M) and re.search(r"http2.rx_messaging_error: 0$", stats, re.M)


def test_u02_d07_drain_says_goaway_and_streams_finish(ingress):
    """A new daemon takes over: Envoy's streams on the old tunnel end as their clients wish, new ones go to the new silo."""
    gateway, outside = ingress.pods["gateway"], ingress.pods["outside"]
    first = ingress.daemons[-1]
    second = ingress.start_second_daemon()
    wait_for("the second one's silo", lambda: ingress.silos_of(second))
    many = Many(outside, gateway.ip, 8080)
    assert many.answer() == STREAMS
    with open(ingress.tmp / "traffic.log", "w") as out:
        task = {"label": "ingress", "kind": "quick", "host": gateway.ip, "port": 8080, "pause": 0.01}
        traffic = outside.popen(sys.executable, PEER, "client", json.dumps([task] * 3), stdin=-1, stdout=out)
    time.sleep(0.5)
    first.send_signal(signal.SIGTERM)
    wait_for("the end of the first one's listeners", lambda: ingress.pods["server"].run(
        "ss", "-ltnH", "sport", "=", ":15008").stdout.count(":15008") == 1)
    assert many.tell("again") == STREAMS
    time.sleep(1)
    many.proc.stdin.close()
    assert first.wait(timeout=30) == 0
    traffic.stdin.close()
    traffic.wait(timeout=60)
    lines = [json.loads(line) for line in (ingress.tmp / "traffic.log").read_text().splitlines()]
    assert len(lines) == 1 and lines[0]["done"]["ingress/quick"] > 20, lines[:5]
    assert inbound(ingress) or ingress.log_lines("connection complete", 'direction="inbound"', proc=second)


def test_u03_a_killed_silo_is_reconnected_to(ingress):
    gateway, outside = ingress.pods["gateway"], ingress.pods["outside"]
    many = Many(outside, gateway.ip, 8080, 5)
    assert many.answer() == 5
    old = ingress.pid_of(ingress.pods["server"])
    ingress.pods["server"].run("kill", "-9", old)
    assert many.tell("again") == 0
    wait_for("another silo", lambda: ingress.pid_of(ingress.pods["server"]) not in (None, old))

    def works():
        again = Many(outside, gateway.ip, 8080, 5)
        line = again.proc.stdout.readline()
        return line.strip() == "5"

    wait_for("new streams", works, interval=0.5)


def test_i06_envoy_reads_our_proxy_header(lab, tmp_path):
    """The application tunnel's end is a real Envoy: it learns client, destination and identity, and passes the rest on."""
    client, server = lab.pod("client"), lab.pod("server", applicationTunnel={"port": 15088, "protocol": "PROXY"})
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False)
    lab.add(client, server)
    lab.wait_ready()
    serve(server, 8081)
    log = tmp_path / "who.log"
    envoy.start(server, envoy.behind_proxy_header(15088, ("127.0.0.1", 8081), log), tmp_path)
    for host, ip in ((server.ip, client.ip), (f"[{server.ip6}]", client.ip6)):
        assert "hello from server" in client.curl(f"http://{host}:8080/").stdout
        line = wait_for("Envoy's line", lambda: log.exists() and [
            x for x in log.read_text().splitlines() if f"{host}:8080" in x])[0]
        remote, local, identity = line.split()
        assert remote.rsplit(":", 1)[0].strip("[]") == ip and local == f"{host}:8080"
        assert identity.strip('"') == client.spiffe
