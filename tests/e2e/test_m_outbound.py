# SPDX-License-Identifier: GPL-2.0-or-later
"""
The way out, row by row: ids of reference dataplane.md 21 are in the names, with capital letters. Peers: HBONE servers
and gateways on python h2 and OpenSSL (hbone_peer.py).
"""
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from culvert_e2e import envoy, pki
from culvert_e2e.lab import REFUSED, access_fields, run, wait_for
from test_a_basic import serve

PEER = Path(pki.__file__).with_name("hbone_peer.py")

# Says something, half-closes, prints what comes back until the end ("broken" after a reset).
SHOUT = "import socket,sys\n" \
    "d=b''\n" \
    "try:\n" \
    "  s=socket.create_connection((sys.argv[1],int(sys.argv[2])),timeout=40)\n" \
    "  s.sendall(b'hello there'); s.shutdown(socket.SHUT_WR)\n" \
    "  while True:\n" \
    "    b=s.recv(65536)\n" \
    "    if not b: break\n" \
    "    d+=b\n" \
    "except OSError as e: d+=b'broken'\n" \
    "print(d.decode())\n"

# Opens a connection, proves that it works, holds it until its stdin ends.
HOLD = "import socket,sys\n" \
    "s=socket.create_connection((sys.argv[1],int(sys.argv[2])),timeout=40)\n" \
    "s.sendall(b'x'); print('up' if s.recv(1)==b'X' else 'down',flush=True)\n" \
    "sys.stdin.read()\n"


class Peer:
    """A running hbone_peer server: what it said so far, as dicts."""

    def __init__(self, path):
        self.path = path

    def said(self, key):
        lines = [json.loads(line) for line in self.path.read_text().splitlines(True) if line.endswith("\n")]
        return [m[key] for m in lines if key in m]

    @property
    def connections(self):
        return len(self.said("accepted"))


class Node:
    """A lab with one silo (client's) and pods whose HBONE is python's."""

    def __init__(self, lab, tmp_path):
        self.lab, self.tmp = lab, tmp_path
        self.client = lab.pod("client")
        self.held = []

    def start(self, *pods, **env):
        self.lab.write_mesh()
        self.lab.start_agent()
        self.lab.start_daemon(ready=False, **env)
        self.lab.add(self.client, *pods)
        self.lab.wait_ready()
        path = wait_for("the CA", lambda: next(iter((self.lab.run_dir / "culvert").glob("*/ca-root.key")), None))
        self.ca = pki.Ca.from_dir(path.parent)

    def vip(self, n):
        return f"10.{self.lab.net}.200.{n}"

    def peer(self, pod, port=15008, uris=None, **opts):
        """Starts an HBONE server in the pod, as the pod's identity unless `uris` says otherwise."""
        crt, key, root = self.ca.issue(self.tmp, uris or [pod.spiffe], name=f"{pod.name}-{port}")
        path = self.tmp / f"{pod.name}-{port}.out"
        args = [f"--{k.replace('_', '-')}={v}" for k, v in opts.items()]
        with open(path, "w") as out:
            proc = pod.popen(sys.executable, PEER, "server", "--listen", f"{pod.ip}:{port}", "--cert", crt, "--key", key,
                             "--root", root, *args, stdout=out)
        peer = Peer(path)
        peer.proc = proc
        wait_for("the peer", lambda: peer.said("listening"))
        return peer

    def shout(self, ip, port=80, timeout=60):
        return self.client.python(SHOUT, ip, port).communicate(timeout=timeout)[0].strip()

    def hold(self, ip, port=80):
        """An open connection; let_go() ends it."""
        proc = self.client.python(HOLD, ip, port, stdin=subprocess.PIPE)
        self.held.append(proc)
        return proc

    def let_go(self):
        for proc in self.held:
            proc.stdin.close()
            proc.stdin = None
            proc.wait(timeout=10)
        self.held.clear()

    def line(self, *needles, count=1):
        return access_fields(self.lab.wait_log("connection complete", 'direction="outbound"', *needles, count=count)[-1])


@pytest.fixture
def node(lab, tmp_path):
    return Node(lab, tmp_path)


# --- other networks: a tunnel inside of a tunnel -----------------------------


def far_service(node, gateway, n=9, ref_port=15008, host=None, pods=(), **extra):
    """A service whose endpoints are on the network "far", behind the gateway; returns its virtual address."""
    lab = node.lab
    dst = host or f"far/{gateway.ip}"
    for pod in pods:
        lab.record(pod).update(network="far", networkGateway={"destination": dst, "hboneMtlsPort": ref_port})
    sans = extra.pop("sans", [pod.spiffe for pod in pods])
    lab.service("web", vips=[f"/{node.vip(n)}"], ports={80: 8080}, pods=pods, subjectAltNames=sans, **extra)
    return node.vip(n)


