# SPDX-License-Identifier: GPL-2.0-or-later
"""The mesh from a control plane: delta ADS against Google's gRPC, with messages that protoc compiles anew.

Rows X1 to X13 of the behaviour table (reference control.md 19), and what a node
must do when the control plane misbehaves.
"""
import os
import signal
import subprocess
import sys
import time

import pytest

from culvert_e2e.istiod import ADDRESS, POLICY, Istiod, messages, name_of, packed, resource, response, service, workload
from culvert_e2e.lab import wait_for
from culvert_e2e.pki import Ca
from test_a_basic import serve

TOKEN = "a-token"


class Node:
    """A lab whose daemon takes its mesh from a scripted control plane."""

    def __init__(self, lab):
        self.lab = lab
        self.ca = Ca.foreign()
        self.crt, self.key, self.root = self.ca.issue_server(lab.tmp, ["localhost", "istiod.test"], "istiod")
        self.token = lab.tmp / "token"
        self.token.write_text(TOKEN)
        self.istiod = None
        self.client, self.server = lab.pod("client"), lab.pod("server")

    def control(self, **opts):
        self.istiod = Istiod(self.lab, self.crt, self.key, **opts)
        return self.istiod

    def start(self, pods=True, **env):
        """Starts agent and daemon; pods are enrolled without waiting, since their Ack needs the mesh."""
        settings = {"XDS_ADDRESS": "https://localhost:15012", "XDS_ROOT_CA": self.root, "AUTH_TOKEN": self.token,
                    "INSTANCE_IP": "127.0.0.1", "POD_NAME": "ztunnel-x", "POD_NAMESPACE": "istio-system",
                    "LOCAL_XDS_PATH": "", **env}
        self.lab.start_agent()
        drop = [k for k, v in settings.items() if v is None or v == ""]
        base = self.lab.env
        self.lab.env = lambda **extra: {k: v for k, v in base(**extra).items() if k not in drop or k in extra and v}
        return self.lab.start_daemon(ready=False, **{k: v for k, v in settings.items() if k not in drop})

    def enrol(self):
        self.lab.add(self.client, self.server)
        self.lab.wait_ready()
        serve(self.server)

    def records(self):
        return [workload(self.client), workload(self.server)]

    def get(self, timeout=5):
        return self.client.curl(f"http://{self.server.ip}:8080/", check=False, timeout=timeout)

    def broker(self):
        return self.lab.pid_of("culvert-broker")


@pytest.fixture
def node(lab):
    made = Node(lab)
    yield made
    if made.istiod:
        made.istiod.stop()


@pytest.fixture
def served(node):
    """Two pods whose records came by xDS, in use."""
    istiod = node.control()
    node.start()
    istiod.serve(node.records())
    node.enrol()
    return node


def reachable(node):
    return node.get(2).stdout.startswith("hello from server")


def test_i01_first_connection(node):
    istiod = node.control()
    node.start(**{"XDS_HEADER_Foo_Bar": "baz", "ISTIO_META_NETWORK": "n1",
                  "ISTIO_METAJSON_LABELS": '{"a": [1, true, null, "\\u00e9"]}', "ISTIO_METAJSON_BAD": "{"})
    stream = istiod.wait("stream", lambda e: e["event"] == "stream")
    address, policy = istiod.first(ADDRESS), istiod.first(POLICY)
    requests = [e["type"] for e in istiod.events if e["event"] == "request"]
    assert requests == [ADDRESS, POLICY]
    for first in (address, policy):
        assert first["node"] == "ztunnel~127.0.0.1~ztunnel-x.istio-system~istio-system.svc.cluster.local"
        meta = first["metadata"]
        assert {k: meta[k] for k in ("NAME", "NAMESPACE", "INSTANCE_IPS", "NODE_NAME", "NETWORK")} == {
            "NAME": "ztunnel-x", "NAMESPACE": "istio-system", "INSTANCE_IPS": "127.0.0.1", "NODE_NAME": "local",
            "NETWORK": "n1"}
        assert meta["LABELS"] == {"a": [1, True, None, "é"]} and "BAD" not in meta
        assert first["version_count"] == 0 and not first["subscribe"] and not first["unsubscribe"]
    headers = stream["headers"]
    assert headers["authorization"] == f"Bearer {TOKEN}" and headers["clusterid"] == "Kubernetes"
    assert headers["foo_bar"] == "baz"
    reply = istiod.push(ADDRESS)
    assert reply["type"] == ADDRESS and not reply["has_error"] and not reply["node"]
    assert not node.lab.ready(), "policies are still awaited"
    node.lab.wait_log("ISTIO_METAJSON_BAD")


