# SPDX-License-Identifier: GPL-2.0-or-later
"""Side by side with a real ztunnel, whose path is in CULVERT_TEST_PEER: what each sends, and what they say to each other.

Without that variable everything here is skipped. The comparisons run one script
against both and want the same trace; what differs on purpose is named where the
traces are compared, and in ARCHITECTURE.md.
"""
import os
import signal
import subprocess

import pytest

from culvert_e2e.ca_server import CaServer
from culvert_e2e.istiod import ADDRESS, POLICY, Istiod, messages, name_of, resource, service, workload
from culvert_e2e.lab import Lab, access_fields, exact, exe, run, wait_for
from culvert_e2e.pki import Ca
from test_a_basic import serve
from test_i_xds import bad_resources
from test_k_ready import get as readiness

PEER = os.environ.get("CULVERT_TEST_PEER")
pytestmark = pytest.mark.skipif(not PEER, reason="CULVERT_TEST_PEER names no ztunnel")
KINDS = ("ztunnel", "culvert")


class Subject:
    """A node of its own, served by one of the two; control plane and CA are those of the tests."""

    def __init__(self, kind, tmp):
        tmp.mkdir(parents=True)
        self.kind, self.lab = kind, Lab(tmp)
        self.istiod, self.cas, self.proc = None, [], None
        self.client, self.server = self.lab.pod("client"), self.lab.pod("server")
        self.crt, self.key, self.root = Ca.foreign().issue_server(tmp, ["localhost", "istiod.test"], "istiod")
        self.token = tmp / "token"
        self.token.write_text("a-token")

    def control(self, **opts):
        self.istiod = Istiod(self.lab, self.crt, self.key, **opts)
        return self.istiod

    def authority(self):
        ca = CaServer(self.lab)
        self.cas.append(ca)
        return ca

    def env(self, **extra):
        """The settings of both; None takes one away."""
        env = {"XDS_ADDRESS": "https://localhost:15012", "XDS_ROOT_CA": self.root, "AUTH_TOKEN": self.token,
               "INSTANCE_IP": "127.0.0.1", "POD_NAME": "ztunnel-x", "POD_NAMESPACE": "istio-system",
               "LOCAL_XDS_PATH": None, **extra}
        return {k: str(v) for k, v in self.lab.env(**env).items() if v != "None"}

    def launch(self, **env):
        """Starts the process; its log is at self.log()."""
        log = self.lab.tmp / "subject.log"
        path = PEER
        settings = self.env(**env)
        if self.kind == "culvert":
            path, settings["CULVERT_LIBEXEC_DIR"] = exe("culvertd"), str(self.lab.libexec())
        with open(log, "w") as out:
            self.proc = subprocess.Popen(["ip", "netns", "exec", self.lab.node, str(path), "proxy", "ztunnel"],
                                         env=settings, cwd=self.lab.tmp, stdout=out, stderr=subprocess.STDOUT)
        self.lab.daemons.append(self.proc)
        self.lab.logs[self.proc.pid] = log
        return self.proc

    def start(self, **env):
        self.lab.start_agent()
        return self.launch(**env)

    def close(self):
        if self.istiod:
            self.istiod.stop()
        for ca in self.cas:
            ca.stop()
        if self.kind == "ztunnel" and self.proc:
            self.proc.kill()  # its draining is of no interest
        self.lab.close()


def both(tmp_path, script):
    """The traces of one script for both: {kind: trace}."""
    traces = {}
    for kind in KINDS:
        subject = Subject(kind, tmp_path / kind)
        try:
            traces[kind] = script(subject)
        finally:
            subject.close()
    return traces


def same(tmp_path, script):
    """Both traces are equal; returns that trace."""
    traces = both(tmp_path, script)
    assert traces["culvert"] == traces["ztunnel"]
    return traces["culvert"]


def request(event):
    """What is compared of a request."""
    return {k: v for k, v in event.items() if k not in ("time", "stream", "event", "size")}


# --- what each sends -------------------------------------------------------------