def test_O18_O40_double_tunnel_through_a_gateway(node):
    """Both tunnels ask for host:port; only the inner one names the network; the inner peer is the service's."""
    gateway, server = node.lab.pod("gateway", network="far"), node.lab.pod("server")
    vip = far_service(node, gateway, pods=[server])
    node.start(server)
    serve(server)
    outer = node.peer(gateway, mode="forward", to=f"{server.ip}:15008")
    text = node.client.curl(f"http://{vip}/").stdout
    assert "hello from server" in text
    host = "web.default.svc.cluster.local:80"
    headers = outer.said("request")[0]
    assert [h[0] for h in headers] == [":method", ":authority", "baggage", "forwarded", "traceparent"]
    assert dict(headers)[":authority"] == host
    assert dict(headers)["forwarded"].endswith(";host=web.default.svc.cluster.local")
    line = node.line(host)
    assert line["dst.addr"] == f"{gateway.ip}:15008" and line["dst.hbone_addr"] == host and "error" not in line
    assert line["dst.identity"] == server.spiffe and line["dst.workload"] == "server"
    assert line["dst.service"] == "web.default.svc.cluster.local"
    inner = access_fields(node.lab.wait_log("connection complete", 'direction="inbound"', host)[0])
    assert inner["src.identity"] == node.client.spiffe and inner["dst.identity"] == server.spiffe


def test_O40_headers_of_the_inner_tunnel(node):
    gateway, server = node.lab.pod("gateway", network="far"), node.lab.pod("server")
    vip = far_service(node, gateway, pods=[server])
    node.start(NETWORK="")
    outer = node.peer(gateway, mode="forward", to=f"{server.ip}:15008")
    inner = node.peer(server, baggage="k8s.namespace.name=away,service.name=somewhere")
    assert node.shout(vip) == "HELLO THERE"
    got, around = inner.said("request")[0], dict(outer.said("request")[0])
    assert [h[0] for h in got] == [":method", ":authority", "baggage", "forwarded", "traceparent", "x-forwarded-network"]
    for name in (":authority", "baggage", "forwarded", "traceparent"):
        assert dict(got)[name] == around[name]
    assert dict(got)["x-forwarded-network"] == ""
    line = node.line("somewhere")
    assert line["dst.workload"] == "somewhere" and line["dst.namespace"] == "away"
    assert line["bytes_sent"] == "11" and line["bytes_recv"] == "11"


def test_O18_the_inner_tunnel_is_never_shared(node):
    gateway, server = node.lab.pod("gateway", network="far"), node.lab.pod("server")
    vip = far_service(node, gateway, pods=[server])
    node.start()
    outer = node.peer(gateway, mode="forward", to=f"{server.ip}:15008")
    inner = node.peer(server)
    for _ in range(3):
        assert node.shout(vip) == "HELLO THERE"
    assert outer.connections == 1 and inner.connections == 3
    assert wait_for("goodbyes", lambda: len(inner.said("goaway")) == 3)


def test_O19_gateway_by_name_with_port_mapping(node):
    gateway, server = node.lab.pod("gateway", network="far"), node.lab.pod("server")
    vip = far_service(node, gateway, host="default/gw.default.svc.cluster.local", ref_port=15009, pods=[server])
    node.lab.service("gw", vips=[], ports={15009: 15018}, pods=[gateway])
    node.start()
    node.peer(gateway, port=15018, mode="forward", to=f"{server.ip}:15008")
    node.peer(server)
    assert node.shout(vip) == "HELLO THERE"
    assert node.line()["dst.addr"] == f"{gateway.ip}:15018"


def test_O20_remote_waypoint(node):
    """The waypoint of a service is on another network: both tunnels ask for the service, the inner peer is the waypoint."""
    gateway, waypoint = node.lab.pod("gateway", network="far"), node.lab.pod("waypoint")
    server = node.lab.pod("server")
    node.lab.record(waypoint).update(network="far",
                                     networkGateway={"destination": f"far/{gateway.ip}", "hboneMtlsPort": 15008})
    node.lab.service("wp", vips=[], ports={15008: 15008}, pods=[waypoint], subjectAltNames=[waypoint.spiffe])
    node.lab.service("web", vips=[f"/{node.vip(9)}"], ports={80: 8080}, pods=[server],
                     waypoint={"destination": "default/wp.default.svc.cluster.local", "hboneMtlsPort": 15008})
    node.start()
    outer = node.peer(gateway, mode="forward", to=f"{waypoint.ip}:15008")
    inner = node.peer(waypoint)
    assert node.shout(node.vip(9)) == "HELLO THERE"
    for peer in (outer, inner):
        assert dict(peer.said("request")[0])[":authority"] == "web.default.svc.cluster.local:80"
    assert node.line()["dst.identity"] == waypoint.spiffe


def test_O21_remote_endpoint_without_gateway_is_refused(node):
    server = node.lab.pod("server", network="far")
    node.lab.service("web", vips=[f"/{node.vip(9)}"], ports={80: 8080}, pods=[server])
    node.start()
    assert node.shout(node.vip(9)) in ("", "broken")
    node.lab.wait_log("connection failed", "no valid routing destination for workload: server")


@pytest.mark.parametrize("sans,text", [([], "peer did not present the expected SAN"),
                                       (["spiffe://cluster.local/ns/x/sa/y"], "peer did not present the expected SAN")],
                         ids=["none", "another"])
def test_O18_inner_peer_must_be_the_services(node, sans, text):
    gateway, server = node.lab.pod("gateway", network="far"), node.lab.pod("server")
    vip = far_service(node, gateway, pods=[server], sans=sans)
    node.start()
    node.peer(gateway, mode="forward", to=f"{server.ip}:15008")
    inner = node.peer(server)
    assert node.shout(vip) in ("", "broken")
    assert node.line(text)["dst.addr"] == f"{gateway.ip}:15008"
    assert not inner.said("request")