def test_i02_pods_served_changes_and_removals(served):
    node, istiod = served, served.istiod
    assert reachable(node)
    node.lab.wait_log("connection complete", 'direction="inbound"', "src.identity")
    third = node.lab.pod("third")
    answer = istiod.push(ADDRESS, [resource(workload(third), "a1")])
    assert not answer["has_error"]
    node.lab.add(third)
    serve(third)
    assert node.client.curl(f"http://{third.ip}:8080/").stdout.startswith("hello from third")
    vip = f"10.{node.lab.net}.9.9"
    svc = service("echo", vips=[vip], ports={80: 8080})
    host = "default/echo.default.svc.cluster.local"
    istiod.push(ADDRESS, [resource(svc, "1"), resource(workload(third, services={host: {80: 8080}}), "a2")])
    assert node.client.curl(f"http://{vip}:80/").stdout.startswith("hello from third")
    # Removed by its name; an unknown one, one without slash and a name twice are no error.
    answer = istiod.push(ADDRESS, removed=[host, "nobody", "no/such", "x/y/z", host])
    assert not answer["has_error"]
    wait_for("the service's end", lambda: node.client.curl(f"http://{vip}:80/", check=False, timeout=2).returncode)
    # Without its record the pod is an ordinary address: plaintext, which the pod's own listener takes.
    istiod.push(ADDRESS, removed=[name_of(workload(third))])
    wait_for("the dump", lambda: name_of(workload(third)) not in node.lab.ctl("dump").stdout)


def test_i03_policies(served):
    node, istiod = served, served.istiod
    _, _, rbac = messages()
    deny = rbac.Authorization(name="deny", namespace="default", scope=rbac.NAMESPACE, action=rbac.DENY)
    match = deny.rules.add().clauses.add().matches.add()
    match.principals.add(exact=node.client.spiffe.removeprefix("spiffe://"))
    assert reachable(node)
    answer = istiod.push(POLICY, [resource(deny)])
    assert not answer["has_error"]
    wait_for("the denial", lambda: not reachable(node))
    istiod.push(POLICY, removed=["default/deny"])
    wait_for("access again", lambda: reachable(node))


def bad_resources(node):
    """Resources that are refused, with the reason of each (reference control.md 4.5)."""
    _, address, rbac = messages()
    pod = node.server

    def broken(name, **fields):
        return workload(pod, uid=name, addresses=[], **fields)

    def svc(name, change):
        msg = service(name)
        change(msg.service)
        return msg

    def open_enum(msg, field, number):
        """The message with an enum number that its .proto file may not have."""
        setattr(msg, field, number)

    rows = [
        (workload(pod, uid="ip5", addresses=[b"12345"]), "failed to parse address, had 5 bytes"),
        (broken("mtls", tunnel_protocol=address.LEGACY_ISTIO_MTLS),
         "unknown enum: unsupported tunnel protocol: legacy istio mtls"),
        (broken("tunnel9", tunnel_protocol=9), "decode error: unknown enumeration value 9"),
        (broken("status7", status=7), "decode error: unknown enumeration value 7"),
        (broken("mode5", network_mode=5), "decode error: unknown enumeration value 5"),
        (broken("slash", services={"noslash": {80: 80}}), "failed to parse namespaced hostname: noslash"),
        (broken("gateway", waypoint=address.GatewayAddress(hbone_mtls_port=15008)),
         "nonempty gateway address is missing address"),
        (broken("app", application_tunnel=address.ApplicationTunnel(protocol=3)),
         "decode error: unknown enumeration value 3"),
        (svc("cidr", lambda s: s.addresses.add(address=packed("10.0.0.0"), length=33)),
         "invalid cidr: invalid IP prefix length"),
        (svc("scope0", lambda s: s.load_balancing.routing_preference.append(0)), "unknown enum: invalid target"),
        (svc("families", lambda s: open_enum(s, "ip_families", 8)), "decode error: unknown enumeration value 8"),
        (svc("weighted", lambda s: s.weighted_waypoints.add(weight=1)), "nonempty gateway address is missing address"),
    ]
    found = [(resource(msg), reason) for msg, reason in rows]
    found.append((resource(address.Address(), name="empty"), "unknown address type"))
    return found