def test_r10_first_requests(tmp_path):
    def script(subject):
        istiod = subject.control()
        subject.start(**{
            "XDS_HEADER_Foo_Bar": "baz", "XDS_HEADER_te": "x", "XDS_HEADER_clusterid": "mine", "CLUSTER_ID": "cid",
            "NETWORK": "net", "ISTIO_META_NETWORK": "n1", "ISTIO_META_X": "", "ISTIO_META_NUM": "text",
            "ISTIO_META_ISTIO_META_Y": "y", "ISTIO_METAJSON_LABELS": '{"a": [1, true, null, "\\u00e9", 1.5e300, {}]}',
            "ISTIO_METAJSON_BAD": "{", "ISTIO_METAJSON_NUM": "3",
            "PROXY_CONFIG": '{"proxyMetadata": {"ISTIO_META_PC": 1, "NO_PREFIX": true, "X": "from config"}}'})
        stream = istiod.wait("stream", lambda e: e["event"] == "stream")
        istiod.first(ADDRESS), istiod.first(POLICY)
        istiod.push(ADDRESS), istiod.push(POLICY)
        return stream["headers"], [request(e) for e in istiod.events if e["event"] == "request"]

    headers, requests = same(tmp_path, script)
    assert headers["authorization"] == "Bearer a-token" and len(requests) == 4


def bad_policies():
    _, _, rbac = messages()
    scope, action = rbac.Authorization(name="scope", namespace="d"), rbac.Authorization(name="action", namespace="d")
    scope.scope, action.action = 9, 9
    odd = rbac.Authorization(name="odd", namespace="d")
    match = odd.rules.add().clauses.add().matches.add()
    match.source_ips.add(address=b"12345", length=3)
    match.source_ips.add(address=b"1234", length=33)
    match.principals.add()
    return [scope, action, odd]


# Malformed in ways that protobuf libraries put into different words; the words before those are upstream's.
MALFORMED = {"cut": b"\x0a\xff\xff\xff\xff\x0f", "utf8": b"\x0a\x03\x0a\x01\xff", "tag": b"\xff", "wire": b"\x0a\x02\x08\x01",
             "outer": b"\x08\x01", "short": b"\x0a\x05\x0a", "tag0": b"\0\0", "group": b"\x0b\x0c"}


def test_r11_refusals(tmp_path):
    def script(subject):
        istiod = subject.control()
        subject.start()
        istiod.first(ADDRESS), istiod.first(POLICY)
        bad = [res for res, _ in bad_resources(subject)]
        bad += [resource(b"", name="nothing in it"), resource(b"\x0a\0", name="empty workload")]
        answers = [istiod.push(ADDRESS, [res]) for res in bad] + [istiod.push(ADDRESS, bad)]
        answers += [istiod.push(ADDRESS, [resource(None, name="no payload")])]
        answers += [istiod.push(POLICY, [resource(msg)]) for msg in bad_policies()]
        answers += [istiod.push("type.googleapis.com/unheard", [resource(b"abc", name="x", kind="u")], removed=["y"])]
        said = []
        for name, raw in MALFORMED.items():
            answer = istiod.push(ADDRESS, [resource(raw, name=name)])
            said.append((":".join(answer["error"].split(":")[:3]), answer["code"], answer["nonce"]))
        return [request(a) for a in answers], said

    answers, said = same(tmp_path, script)
    assert sum(a["has_error"] for a in answers) == len(answers) - 3
    assert all(text.endswith("failed to decode Protobuf message") for text, _, _ in said)


def test_r12_ends_of_streams(tmp_path):
    """What is reported after each kind of end: held names with the versions that were accepted."""
    def script(subject):
        istiod = subject.control()
        subject.start()
        istiod.first(ADDRESS), istiod.first(POLICY)
        _, _, rbac = messages()
        one, svc = workload(subject.client, addresses=[]), service("svc")
        other = workload(subject.server, uid="other", addresses=[])
        trace = []

        def end(code, message=""):
            since = istiod.mark()
            istiod.end(code, message)
            trace.append([request(istiod.first(t, since, timeout=40)) for t in (ADDRESS, POLICY)])

        istiod.push(ADDRESS, [resource(one, "v1"), resource(svc, "w1"), resource(other, "", name="another name")])
        istiod.push(POLICY, [resource(rbac.Authorization(name="p", namespace="d"), "p1")])
        end(14, "transport is closing")
        istiod.push(ADDRESS, [resource(one, "v2"), resource(workload(subject.server, uid="other", addresses=[b"1"]), "bad")],
                    removed=["another name"])
        end(0)
        istiod.push(ADDRESS, removed=["nobody", name_of(svc)])
        end(13, "broken")
        end(13, "broken")
        end(2, "odd")
        istiod.push(ADDRESS, [resource(svc, "w9")])
        end(16, "authentication failure")
        return trace

    trace = same(tmp_path, script)
    assert trace[-1][0]["version_count"] == 2