def test_O18_outer_peer_must_be_the_gateway(node):
    gateway, server = node.lab.pod("gateway", network="far"), node.lab.pod("server")
    vip = far_service(node, gateway, pods=[server])
    node.start()
    outer = node.peer(gateway, uris=[server.spiffe], mode="forward", to=f"{server.ip}:15008")
    assert node.shout(vip) in ("", "broken")
    assert node.line("peer did not present the expected SAN")
    assert not outer.said("request")


@pytest.mark.parametrize("where", ["outer", "inner"])
def test_O39_refusals_of_a_double_tunnel(node, where):
    gateway, server = node.lab.pod("gateway", network="far"), node.lab.pod("server")
    vip = far_service(node, gateway, pods=[server])
    node.start()
    outer = node.peer(gateway, mode="forward", to=f"{server.ip}:15008", status=503 if where == "outer" else 200)
    node.peer(server, status=401 if where == "inner" else 200)
    assert node.shout(vip) in ("", "broken")
    node.line("http status: 503 Service Unavailable" if where == "outer" else "http status: 401 Unauthorized")
    assert len(outer.said("request")) == 1, "a verdict is not asked for twice"


# --- another endpoint --------------------------------------------------------


def two_endpoints(node, mesh=True, **extra):
    one, two = node.lab.pod("one", mesh=mesh), node.lab.pod("two", mesh=mesh)
    node.lab.service("web", vips=[f"/{node.vip(9)}"], ports={80: 8080}, pods=[one, two], **extra)
    return one, two


def test_O37_a_refusing_endpoint_is_left_for_another(node):
    """Plain TCP: whichever endpoint is drawn, the connection ends up at the one that listens."""
    one, two = two_endpoints(node, mesh=False)
    node.start()
    serve(two)
    for _ in range(8):
        assert "hello from two" in node.client.curl(f"http://{node.vip(9)}/").stdout
    lines = node.lab.wait_log("connection complete", 'direction="outbound"', count=8)
    assert all(access_fields(line)["dst.addr"] == f"{two.ip}:8080" and "error" not in line for line in lines)


def counted(lab, what, workload):
    """Sum of a counter of outbound connections to a workload."""
    text = run("ip", "netns", "exec", lab.node, "curl", "-sS", "http://127.0.0.1:15020/metrics").stdout
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
               if line.startswith(f"istio_tcp_connections_{what}_total{{") and 'reporter="source"' in line
               and f'destination_workload="{workload}"' in line)


def test_O37_every_try_is_counted_where_it_went(node):
    """One dead endpoint, one alive: what was opened to either is closed again, failures are the dead one's alone."""
    two_endpoints(node, mesh=False)
    node.start()
    serve(node.lab.pods["two"])

    def dead_one_met():
        node.client.curl(f"http://{node.vip(9)}/")
        return counted(node.lab, "failed", "one") >= 3

    wait_for("tries at the dead endpoint", dead_one_met, timeout=60)
    done = len(node.lab.log_lines("connection complete", 'direction="outbound"'))
    wait_for("the counters", lambda: counted(node.lab, "closed", "two") == done)
    assert counted(node.lab, "opened", "two") == done and counted(node.lab, "failed", "two") == 0
    assert counted(node.lab, "opened", "one") == counted(node.lab, "closed", "one") == counted(node.lab, "failed", "one")


@pytest.mark.parametrize("how", ["nobody", "identity", "503"])
def test_O37_a_failing_tunnel_is_left_for_another(node, how):
    one, two = two_endpoints(node)
    node.start()
    bad = None
    if how == "identity":
        bad = node.peer(one, uris=["spiffe://cluster.local/ns/default/sa/impostor"])
    elif how == "503":
        bad = node.peer(one, status=503)
    node.peer(two)
    for _ in range(8):
        assert node.shout(node.vip(9)) == "HELLO THERE"
    lines = node.lab.wait_log("connection complete", 'direction="outbound"', count=8)
    assert all(access_fields(line)["dst.identity"] == two.spiffe and "error" not in line for line in lines)
    assert how != "identity" or not bad.said("request")


@pytest.mark.parametrize("mesh", [True, False], ids=["tunnel", "plain"])
def test_O37_an_endpoint_that_swallows_everything(node, mesh):
    """It gets its share of the time, not all of it: the connection ends up at the other one."""
    one, two = two_endpoints(node, mesh=mesh)
    node.start()
    one.run("nft", "-f", "-", input="table inet hole { chain in { type filter hook input priority 0; "
            "tcp dport { 8080, 15008 } drop; }; }\n")
    if mesh:
        node.peer(two)
    else:
        serve(two)

    def met():
        if mesh:
            assert node.shout(node.vip(9)) == "HELLO THERE"
        else:
            assert "hello from two" in node.client.curl(f"http://{node.vip(9)}/", timeout=30).stdout
        return counted(node.lab, "failed", "one")

    wait_for("a try at the silent endpoint", met, timeout=60)