def test_i04_bad_resources_affect_only_themselves(node):
    istiod = node.control()
    node.start()
    istiod.first(ADDRESS)
    bad = bad_resources(node)
    malformed = [(resource(b"\x0a\xff\xff\xff\xff\x0f", name="cut"), "decode: failed to decode Protobuf message: "),
                 (resource(None, name="nothing"), "XDS payload without resource")]
    good = [resource(m, "77") for m in node.records()]
    mixed = [good[0], malformed[0][0]] + [res for res, _ in bad] + [malformed[1][0], good[1]]
    answer = istiod.push(ADDRESS, mixed)
    assert answer["has_error"] and answer["code"] == 0
    parts = answer["error"].split("; ")
    assert parts[:len(bad)] == [f"{res.name}: {reason}" for res, reason in bad]
    for part, (res, reason) in zip(parts[len(bad):], malformed, strict=True):
        assert part.startswith(f"{res.name}: {reason}")
    # X6: a response with a refusal does not open the gate.
    assert not istiod.push(POLICY)["has_error"]
    time.sleep(0.3)
    assert not node.lab.ready()
    assert not istiod.push(ADDRESS)["has_error"]
    node.enrol()
    assert reachable(node)
    # X4: what was accepted stays when a later version is refused; the old version is what is echoed.
    worse = workload(node.server, addresses=[b"1"])
    assert istiod.push(ADDRESS, [resource(worse, "78")])["has_error"]
    assert reachable(node)
    since = istiod.mark()
    istiod.end(14, "transport is closing")
    first = istiod.first(ADDRESS, since)
    assert first["versions"] == {res.name: "77" for res in good}


def test_i05_narrow_numbers(served):
    """S5: ports are cut to 16 bits, the last of two equal ones counts; lengths to 8 bits."""
    node, istiod = served, served.istiod
    vip = f"10.{node.lab.net}.9.8"
    msg = service("narrow", vips=[vip])
    msg.service.ports.add(service_port=80, target_port=1)
    msg.service.ports.add(service_port=65536 + 80, target_port=65536 + 8080)
    msg.service.addresses[0].length = 256 + 32
    host = name_of(msg)
    answer = istiod.push(ADDRESS, [resource(msg), resource(workload(node.server, services={host: {}}))])
    assert not answer["has_error"]
    assert node.client.curl(f"http://{vip}:80/").stdout.startswith("hello from server")


def test_i06_reconnect_reports_what_is_held(served):
    """X3: every name with its version; removals of the time between are worked off; the state stays meanwhile."""
    node, istiod = served, served.istiod
    _, _, rbac = messages()
    vip = f"10.{node.lab.net}.9.7"
    gone = service("gone", vips=[vip], ports={80: 8080})
    policy = rbac.Authorization(name="p", namespace="elsewhere", scope=rbac.NAMESPACE)
    istiod.push(ADDRESS, [resource(gone, "not a number")])
    istiod.push(POLICY, [resource(policy)])
    since = istiod.mark()
    istiod.stop()
    assert reachable(node), "the state stays while nobody is there"
    istiod.start()
    address, policies = istiod.first(ADDRESS, since), istiod.first(POLICY, since)
    names = [name_of(m) for m in node.records()]
    assert address["versions"] == {names[0]: "1", names[1]: "2", name_of(gone): "not a number"}
    assert policies["versions"] == {"elsewhere/p": ""}
    istiod.push(ADDRESS, removed=[name_of(gone)])
    wait_for("the removal", lambda: "gone.default" not in node.lab.ctl("dump").stdout)
    assert reachable(node)


def test_i07_ends_of_streams_and_their_pauses(node):
    """X5: no end of a stream makes the client spin; each has its line."""
    istiod = node.control()
    node.start(RUST_LOG="info,ztunnel::xds=debug")
    istiod.first(ADDRESS)
    for code, message, line in [(0, "", "XDS client complete"), (13, "broken", "XDS client error: Internal: broken"),
                                (2, "odd", "XDS client terminated: Unknown: odd"),
                                (14, "transport is closing", "XDS client terminated: Unavailable"),
                                (14, "not ready", "XDS client error: Unavailable: not ready")]:
        since = istiod.mark()
        istiod.push(ADDRESS)
        istiod.end(code, message)
        istiod.first(ADDRESS, since)
        node.lab.wait_log(line)
    # A server that hangs up on everybody: delays double, so the streams of five seconds are few.
    istiod.command(do="always", code=0, message="")
    since = istiod.mark()
    istiod.end()
    time.sleep(5)
    streams = istiod.count(lambda e: e["event"] == "stream", since)
    assert 3 <= streams <= 14, streams
    # Authentication refused before any header: a connection error, whatever its code.
    istiod.command(do="refuse", **{"with": ["UNAUTHENTICATED", "authentication failure"]})
    node.lab.wait_log("XDS client connection error", "authentication failure", timeout=30)