def test_r13_on_demand(tmp_path):
    """The same questions; an address that is looked after already is not asked for again, where ztunnel asks each time."""
    def script(subject):
        istiod = subject.control()
        subject.start(XDS_ON_DEMAND="true", ISTIO_META_DNS_CAPTURE="false")
        first = [request(istiod.first(t)) for t in (ADDRESS, POLICY)]
        istiod.push(POLICY)
        client = subject.client
        subject.lab.add(client)
        istiod.push(ADDRESS, [resource(workload(client), "c1")])
        since = istiod.mark()
        for last in ("77", "78"):
            curl = client.popen("curl", "-sS", "--max-time", "20", f"http://10.254.0.{last}:8080/")
            istiod.wait("the demand", lambda e: e["event"] == "request" and e["subscribe"] == [f"/10.254.0.{last}"], since)
            istiod.push(ADDRESS, removed=[f"/10.254.0.{last}"])
            curl.kill()
        asked = [request(e) for e in istiod.events[since:] if e["event"] == "request" and e["subscribe"]]
        unique = [a for i, a in enumerate(asked) if a not in asked[:i]]
        return first, unique

    first, asked = same(tmp_path, script)
    assert first[0]["subscribe"] == first[0]["unsubscribe"] == ["*"] and len(asked) == 2


def test_r14_readiness_over_time(tmp_path):
    def script(subject):
        istiod, lab, trace = subject.control(), subject.lab, []

        def settle(what, want):
            """Waits for what is expected and notes it: bodies are compared between the two by being equal to it."""
            wait_for(f"{subject.kind}: {what}", lambda: readiness(lab) == want, timeout=30)
            trace.append((what, want))

        mesh, agent = "state manager", "workload proxy manager"
        pending = lambda *tasks: (f"not ready, pending: {', '.join(tasks)}\n", "500")  # noqa: E731
        subject.launch()
        istiod.first(ADDRESS), istiod.first(POLICY)
        settle("start", pending(agent, mesh) if readiness(lab)[0].find(agent) < readiness(lab)[0].find(mesh)
               else pending(mesh, agent))
        istiod.push(POLICY)
        assert istiod.push(ADDRESS, [resource(workload(subject.server, addresses=[b"1"]))])["has_error"]
        assert mesh in readiness(lab)[0]
        istiod.push(ADDRESS)
        settle("state", pending(agent))
        lab.start_agent()
        settle("agent", ("ready\n", "200"))
        istiod.stop()
        lab._kill([lab.agent])
        settle("no agent", pending(agent))
        lab.start_agent()
        settle("agent again", ("ready\n", "200"))
        return trace, [readiness(lab, "-X", "POST"), readiness(lab, path="/"), readiness(lab, path="/healthz/ready?x"),
                       readiness(lab, path="/healthz/ready/")]

    same(tmp_path, script)


def test_r15_requests_to_the_ca(tmp_path):
    """For an enrolled pod the same call. ztunnel also fetches ahead for pods that it only knows of: a silo has the key here."""
    def script(subject):
        istiod, ca = subject.control(), subject.authority()
        subject.start(**ca.env(SECRET_TTL="1h30m", CA_HEADER_X_Region="n", CA_HEADER_te="gzip", CA_HEADER_clusterid="m",
                               XDS_HEADER_other="no"))
        istiod.serve([workload(subject.client), workload(subject.server)])
        subject.lab.add(subject.client)
        call = wait_for("a call", lambda: ca.calls(subject.client.spiffe))[0]
        call["metadata"] = sorted(map(tuple, call["metadata"]))
        return {k: v for k, v in call.items() if k not in ("time", "at_once")}

    call = same(tmp_path, script)
    assert call["validity"] == 5400 and call["subject"] == "" and call["extensions"] == [["2.5.29.17", True]]