@pytest.mark.parametrize("mesh", [True, False], ids=["tunnel", "plain"])
def test_O37_all_tries_have_the_time_of_one(node, mesh):
    """Both swallow everything: one line, after ten seconds."""
    for pod in two_endpoints(node, mesh=mesh):
        pod.run("nft", "-f", "-", input="table inet hole { chain in { type filter hook input priority 0; "
                "tcp dport { 8080, 15008 } drop; }; }\n")
    node.start()
    assert node.shout(node.vip(9)) in ("", "broken")
    line = node.line("deadline has elapsed")
    assert 9000 <= int(line["duration"].removesuffix("ms")) < 15000
    assert len(node.lab.log_lines("connection complete", 'direction="outbound"')) == 1


@pytest.mark.parametrize("status", [401, 403, 400])
def test_O39_a_verdict_is_not_asked_for_elsewhere(node, status):
    one, two = two_endpoints(node)
    node.start()
    peers = [node.peer(pod, status=status) for pod in (one, two)]
    assert node.shout(node.vip(9)) in ("", "broken")
    assert node.line(f"http status: {status}")
    assert sum(len(p.said("request")) for p in peers) == 1


def test_O37_no_second_try_when_switched_off(node):
    one, two = two_endpoints(node, mesh=False)
    node.start(CULVERT_ENDPOINT_RETRY="false")
    serve(two)
    wait_for("a connection that meets the dead endpoint", lambda: node.client.curl(
        f"http://{node.vip(9)}/", check=False).returncode != 0)
    assert "Connection refused" in node.lab.wait_log("connection complete", f"{one.ip}:8080")[0]


def test_O37_all_endpoints_fail(node):
    """The line is that of the last try; there is one line."""
    two_endpoints(node, mesh=False)
    node.start()
    assert node.shout(node.vip(9)) in ("", "broken")
    assert "Connection refused" in node.lab.wait_log("connection complete", 'direction="outbound"')[0]
    assert len(node.lab.log_lines("connection complete", 'direction="outbound"')) == 1


def test_O37_a_tunnel_that_ends_under_the_request(node):
    """A pooled tunnel that its peer closes instead of answering: the request goes over a new one to the same workload."""
    pod = node.lab.pod("peer")
    node.start()
    peer = node.peer(pod, hangup_at=2)
    assert node.shout(pod.ip, 7000) == "HELLO THERE"
    assert node.shout(pod.ip, 7000) == "HELLO THERE"
    assert peer.connections == 2 and len(peer.said("request")) == 3


def test_O37_no_answer_to_connect(node):
    pod = node.lab.pod("peer")
    node.start(CULVERT_CONNECT_ANSWER_TIMEOUT="1s")
    node.peer(pod, mode="mute")
    assert node.shout(pod.ip, 7000) in ("", "broken")
    assert node.line("no answer to CONNECT")


def test_O37_no_tls_handshake(node):
    pod = node.lab.pod("peer")
    node.start(CULVERT_TLS_HANDSHAKE_TIMEOUT="1s")
    node.peer(pod, mode="deaf")
    assert node.shout(pod.ip, 7000) in ("", "broken")
    assert node.line("handshake timeout")


# --- the pool ----------------------------------------------------------------


def one_peer(node, env=(), **opts):
    pod = node.lab.pod("peer")
    node.start(**dict(env))
    return pod, node.peer(pod, **opts)


def hold(node, pod, cnt):
    procs = [node.hold(pod.ip, 7000) for _ in range(cnt)]
    assert [p.stdout.readline() for p in procs] == ["up\n"] * cnt


def test_P01_one_tunnel_for_connections_of_one_key(node):
    pod, peer = one_peer(node)
    hold(node, pod, 2)
    hold(node, pod, 2)
    assert peer.connections == 1
    node.let_go()


def test_P02_two_keys_are_two_tunnels(node):
    """Two workloads; and two names of one address: what may be at the end is part of the key."""
    one, two = node.lab.pod("one"), node.lab.pod("two")
    node.lab.service("web", vips=[f"/{node.vip(9)}"], ports={80: 8080}, pods=[one],
                     subjectAltNames=["spiffe://cluster.local/ns/x/sa/y"])
    node.start()
    peers = [node.peer(pod) for pod in (one, two)]
    for ip in (one.ip, two.ip, one.ip, node.vip(9)):
        assert node.shout(ip) == "HELLO THERE"
    assert [p.connections for p in peers] == [2, 1]


def test_P02_a_reused_address_does_not_inherit_a_tunnel(node):
    pod, peer = one_peer(node)
    assert node.shout(pod.ip, 7000) == "HELLO THERE"
    record = node.lab.record(pod)
    record["uid"] += "-reborn"
    node.lab.write_mesh()

    def second():
        assert node.shout(pod.ip, 7000) == "HELLO THERE"
        return peer.connections == 2

    wait_for("a tunnel of its own", second)


def test_P03_cap_of_streams(node):
    """Four, then five at once with a cap of two. Unlike upstream, which retires a full tunnel for good (2, then 5
    in total), tunnels whose streams have ended are used again: two, then three in total."""
    pod, peer = one_peer(node, {"POOL_MAX_STREAMS_PER_CONNECTION": 2})
    hold(node, pod, 4)
    assert peer.connections == 2
    node.let_go()
    node.lab.wait_log("connection complete", 'direction="outbound"', count=4)
    hold(node, pod, 5)
    assert peer.connections == 3
    node.let_go()


def test_P04_cap_of_one(node):
    pod, peer = one_peer(node, {"POOL_MAX_STREAMS_PER_CONNECTION": 1})
    hold(node, pod, 3)
    assert peer.connections == 3
    node.let_go()