def fat(i):
    """A workload whose name makes reports large."""
    _, address, _ = messages()
    return address.Address(workload=address.Workload(uid=f"{i}-" + "x" * 900, name=f"w{i}", namespace="fat",
                                                     addresses=[packed(f"10.3.{i // 250}.{i % 250}")]))


def load(istiod, addresses, **kw):
    """A state by a file, since it is too long for a line; waits for its ACK."""
    istiod.nonce += 1
    since = istiod.mark()
    path = istiod.lab.tmp / f"response-{istiod.nonce}"
    path.write_bytes(response(ADDRESS, addresses, nonce=f"nonce-{istiod.nonce}", **kw).SerializeToString())
    istiod.command(do="file", path=str(path))
    answer = istiod.answer(f"nonce-{istiod.nonce}", since, timeout=60)
    assert not answer["has_error"], answer
    return answer


def test_i08_report_too_large_is_left_out_and_the_state_swept(served):
    node, istiod = served, served.istiod
    load(istiod, [resource(fat(i), f"{i + 1:x}") for i in range(4400)])
    wait_for("the workloads", lambda: node.lab.log_lines("received response", "size=4400"))
    since = istiod.mark()
    istiod.stop()
    istiod.start()
    first = istiod.first(ADDRESS, since, timeout=60)
    assert first["version_count"] == 0 and first["size"] < 4096
    assert not istiod.count(lambda e: e["event"] == "request" and e["size"] > 4 << 20)
    # The whole state, some of it gone; nothing is lost before it is in.
    assert reachable(node)
    load(istiod, [resource(m, "77") for m in node.records()] + [resource(fat(i), "1") for i in range(3)])
    node.lab.wait_log("names that it does not hold are removed")
    assert reachable(node)
    since = istiod.mark()
    istiod.end(14, "transport is closing")
    assert istiod.first(ADDRESS, since)["version_count"] == 5


def test_i09_server_with_a_small_limit(node):
    """RESOURCE_EXHAUSTED for the report: the next one comes without, instead of the same for ever."""
    istiod = node.control(max_receive=3000)
    node.start()
    istiod.serve(node.records())
    load(istiod, [resource(fat(i), "1") for i in range(8)])
    since = istiod.mark()
    istiod.end(14, "transport is closing")
    first = istiod.wait("a request that fits", lambda e: e["event"] == "request" and e["type"] == ADDRESS
                        and e["node"], since)
    assert first["version_count"] == 0
    assert istiod.count(lambda e: e["event"] == "stream", since) >= 2
    node.lab.wait_log("ResourceExhausted")
    istiod.push(ADDRESS, [resource(m, "5") for m in node.records()])
    node.lab.wait_log("names that it does not hold are removed")
    node.enrol()
    assert reachable(node)


RUDE = r'''
import json, socket, ssl, struct, sys, time
import h2.config, h2.connection, h2.events
mode, crt, key = sys.argv[1:4]
ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
ctx.load_cert_chain(crt, key)
ctx.set_alpn_protocols(["h2"])
lsock = socket.socket(); lsock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
lsock.bind(("127.0.0.1", 15012)); lsock.listen(16)
print("listening", flush=True)
while True:
    raw, _ = lsock.accept()
    print("accepted", time.monotonic(), flush=True)
    try:
        raw.settimeout(5)
        if mode == "plain":
            raw.recv(100); raw.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"); raw.close(); continue
        s = ctx.wrap_socket(raw, server_side=True)
        if mode == "http1":
            s.recv(100); s.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"); s.close(); continue
        conn = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        conn.initiate_connection(); s.sendall(conn.data_to_send())
        stream = None
        while stream is None:
            data = s.recv(65536)
            if not data: raise OSError("gone")
            for event in conn.receive_data(data):
                if isinstance(event, h2.events.RequestReceived): stream = event.stream_id
            s.sendall(conn.data_to_send())
        if mode == "status":
            conn.send_headers(stream, [(":status", "503")], end_stream=True)
        else:
            conn.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])
        body = {"cut": struct.pack(">BI", 0, 500) + b"\x12\xff\x01" + b"x" * 50,
                "huge": struct.pack(">BI", 0, 201 << 20) + b"x" * 50,
                "squeezed": struct.pack(">BI", 1, 5) + b"xxxxx",
                "garbage": struct.pack(">BI", 0, 5) + b"\xff\xff\xff\xff\xff"}.get(mode)
        if body: conn.send_data(stream, body)
        s.sendall(conn.data_to_send())
        if mode not in ("cut",):
            try:
                while s.recv(65536): pass
            except OSError: pass
        s.close()
    except OSError as e:
        print("error", e, flush=True)
'''