# Settings that both refuse, and what both exit with.
REFUSED = [
    {"XDS_ON_DEMAND": "true"}, {"PROXY_MODE": "x"}, {"PROXY_MODE": "dedicated", "PROXY_WORKLOAD_INFO": "a/b"},
    {"ENABLE_PROXY": "false", "ISTIO_META_DNS_CAPTURE": "false"}, {"ENABLE_PROXY": "yes"}, {"ENABLE_PROXY": ""},
    {"XDS_ADDRESS": "http://x y"}, {"XDS_ADDRESS": "::::"}, {"CA_ADDRESS": "", "FAKE_CA": "false"},
    {"CA_ADDRESS": "http://a b", "FAKE_CA": "false"},
    {"ALT_CA_HOSTNAME": "bad_host!", "FAKE_CA": "false", "CA_ADDRESS": "https://x"}, {"SECRET_TTL": "1.5s"}, {"SECRET_TTL": ""},
    {"TERMINATION_GRACE_PERIOD_SECONDS": "x"}, {"PACKET_MARK": "0x10"}, {"PACKET_MARK": "4294967296"},
    {"POOL_MAX_STREAMS_PER_CONNECTION": "65536"}, {"KEEPALIVE_TIME": "5x"}, {"ZTUNNEL_WORKER_THREADS": "0%"},
    {"ZTUNNEL_WORKER_THREADS": "101%"}, {"ZTUNNEL_CPU_LIMIT": "x"}, {"ZTUNNEL_RESOURCE_CPU_LIMIT": "0"},
    {"LOCAL_XDS_PATH": "/nonexistent"}, {"LOCAL_XDS": "{"}, {"LOCAL_XDS": "bogus: 1"},
    {"LOCAL_XDS": "", "LOCAL_XDS_PATH": "/dev/null"}, {"PROXY_CONFIG": "{}"}, {"PROXY_CONFIG": "["},
    {"XDS_HEADER_a-bin": "1"}, {"CA_HEADER_b d": "1"}, {"XDS_HEADER_a": "\x01"}, {"RUST_LOG": "a=b=c"},
    {"ISTIO_META_DNS_PROXY_ADDR": "nope"}, {"ISTIO_META_DNS_PROXY_ADDR": "localhost:99999"}, {"IPV6_ENABLED": "1"},
    {"ENABLE_ORIG_SRC": "maybe"}, {"HTTP2_FRAME_SIZE": "-1"}, {"UNSTABLE_ENABLE_SOCKS5": "x"},
    {"CONNECTION_TERMINATION_DEADLINE": "-1s"},
]


def test_r16_exit_codes(tmp_path):
    """Only ours refuses a bad port or scheme of XDS_ADDRESS and a bad ALT_XDS_HOSTNAME, over which upstream spins."""
    def script(subject):
        return [(row, subject.launch(**row).wait(timeout=30)) for row in REFUSED]

    assert {code for _, code in same(tmp_path, script)} == {1, 101}


# --- what they say to each other ---------------------------------------------------

# Takes bytes up to the end, answers with their number and sum, ends.
SUMS = """
import hashlib, socket, threading
s = socket.create_server(("::", 9000), family=socket.AF_INET6, dualstack_ipv6=True)
def one(c):
    total, n = hashlib.sha256(), 0
    while data := c.recv(65536):
        total.update(data); n += len(data)
    c.sendall(f"{n} {total.hexdigest()}".encode()); c.close()
while True:
    threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()
"""

UPLOAD = """
import hashlib, random, socket, sys
random.seed(7)
data = random.randbytes(1 << 20) * 24
c = socket.create_connection((sys.argv[1], 9000))
c.sendall(data); c.shutdown(socket.SHUT_WR)
got = b""
while more := c.recv(65536): got += more
print(got.decode() == f"{len(data)} {hashlib.sha256(data).hexdigest()}")
"""