MANY = "import socket,sys\n" \
    "ss=[]\n" \
    "for i in range(int(sys.argv[3])):\n" \
    "  s=socket.socket(); s.setblocking(False); s.connect_ex((sys.argv[1],int(sys.argv[2]))); ss.append(s)\n" \
    "for s in ss: s.settimeout(40); \n" \
    "import select\n" \
    "for s in ss:\n" \
    "  select.select([],[s],[],40); s.sendall(b'x')\n" \
    "print(sum(s.recv(1)==b'X' for s in ss),flush=True)\n"


def test_P05_a_hundred_at_once_are_one_tunnel(node):
    pod, peer = one_peer(node, {"POOL_MAX_STREAMS_PER_CONNECTION": 101}, max_streams=200)
    out = node.client.python(MANY, pod.ip, 7000, 100).communicate(timeout=90)[0]
    assert out == "100\n"
    assert peer.connections == 1


def test_P06_an_idle_tunnel_is_closed(node):
    pod, peer = one_peer(node, {"POOL_UNUSED_RELEASE_TIMEOUT": "1s"})
    assert node.shout(pod.ip, 7000) == "HELLO THERE"
    wait_for("the end of the tunnel", lambda: peer.said("closed"))
    assert peer.said("goaway") == [0]
    assert node.shout(pod.ip, 7000) == "HELLO THERE"
    assert peer.connections == 2


def test_P07_an_idle_tunnel_in_use_closes_with_its_last_stream(node):
    pod, peer = one_peer(node, {"POOL_UNUSED_RELEASE_TIMEOUT": "1s"})
    hold(node, pod, 1)

    def newer():
        assert node.shout(pod.ip, 7000) == "HELLO THERE"
        return peer.connections > 1

    wait_for("the tunnel to be forgotten", newer, interval=1.5)
    wait_for("the end of the second one", lambda: peer.said("closed"))
    assert len(peer.said("closed")) == peer.connections - 1, "the first still carries its stream"
    node.let_go()
    wait_for("the end of the first", lambda: len(peer.said("closed")) == peer.connections)


def test_P08_goaway_of_the_server(node):
    """What is open goes on, what is new goes elsewhere."""
    pod, peer = one_peer(node, goaway_after=1)
    hold(node, pod, 1)
    assert node.shout(pod.ip, 7000) == "HELLO THERE"
    assert peer.connections == 2
    assert node.held[0].poll() is None
    node.let_go()
    for line in node.lab.wait_log("connection complete", 'direction="outbound"', count=2):
        assert "error" not in access_fields(line)


def test_P09_a_deleted_pod_ends_its_streams(node):
    pod, peer = one_peer(node)
    hold(node, pod, 2)
    node.lab.delete(node.client)
    wait_for("the end of the tunnel", lambda: peer.said("closed"))
    node.lab.wait_log("connection complete", "connection closed due to connection drain", count=2)


def test_P10_a_dead_peer_fails_everybody_together(node):
    """Twelve connections to an address that swallows everything: all fail when the first does."""
    pod = node.lab.pod("peer")
    node.start()
    pod.run("nft", "add table ip hole; add chain ip hole in { type filter hook input priority 0; }; "
                   "add rule ip hole in tcp dport 15008 drop")
    procs = [node.client.python(SHOUT, pod.ip, 7000) for _ in range(12)]
    assert {p.communicate(timeout=60)[0].strip() for p in procs} <= {"", "broken"}
    lines = node.lab.wait_log("connection complete", "NetworkPolicy is blocking HBONE port 15008", count=12, timeout=40)
    took = [int(access_fields(line)["duration"].rstrip("ms")) for line in lines]
    assert max(took) < 2 * min(took), "nobody waits for somebody else's attempt"


def test_P11_settings_on_the_wire(node):
    """Push off, our windows, frames of 1 MiB, 16 KiB of headers; the connection window is opened at once."""
    pod, peer = one_peer(node)
    assert node.shout(pod.ip, 7000) == "HELLO THERE"
    settings = peer.said("settings")[0]
    assert settings["2"] == 0 and settings["5"] == 1 << 20 and settings["6"] == 16384
    assert 65535 < int(settings["4"]) <= 4 << 20
    assert peer.said("window")[0] > 0
    assert "3" not in settings and "8" not in settings


def test_P12_a_peer_that_stops_answering_pings(node):
    pod, peer = one_peer(node)
    hold(node, pod, 1)
    peer.proc.send_signal(19)
    try:
        node.lab.wait_log("connection complete", 'direction="outbound"', timeout=90)
    finally:
        peer.proc.send_signal(18)
    assert int(node.line()["duration"].rstrip("ms")) < 60000
    node.let_go()


def test_P13_limit_of_ten_streams_and_thirty_clients(node):
    pod, peer = one_peer(node, max_streams=10)
    hold(node, pod, 30)
    assert peer.connections >= 3
    node.let_go()