@pytest.mark.parametrize("mode", ["plain", "http1", "status", "cut", "huge", "squeezed", "garbage"])
def test_i10_rude_servers(served, mode):
    """Whatever the server does, the state stays, attempts are few, and a good server heals everything."""
    node, istiod = served, served.istiod
    broker = node.broker()
    istiod.stop()
    rude = subprocess.Popen(["ip", "netns", "exec", node.lab.node, sys.executable, "-c", RUDE, mode,
                             str(node.crt), str(node.key)], stdout=subprocess.PIPE, text=True)
    try:
        assert rude.stdout.readline().startswith("listening")
        for _ in range(2):
            line = rude.stdout.readline()
            while line and not line.startswith("accepted"):
                line = rude.stdout.readline()
            assert line, "no second attempt"
        assert reachable(node)
    finally:
        rude.kill()
        accepted = 2 + sum(line.startswith("accepted") for line in rude.stdout)
        rude.wait()
        rude.stdout.close()
    assert accepted < 20
    since = istiod.mark()
    istiod.start()
    first = istiod.first(ADDRESS, since, timeout=40)
    assert first["version_count"] == 2
    assert not istiod.push(ADDRESS)["has_error"]
    assert node.broker() == broker, "the broker lived on"


def test_i11_token_and_roots_go_and_come(node):
    """X12, X13: read anew for each attempt; nothing spins while they are bad."""
    istiod = node.control()
    node.start()
    istiod.serve(node.records())
    good = node.root.read_bytes()

    def broken_then_mended(spoil, mend):
        spoil()
        since = istiod.mark()
        istiod.end(14, "transport is closing")
        count = len(node.lab.log_lines("XDS client"))
        wait_for("a failed attempt", lambda: len(node.lab.log_lines("XDS client")) > count)
        time.sleep(1)
        assert len(node.lab.log_lines("XDS client")) - count < 12
        assert not istiod.count(lambda e: e["event"] == "stream", since)
        mend()
        istiod.first(ADDRESS, since, timeout=40)

    broken_then_mended(node.token.unlink, lambda: node.token.write_text("second"))
    assert [e for e in istiod.events if e["event"] == "stream"][-1]["headers"]["authorization"] == "Bearer second"
    broken_then_mended(lambda: node.token.write_text(""), lambda: node.token.write_text(TOKEN))
    broken_then_mended(lambda: node.root.write_text("garbage"), lambda: node.root.write_bytes(good))
    broken_then_mended(node.root.unlink, lambda: node.root.write_bytes(good))


def demand(istiod, key, since=0):
    return istiod.wait(f"demand of {key}", lambda e: e["event"] == "request" and key in e["subscribe"], since)