class Pair:
    """Two nodes on one bridge and one trust: ours, and beside it a ztunnel's with an agent of its own."""

    def __init__(self, lab, ca):
        self.lab, self.ca = lab, ca
        self.other = f"{lab.prefix}-two"
        pods = [lab.pod(name) for name in ("cc", "cs")] + [lab.pod(name, node="two") for name in ("zc", "zs")]
        self.cc, self.cs, self.zc, self.zs = pods
        self.vip = f"10.{lab.net}.9.9"
        lab.service("both", vips=[f"/{self.vip}"], ports={80: 8080}, pods=[self.cs, self.zs])
        clients = [[[{"principals": [exact(p.spiffe.removeprefix("spiffe://")) for p in (self.cc, self.zc)],
                      "destinationPorts": [8082]}]]]
        lab.mesh["policies"] = [
            {"name": "port", "namespace": "default", "scope": "Namespace", "action": "Deny", "dryRun": False,
             "rules": [[[{"destinationPorts": [8081]}]]]},
            {"name": "who", "namespace": "default", "scope": "Namespace", "action": "Deny", "dryRun": False,
             "rules": clients}]
        lab.write_mesh()
        lab.start_agent()
        (lab.tmp / "token").write_text("token")
        self.settings = ca.env(AUTH_TOKEN=lab.tmp / "token")
        lab.start_daemon(ready=False, **self.settings)
        lab.add(self.cc, self.cs)
        lab.wait_ready()
        self._second_node()
        for pod in pods:
            for port in (8080, 8081, 8082):
                serve(pod, port)
            pod.python(SUMS)
            pod.wait_port(9000)

    def _second_node(self):
        lab = self.lab
        run("ip", "netns", "add", self.other)
        lab.extra_netns.append(self.other)
        lab._in_node("ip", "link", "add", "vtwo", "type", "veth", "peer", "name", "eth0", "netns", self.other)
        lab._in_node("ip", "link", "set", "vtwo", "master", "br0", "up")
        for args in (("link", "set", "lo", "up"), ("link", "set", "eth0", "up"),
                     ("addr", "add", f"10.{lab.net}.0.2/16", "dev", "eth0")):
            run("ip", "netns", "exec", self.other, "ip", *args)
        zds, sock = lab.run_dir / "two.sock", lab.run_dir / "two-agent.sock"
        with open(lab.tmp / "agent-two.log", "w") as out:
            lab.daemons.append(subprocess.Popen(
                [str(exe("culvert-cni-agent")), "--zds-socket", str(zds), "--socket", str(sock)],
                stdout=out, stderr=subprocess.STDOUT, env=lab.env()))
        wait_for("the second agent", sock.exists)
        log = lab.tmp / "ztunnel.log"
        with open(log, "w") as out:
            self.ztunnel = subprocess.Popen(
                ["ip", "netns", "exec", self.other, PEER, "proxy", "ztunnel"], cwd=lab.tmp, stdout=out,
                stderr=subprocess.STDOUT, env=lab.env(**self.settings, INPOD_UDS=zds, NODE_NAME="two"))
        lab.daemons.insert(0, self.ztunnel)
        lab.logs[self.ztunnel.pid] = log
        for pod in (self.zc, self.zs):
            run(exe("culvert-cni-agent"), "--socket", sock, "add", "--uid", pod.uid, "--name", pod.name, "--namespace",
                pod.ns, "--service-account", pod.sa, "--netns", pod.netns_path, "--ip", pod.ip, "--ip", pod.ip6)

    def daemon_of(self, pod):
        return self.ztunnel if pod.name.startswith("z") else self.lab.daemons[1]

    def access(self, pod, direction):
        lines = self.lab.wait_log("connection complete", f'direction="{direction}"', proc=self.daemon_of(pod))
        return access_fields(lines[-1])


@pytest.fixture
def pair(lab):
    with CaServer(lab) as ca:
        made = Pair(lab, ca)
        yield made


def ways(pair):
    return [(pair.cc, pair.zs), (pair.zc, pair.cs)]


def test_r20_both_directions(pair):
    """Mutual TLS, both families, both access logs; then policies by port and by principal, and a service of both."""
    for client, server in ways(pair):
        assert client.curl(f"http://{server.ip}:8080/").stdout == f"hello from {server.name} to ::ffff:{client.ip}"
        assert client.curl(f"http://[{server.ip6}]:8080/").stdout == f"hello from {server.name} to {client.ip6}"
        for pod, direction in ((client, "outbound"), (server, "inbound")):
            fields = pair.access(pod, direction)
            assert (fields["src.identity"], fields["dst.identity"]) == (client.spiffe, server.spiffe), (pod, fields)
            assert fields["src.workload"] == client.name and fields["dst.workload"] == server.name
        for port in (8081, 8082):
            assert client.curl(f"http://{server.ip}:{port}/", check=False, timeout=5).returncode != 0
        seen = set()
        wait_for("both endpoints", lambda: seen.add(client.curl(f"http://{pair.vip}/").stdout.split()[2])
                 or seen == {"cs", "zs"})


def test_r21_bulk_and_half_close(pair):
    for client, server in ways(pair):
        for _ in range(2):
            proc = client.python(UPLOAD, server.ip)
            assert proc.communicate(timeout=60)[0].strip() == "True"


def test_r22_either_side_starts_anew(pair):
    """Pooled tunnels to a silo, or a ztunnel, that was killed are replaced without help."""
    for client, server in ways(pair):
        client.curl(f"http://{server.ip}:8080/")
    os.kill(pair.lab.silo_of(pair.cs), signal.SIGKILL)
    wait_for("the way in", lambda: pair.zc.curl(f"http://{pair.cs.ip}:8080/", check=False, timeout=3).returncode == 0)
    wait_for("the way out", lambda: pair.cc.curl(f"http://{pair.zs.ip}:8080/", check=False, timeout=3).returncode == 0)