def test_P13_a_peer_without_settings(node):
    """Before the peer's SETTINGS one stream is all we dare; nobody waits for them for ever."""
    pod, peer = one_peer(node, {"CULVERT_TLS_HANDSHAKE_TIMEOUT": "2s"}, mode="dumb")
    procs = [node.client.python(SHOUT, pod.ip, 7000) for _ in range(4)]
    assert {p.communicate(timeout=60)[0].strip() for p in procs} <= {"", "broken"}
    lines = node.lab.wait_log("connection complete", 'direction="outbound"', "http2 handshake failed: no SETTINGS")
    assert lines and len(node.lab.wait_log("connection complete", 'direction="outbound"', count=4)) == 4


def test_P14_a_stream_that_is_not_read_does_not_stop_others(node):
    """One application does not read its echo: its stream's window fills, the tunnel's does not."""
    pod, peer = one_peer(node)
    stuck = node.client.python(
        "import socket,sys\n"
        "s=socket.create_connection((sys.argv[1],7000))\n"
        "for _ in range(256): s.sendall(b'x'*65536)\n"
        "print('sent',flush=True); sys.stdin.read()\n", pod.ip, stdin=subprocess.PIPE)
    assert stuck.stdout.readline() == "sent\n"
    for _ in range(5):
        assert node.shout(pod.ip, 7000) == "HELLO THERE"
    assert peer.connections == 1


def test_P15_cancelled_by_the_peer(node):
    """RST_STREAM CANCEL reads as an end of data."""
    pod, _ = one_peer(node, mode="reset", code=8)
    read = node.client.python("import socket,sys\ns=socket.create_connection((sys.argv[1],7000),timeout=20)\n"
                              "try: print(s.recv(10))\nexcept OSError as e: print(e)\n", pod.ip)
    out = read.communicate(timeout=40)[0].strip()
    line = node.line()
    assert out == "b''" and "error" not in line, (out, line)


# --- Envoy -------------------------------------------------------------------

needs_envoy = pytest.mark.skipif(envoy.binary() is None, reason="Envoy is not in the virtual environment")


@needs_envoy
@pytest.mark.parametrize("how", ["service", "workload"])
def test_O11_O12_envoy_as_waypoint(node, how):
    """client -> our tunnel -> Envoy -> its tunnel -> our server. The waypoint is asked for what was dialled."""
    waypoint, server = node.lab.pod("waypoint"), node.lab.pod("server")
    ref = {"destination": f"/{waypoint.ip}", "hboneMtlsPort": 15008}
    if how == "service":
        node.lab.service("web", vips=[f"/{node.vip(9)}"], ports={80: 8080}, pods=[server], waypoint=ref)
        dialled = f"{node.vip(9)}:80"
    else:
        node.lab.record(server)["waypoint"] = ref
        dialled = f"{server.ip}:8080"
    node.start(server)
    serve(server)
    files = node.ca.issue(node.tmp, [waypoint.spiffe], name="waypoint")
    envoy.start(waypoint, envoy.waypoint(waypoint.ip, files, (server.ip, 15008), f"{server.ip}:8080", server.spiffe),
                node.tmp)
    for _ in range(3):
        assert "hello from server" in node.client.curl(f"http://{dialled}/").stdout
    line = node.line(dialled)
    assert line["dst.addr"] == f"{waypoint.ip}:15008" and line["dst.hbone_addr"] == dialled
    assert line["dst.identity"] == waypoint.spiffe
    inner = access_fields(node.lab.wait_log("connection complete", 'direction="inbound"')[0])
    assert inner["src.identity"] == waypoint.spiffe and inner["dst.hbone_addr"] == f"{server.ip}:8080"


@needs_envoy
def test_O18_envoy_as_gateway(node):
    gateway, server = node.lab.pod("gateway", network="far"), node.lab.pod("server")
    vip = far_service(node, gateway, pods=[server])
    node.start(server)
    serve(server)
    files = node.ca.issue(node.tmp, [gateway.spiffe], name="gateway")
    envoy.start(gateway, envoy.gateway(gateway.ip, files, (server.ip, 15008)), node.tmp)
    for _ in range(3):
        assert "hello from server" in node.client.curl(f"http://{vip}/").stdout
    line = node.line("web.default.svc.cluster.local:80")
    assert line["dst.addr"] == f"{gateway.ip}:15008" and line["dst.identity"] == server.spiffe
    inner = access_fields(node.lab.wait_log("connection complete", 'direction="inbound"')[0])
    assert inner["src.identity"] == node.client.spiffe


# --- SOCKS5 ------------------------------------------------------------------


def socks(node, url, *args, flag="--socks5-hostname", **kw):
    return node.client.curl(url, flag, "127.0.0.1:15080", *args, **kw)


@pytest.fixture
def socksy(node):
    server, outside = node.lab.pod("server"), node.lab.pod("outside", mesh=False)
    node.lab.service("web", vips=[f"/{node.vip(9)}"], ports={80: 8080}, pods=[server])
    node.start(server, UNSTABLE_ENABLE_SOCKS5="true")
    serve(server)
    serve(outside)
    return node


def test_m01_socks5_by_address_and_by_name(socksy):
    server, outside = socksy.lab.pods["server"], socksy.lab.pods["outside"]
    assert "hello from server" in socks(socksy, f"http://{server.ip}:8080/", flag="--socks5").stdout
    assert "hello from server" in socks(socksy, f"http://[{server.ip6}]:8080/", flag="--socks5").stdout
    assert "hello from outside" in socks(socksy, f"http://{outside.ip}:8080/", flag="--socks5").stdout
    for name in ("web.default.svc.cluster.local", "WEB.default.svc.cluster.local.", "web.default", "web"):
        assert "hello from server" in socks(socksy, f"http://{name}/").stdout
    lines = socksy.lab.wait_log("connection complete", 'direction="outbound"', "web.default.svc.cluster.local", count=4)
    assert all(access_fields(line)["dst.hbone_addr"] == f"{server.ip}:8080" for line in lines)
    socksy.lab.wait_log("connection complete", 'direction="outbound"', f"{outside.ip}:8080")