def test_i12_on_demand(node):
    """X7."""
    istiod = node.control()
    node.start(XDS_ON_DEMAND="true", ISTIO_META_DNS_CAPTURE="false")
    first = istiod.first(ADDRESS)
    assert first["subscribe"] == ["*"] and first["unsubscribe"] == ["*"] and first["version_count"] == 0
    assert istiod.first(POLICY)["subscribe"] == []
    istiod.push(POLICY)
    client, server = node.client, node.server
    node.lab.add(client, server)
    node.lab.wait_ready()
    serve(server)
    istiod.push(ADDRESS, [resource(workload(client), "c1")])
    key = f"/{server.ip}"
    # Unanswered, it is not plaintext: the connection waits, and fails in the end.
    assert node.get(8).returncode != 0
    asked = demand(istiod, key)
    assert asked["subscribe"] == [key] and not asked["node"] and not asked["nonce"]
    since = istiod.mark()
    fetch = client.popen("curl", "-sS", "--max-time", "10", f"http://{server.ip}:8080/")
    time.sleep(0.3)
    assert not istiod.count(lambda e: e["event"] == "request" and key in e["subscribe"], since), "asked once only"
    istiod.push(ADDRESS, [resource(workload(server), "s1", aliases=[key])])
    assert fetch.communicate(timeout=20)[0].startswith("hello from server")
    node.lab.wait_log("connection complete", 'direction="inbound"', "src.identity")
    # A removal is an answer as well: then it is an address outside.
    outside = node.lab.pod("outside", mesh=False)
    serve(outside)
    fetch = client.popen("curl", "-sS", "--max-time", "10", f"http://{outside.ip}:8080/")
    demand(istiod, f"/{outside.ip}")
    istiod.push(ADDRESS, removed=[f"/{outside.ip}"])
    assert fetch.communicate(timeout=20)[0].startswith("hello from outside")
    # After a reconnect the server hears of everything that it is to look after.
    since = istiod.mark()
    istiod.end(14, "transport is closing")
    again = istiod.first(ADDRESS, since)
    assert again["subscribe"] == ["*"] and again["unsubscribe"] == ["*"]
    assert again["versions"] == {name_of(workload(client)): "c1", name_of(workload(server)): "s1", key: "",
                                 f"/{outside.ip}": ""}
    istiod.push(ADDRESS)
    assert reachable(node)


def test_i13_broker_killed(served):
    """Silos keep what they hold, nothing falls back to plaintext, the new broker learns the mesh anew."""
    node, istiod = served, served.istiod
    assert reachable(node)
    broker, silos = node.broker(), node.lab.silo_pids()
    since = istiod.mark()
    os.kill(broker, signal.SIGKILL)
    wait_for("a new broker", lambda: node.broker() not in (None, broker))
    first = istiod.first(ADDRESS, since)
    assert first["version_count"] == 0
    # Its mesh is not complete: what the silos know serves, and nothing else is said.
    assert reachable(node)
    plain = node.lab.log_lines("connection complete", 'direction="inbound"')
    assert all("src.identity" in line for line in plain)
    third = node.lab.pod("third")
    istiod.push(ADDRESS, [resource(m, "9") for m in [*node.records(), workload(third)]])
    istiod.push(POLICY)
    node.lab.wait_ready()
    assert node.lab.silo_pids() == silos and reachable(node)


def test_i14_file_and_control_plane_together(node):
    """Both sources in one store; a removal by the control plane does not touch the file's records."""
    istiod = node.control()
    node.lab.write_mesh()
    node.start(LOCAL_XDS_PATH=node.lab.mesh_path)
    istiod.first(ADDRESS)
    assert not node.lab.ready()
    third = node.lab.pod("third")
    istiod.serve([workload(third)])
    node.enrol()
    node.lab.add(third)
    serve(third)
    assert reachable(node)
    assert node.client.curl(f"http://{third.ip}:8080/").stdout.startswith("hello from third")


def test_i15_unknown_type_and_odd_nonces(served):
    node, istiod = served, served.istiod
    unheard = "type.googleapis.com/istio.workload.Unheard"
    answer = istiod.push(unheard, [resource(b"abc", name="x", kind=unheard)], removed=["y"])
    assert answer["type"] == unheard and not answer["has_error"]
    node.lab.wait_log("unknown type")
    third = node.lab.pod("third")
    for _ in range(2):
        assert not istiod.push(ADDRESS, [resource(workload(third), "1")], nonce="the same")["has_error"]
    assert not istiod.push(ADDRESS, nonce="")["has_error"]
    assert not istiod.push(ADDRESS, nonce="n" * 3000)["has_error"]
    assert reachable(node)


def test_i16_server_names(node):
    """X11: the alternative name is accepted, a wrong root is not."""
    istiod = node.control()
    node.start(XDS_ADDRESS="https://127.0.0.1:15012", ALT_XDS_HOSTNAME="istiod.test")
    istiod.serve(node.records())
    foreign = Ca.foreign().issue_server(node.lab.tmp, ["localhost"], "foreign")
    since = istiod.mark()
    good = node.root.read_bytes()
    node.root.write_bytes(foreign[2].read_bytes())
    istiod.end(14, "transport is closing")
    node.lab.wait_log("XDS client connection error")
    assert not istiod.count(lambda e: e["event"] == "stream", since)
    node.root.write_bytes(good)
    istiod.first(ADDRESS, since, timeout=40)