def test_m02_socks5_refusals(socksy):
    """curl tells the code of the reply: 4 = the name is not known."""
    gone = socks(socksy, "http://nothing.invalid/", check=False, timeout=20)
    assert gone.returncode == 97 and "4" in gone.stderr
    own = socks(socksy, "http://127.0.0.1:15001/", flag="--socks5", check=False)
    assert own.returncode in (*REFUSED, 97), "closed, before or after the reply"
    socksy.lab.wait_log("connection failed", "attempted recursive call to ourselves")
    assert socks(socksy, f"http://{socksy.client.ip}:15001/", check=False).returncode in REFUSED


def test_m02_socks5_success_comes_before_the_end(socksy):
    """Success is said before the routing refuses: the close does not overtake it, whatever else the client sends."""
    code = "import socket,sys\n" \
        "for i in range(100):\n" \
        "  s=socket.create_connection(('127.0.0.1',15080),timeout=30)\n" \
        "  s.sendall(b'\\5\\1\\0'); assert s.recv(2)==b'\\5\\0'\n" \
        "  s.sendall(b'\\5\\1\\0\\1\\x7f\\0\\0\\1'+(15001).to_bytes(2,'big')+b'early'*(i%3))\n" \
        "  d=b''\n" \
        "  while b:=s.recv(100): d+=b\n" \
        "  assert len(d)==10 and d[1]==0, d\n" \
        "print('ok')\n"
    out, _ = socksy.client.python(code).communicate(timeout=120)
    assert out == "ok\n", out


def test_m03_socks5_is_for_loopback_only_and_off_by_default(socksy, tmp_path):
    outside, client = socksy.lab.pods["outside"], socksy.client
    assert outside.curl(f"http://{client.ip}:15080/", check=False, timeout=5).returncode in REFUSED
    assert "127.0.0.1:15080" in client.run("ss", "-ltnH").stdout


def test_m04_no_socks5_unless_asked_for(node):
    node.start()
    assert ":15080" not in node.client.run("ss", "-ltnH").stdout


def test_m05_application_that_speaks_at_once(socksy):
    """Request and first bytes in one packet: nothing of them is lost."""
    server = socksy.lab.pods["server"]
    code = "import socket,sys,ipaddress\n" \
        "s=socket.create_connection(('127.0.0.1',15080),timeout=10)\n" \
        "ip=ipaddress.ip_address(sys.argv[1]).packed\n" \
        "s.sendall(b'\\5\\1\\0'+b'\\5\\1\\0\\1'+ip+(8080).to_bytes(2,'big')+b'GET / HTTP/1.0\\r\\n\\r\\n')\n" \
        "d=b''\n" \
        "while b:=s.recv(4096): d+=b\n" \
        "assert d[:12]==b'\\5\\0'+b'\\5\\0\\0\\1'+bytes(6), d\n" \
        "print(d[12:].decode())\n"
    assert "hello from server" in socksy.client.python(code, server.ip).communicate(timeout=30)[0]


# --- listeners and sockets ---------------------------------------------------


def sockets(pod, *args):
    """Lines of ss, each a socket with all that belongs to it."""
    return [line for line in pod.run("ss", "-tneoO", *args).stdout.splitlines() if line.strip()]


def test_L04_L05_L06_options_of_sockets(node):
    """Marks on everything, keepalive on what is dialled and on what is captured, none on what comes by HBONE."""
    server, outside = node.lab.pod("server"), node.lab.pod("outside", mesh=False)
    node.start(server)
    for pod in (server, outside):
        pod.python("import socket\n"
                   "l=socket.create_server(('::',7000),family=socket.AF_INET6,dualstack_ipv6=True)\n"
                   "keep=[]\n"
                   "while True:\n"
                   "  c,_=l.accept(); keep.append(c); c.sendall(c.recv(1).upper())\n")
        pod.wait_port(7000)
    hold(node, server, 1)
    hold(node, outside, 1)
    mark = "fwmark:0x539"
    dialled = [line for line in sockets(node.client, "state", "established") if f"{server.ip}:15008" in line]
    assert len(dialled) == 1 and mark in dialled[0] and "timer:(keepalive" in dialled[0]
    plain = [line for line in sockets(node.client, "state", "established") if mark in line and ":15008" not in line]
    assert sum(f"{outside.ip}:7000" in line for line in plain) == 1, "dialled for the one outside"
    captured = [line for line in plain if ":15001 " in line]
    assert len(captured) == 2, "taken from the application"
    for line in (*plain, *dialled):
        assert "timer:(keepalive,2min" in line or "timer:(keepalive,3min" in line
    taken = [line for line in sockets(server, "state", "established") if ":15008" in line]
    assert len(taken) == 1 and mark in taken[0] and "timer:(keepalive" not in taken[0]
    for port in (15001, 15006, 15008):
        listening = [line for line in sockets(node.client, "state", "listening") if f":{port} " in line]
        assert len(listening) == 1 and mark in listening[0]
    node.let_go()


def test_L08_ipv4_clients_are_logged_as_ipv4(node):
    outside = node.lab.pod("outside", mesh=False)
    node.start()
    serve(outside)
    node.client.curl(f"http://{outside.ip}:8080/")
    assert node.line()["src.addr"].startswith(f"{node.client.ip}:")


# --- the rest of the routes --------------------------------------------------


def test_O35_own_ports_on_loopback(node):
    """Captured by hand: the application's connection to its own 127.0.0.1 is not redirected by anything."""
    node.start()
    for port in (15001, 15006, 15008):
        assert node.client.curl(f"http://127.0.0.1:{port}/", check=False, timeout=5).returncode in REFUSED


def test_O36_a_record_that_comes_late(node):
    """The pod is there before the mesh knows it: its connections wait for the record, at most five seconds."""
    outside = node.lab.pod("outside", mesh=False)
    record = node.lab.record(node.client)
    node.lab.mesh["workloads"].remove(record)
    node.start()
    serve(outside)
    refused = node.client.curl(f"http://{outside.ip}:8080/", check=False, timeout=30)
    assert refused.returncode in REFUSED
    node.lab.wait_log("connection failed", "failed to fetch information about local workload: client.default (client)")
    waiting = node.client.popen("curl", "-sS", "--max-time", 30, f"http://{outside.ip}:8080/")
    wait_for("the connection", lambda: ":8080" in node.client.run("ss", "-tnH", "state", "established").stdout)
    node.lab.mesh["workloads"].append(record)
    node.lab.write_mesh()
    assert "hello from outside" in waiting.communicate(timeout=60)[0]


PING = "import socket,sys\n" \
    "s=socket.socket(socket.AF_INET,socket.SOCK_RAW,socket.IPPROTO_ICMP); s.settimeout(10)\n" \
    "s.sendto(b'\\x08\\0\\xf7\\xff\\0\\0\\0\\0',(sys.argv[1],0))\n" \
    "while True:\n" \
    "  d,a=s.recvfrom(100)\n" \
    "  if d[20]==0: break\n" \
    "print(a[0])\n"


def test_O41_udp_and_icmp_are_left_alone(node):
    outside = node.lab.pod("outside", mesh=False)
    node.start()
    outside.python("import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.bind(('',7001))\n"
                   "while True:\n  d,a=s.recvfrom(100); s.sendto(a[0].encode(),a)\n")
    outside.wait_port(7001, "udp")
    out = node.client.python("import socket,sys\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.settimeout(10)\n"
                             "s.sendto(b'x',(sys.argv[1],7001)); print(s.recv(100).decode())\n", outside.ip)
    assert out.communicate(timeout=30)[0].strip() == node.client.ip
    ping = node.client.python(PING, outside.ip)
    assert ping.communicate(timeout=30)[0] == f"{outside.ip}\n"
    assert not node.lab.log_lines('direction="outbound"')


@pytest.fixture
def hosts(node):
    """What the daemon's hosts file says; ip(8) puts it in its place."""
    folder = Path("/etc/netns") / node.lab.node
    folder.mkdir(parents=True)

    def write(text):
        (folder / "hosts").write_text(text)

    yield write
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def test_O29_workload_known_by_its_host_name(node, hosts):
    """Resolved by the broker; the family that was dialled is preferred; an unknown name is refused in upstream's words."""
    outside = node.lab.pod("outside", mesh=False)
    hosts(f"127.0.0.1 localhost\n{outside.ip} db.test\n{outside.ip6} db.test\n")
    for name, vip in (("db.test", 9), ("gone.invalid", 8)):
        node.lab.service(name, vips=[f"/{node.vip(vip)}", f"/fd00:{node.lab.net}:200::{vip}"], ports={80: 8080})
        node.lab.mesh["workloads"].append({
            "uid": f"external/{name}", "name": name, "namespace": "default", "serviceAccount": "", "workloadIps": [],
            "hostname": name, "protocol": "TCP", "network": "", "trustDomain": "cluster.local",
            "services": {f"default/{name}.default.svc.cluster.local": {80: 8080}}})
    node.start()
    serve(outside)
    for _ in range(2):
        assert "hello from outside" in node.client.curl(f"http://{node.vip(9)}/").stdout
    assert node.line()["dst.addr"] == f"{outside.ip}:8080"
    assert "hello from outside" in node.client.curl(f"http://[fd00:{node.lab.net}:200::9]/").stdout
    assert node.lab.wait_log("connection complete", 'direction="outbound"', f"[{outside.ip6}]:8080")
    assert node.client.curl(f"http://{node.vip(8)}/", check=False, timeout=30).returncode in REFUSED
    node.lab.wait_log("connection failed", "no ip addresses were resolved for workload: gone.invalid")
    text = run("ip", "netns", "exec", node.lab.node, "curl", "-sS", "http://127.0.0.1:15020/metrics").stdout
    uses = {m[0]: int(m[1]) for m in re.findall(r'^istio_on_demand_dns_total\{.*hostname="([^"]+)"\} (\d+)$', text, re.M)}
    assert uses == {"db.test": 3, "gone.invalid": 1}, "each use, from the cache or not"
