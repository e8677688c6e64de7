# SPDX-License-Identifier: GPL-2.0-or-later
"""The DNS proxy between dig and NSD: services by every name they have, everything else forwarded as it is."""
import os
import random
import shutil
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

from culvert_e2e.lab import Lab, run, wait_for

ZONE = """$ORIGIN example.test.
$TTL 60
@ IN SOA ns hostmaster 1 3600 600 86400 30
@ IN NS ns
ns A 192.0.2.53
www A 192.0.2.1
www A 192.0.2.2
www AAAA 2001:db8::1
alias CNAME www
txt TXT "one" "two words" "\\000\\255"
srv SRV 1 2 8080 www
mx MX 10 www
caa CAA 0 issue "ca.example.test"
https HTTPS 1 . alpn="h2,h3"
odd TYPE65400 \\# 4 DEADBEEF
my\\032printer PTR www
"""
BIG = [f"198.51.{100 + i // 256}.{i % 256}" for i in range(256)]


def nsd():
    path = shutil.which("nsd", path=f"{Path(__file__).parents[2] / '.deps/bin'}:{os.environ['PATH']}:/usr/sbin")
    if not path:
        pytest.skip("nsd is not here: scripts/setup brings it")
    return path


class Server:
    """NSD on one address of the node, in the foreground."""

    def __init__(self, lab, addr):
        self.lab, self.addr = lab, addr
        folder = lab.tmp / f"nsd-{addr}"
        folder.mkdir(exist_ok=True)
        (folder / "zone").write_text(ZONE + "".join(f"big A {ip}\n" for ip in BIG))
        conf = folder / "nsd.conf"
        conf.write_text(
            f'server:\n ip-address: {addr}\n zonesdir: "{folder}"\n database: ""\n pidfile: "{folder}/pid"\n username: ""\n'
            f' xfrdfile: "{folder}/xfrd"\n zonelistfile: "{folder}/list"\n xfrdir: "{folder}"\n chroot: ""\n'
            f' logfile: "{folder}/log"\n server-count: 1\nremote-control:\n control-enable: no\n'
            'zone:\n name: example.test\n zonefile: zone\n')
        self.proc = subprocess.Popen(["ip", "netns", "exec", lab.node, nsd(), "-d", "-c", conf],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for("nsd", lambda: "192.0.2.1" in run(
            "ip", "netns", "exec", lab.node, "dig", f"@{addr}", "+short", "+time=1", "+tries=1", "www.example.test",
            check=False).stdout)

    def stop(self):
        self.proc.terminate()
        self.proc.wait()


class DnsLab(Lab):
    """A lab whose daemon has a resolv.conf and a hosts file of its own, by `ip netns exec`."""

    def _node_up(self):
        super()._node_up()
        self.etc = Path("/etc/netns") / self.node
        self.etc.mkdir(parents=True)
        self.server_ip = f"10.{self.net}.0.1"
        self.resolv(f"nameserver {self.server_ip}\noptions timeout:1 attempts:2\n")
        (self.etc / "hosts").write_text("127.0.0.1 localhost\n192.0.2.77 from-hosts.test Second.Name.test # words\n")

    def resolv(self, text):
        # In place: what is mounted over /etc/resolv.conf is the file, not its name.
        (self.etc / "resolv.conf").write_text(text)

    def close(self):
        super().close()
        shutil.rmtree(self.etc, ignore_errors=True)
        if not any(self.etc.parent.iterdir()):
            self.etc.parent.rmdir()

    def dig(self, *args, direct=False, tries=1, wait=8):
        """dig in the client's pod: to the server's port 53, which is captured, or straight to the proxy."""
        where = ["@127.0.0.1", "-p", "15053"] if direct else [f"@{self.server_ip}"]
        return self.pods["client"].run("dig", *where, f"+tries={tries}", f"+time={wait}", *args, check=False).stdout

    def short(self, *args, **kw):
        return sorted(self.dig("+short", *args, **kw).split("\n"))[1:]


def header(text):
    """(rcode, flags, answers, authority, additional) of dig's output."""
    status = text.split("status: ")[1].split(",")[0]
    flags = text.split(";; flags: ")[1].split(";")[0].split()
    counts = [int(text.split(f"{word}: ")[1].split(",")[0].split("\n")[0]) for word in
              ("ANSWER", "AUTHORITY", "ADDITIONAL")]
    return status, flags, *counts


@pytest.fixture(scope="module")
def dns(tmp_path_factory):
    with DnsLab(tmp_path_factory.mktemp("dns")) as lab:
        for name, ns in (("client", "default"), ("one", "other"), ("two", "other")):
            lab.pod(name, ns=ns)
        net = lab.net
        lab.service("web", vips=[f"/10.{net}.9.1", f"/fd00:{net}::91", "elsewhere/10.255.255.1"], ports={80: 8080})
        lab.service("only4", vips=[f"/10.{net}.9.2"], ports={80: 8080}, ipFamilies="IPv4")
        lab.service("headless", ns="other", ports={80: 8080}, pods=[lab.pods["one"], lab.pods["two"]])
        lab.service("empty", ns="other", ports={80: 8080})
        lab.service("ext", ns="other", vips=[f"/10.{net}.9.3"], hostname="www.outside.test")
        lab.service("novip", ns="other", hostname="www.example.test")
        lab.service("wild", ns="other", vips=[f"/10.{net}.9.4"], hostname="*.wild.test")
        lab.service("web", ns="other", vips=[f"/10.{net}.9.5"], ports={80: 8080})
        server = Server(lab, lab.server_ip)
        try:
            lab.start_agent()
            lab.start_daemon(RUST_LOG="info,dns=debug")
            lab.add(lab.pods["client"], dns_capture="true")
            yield lab
        finally:
            server.stop()


@pytest.mark.parametrize("direct", (False, True), ids=("captured", "direct"))
@pytest.mark.parametrize("args", ((), ("+tcp",)), ids=("udp", "tcp"))
def test_l01_services(dns, direct, args):
    net = dns.net
    for name in ("web.default.svc.cluster.local", "WEB.default.svc.cluster.local", "web", "web.default", "web.default.svc"):
        assert dns.short(name, "A", *args, direct=direct) == [f"10.{net}.9.1"], name
    assert dns.short("web.default", "AAAA", *args, direct=direct) == [f"fd00:{net}::91"]
    assert dns.short("web.other", "A", *args, direct=direct) == [f"10.{net}.9.5"]
    text = dns.dig("web", "A", *args, direct=direct)
    status, flags, answers, authority, additional = header(text)
    assert (status, answers, authority, additional) == ("NOERROR", 1, 0, 1)
    assert set(flags) == {"qr", "aa", "rd", "ra"}
    assert "web.\t\t\t30\tIN\tA" in text


def test_l02_search_domains_and_wildcards(dns):
    net = dns.net
    text = dns.dig("www.outside.test.default.svc.cluster.local", "A")
    assert "CNAME\twww.outside.test." in text and f"10.{net}.9.3" in text
    assert dns.short("a.wild.test") == [f"10.{net}.9.4"]
    assert dns.short("a.b.wild.test") == [f"10.{net}.9.4"]
    assert "CNAME" not in dns.dig("a.wild.test.svc.cluster.local")
    assert dns.short("a.wild.test.svc.cluster.local") == [f"10.{net}.9.4"]
    assert header(dns.dig("wild.test"))[0] == "REFUSED"


def test_l03_families_and_headless(dns):
    assert dns.short("headless.other") == sorted([dns.pods["one"].ip, dns.pods["two"].ip])
    assert dns.short("headless.other", "AAAA") == sorted([dns.pods["one"].ip6, dns.pods["two"].ip6])
    for args in (("only4", "AAAA"), ("empty.other", "A")):
        status, flags, answers, authority, _ = header(dns.dig(*args))
        assert (status, answers, authority) == ("NOERROR", 0, 0) and "aa" in flags
    # An external service without addresses is not answered for; other types never.
    assert dns.short("www.example.test") == ["192.0.2.1", "192.0.2.2"]
    assert header(dns.dig("web.default.svc.cluster.local", "TXT"))[0] == "REFUSED"


@pytest.mark.parametrize("args", ((), ("+tcp",), ("+noedns",), ("+bufsize=512",)), ids=("udp", "tcp", "noedns", "512"))
def test_l04_forwarded_as_it_is(dns, args):
    direct = [f"@{dns.server_ip}", "+noall", "+answer", "+tries=1"]
    for name, rr in (("www", "A"), ("www", "AAAA"), ("alias", "A"), ("txt", "TXT"), ("srv", "SRV"), ("mx", "MX"),
                     ("caa", "CAA"), ("https", "HTTPS"), ("odd", "TYPE65400"), ("@", "SOA"), ("@", "NS"),
                     ("my\\032printer", "PTR")):
        name = "example.test" if name == "@" else f"{name}.example.test"
        told = run("ip", "netns", "exec", dns.node, "dig", *direct, name, rr).stdout
        heard = dns.dig(name, rr, "+noall", "+answer", *args)

        def plain(text):
            return sorted(tuple(f for i, f in enumerate(line.split()) if i != 1) for line in text.splitlines())
        assert plain(heard) == plain(told) and told, (name, rr)
    status, flags, answers, authority, _ = header(dns.dig("www.example.test", *args))
    assert (status, answers, authority) == ("NOERROR", 2, 0)
    assert "aa" not in flags and "ra" in flags


def test_l05_nothing_there(dns):
    for name, rr, want in (("nope.example.test", "A", "NXDOMAIN"), ("txt.example.test", "A", "NOERROR"),
                           ("www.elsewhere.org", "MX", "REFUSED"), ("x.invalid", "A", "NXDOMAIN")):
        status, _, answers, authority, additional = header(dns.dig(name, rr))
        assert (status, answers, authority, additional) == (want, 0, 0, 0)
    assert dns.short("localhost") == ["127.0.0.1"]
    assert dns.short("localhost", "AAAA") == ["::1"]
    assert dns.short("from-hosts.test") == ["192.0.2.77"]
    assert dns.short("second.name.test") == ["192.0.2.77"]


def test_l06_large_answers(dns):
    """All 256 over TCP; over UDP what fits, cleanly, with TC."""
    assert dns.short("big.example.test", "+tcp") == sorted(BIG)
    for size, least in ((512, 20), (1232, 70), (4096, 240)):
        text = dns.dig("big.example.test", "+ignore", f"+bufsize={size}")
        _, flags, answers, _, additional = header(text)
        assert "tc" in flags and least <= answers < 256 and additional == 0
        assert "Warning" not in text and "malformed" not in text
    # dig turns to TCP by itself.
    assert dns.short("big.example.test") == sorted(BIG)


def ask(name, rr=1, ident=7, flags=0x0100, count=1, cls=1, tail=b""):
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split(".") if part) + b"\0"
    return struct.pack(">HHHHHH", ident, flags, count, 0, 0, 0) + (labels + struct.pack(">HH", rr, cls)) * count + tail


RAW = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(float(sys.argv[2]))
s.sendto(bytes.fromhex(sys.argv[1]), ("127.0.0.1", 15053))
try:
    print(s.recv(65535).hex())
except socket.timeout:
    print("none")
"""


def raw(dns, data, timeout=10):
    proc = dns.pods["client"].run("python3", "-c", RAW, data.hex(), timeout)
    text = proc.stdout.strip()
    return None if text == "none" else bytes.fromhex(text)


def fd_count(dns):
    return len(os.listdir(f"/proc/{dns.silo_of(dns.pods['client'])}/fd"))


def test_l07_malformed(dns):
    for data in (b"", b"\0" * 11, ask("web", flags=0x8100)):
        assert raw(dns, data, timeout=0.5) is None
    broken = ask("web")[:-3]
    assert raw(dns, broken) == struct.pack(">HHHHHH", 7, 0x8101, 0, 0, 0, 0)
    assert raw(dns, ask("web", flags=0x2900)) == struct.pack(">H", 7) + b"\xa9\x04" + ask("web")[4:]
    assert raw(dns, ask("web", count=2))[2:6] == b"\x81\x02\0\x02"
    # Any class is answered as IN.
    assert raw(dns, ask("web", cls=3))[6:8] == b"\0\x01"
    rng = random.Random(1)
    silo = dns.silo_of(dns.pods["client"])
    before = fd_count(dns)
    spoiled = []
    for _ in range(30):
        data = bytearray(ask("web", tail=bytes(rng.randrange(256) for _ in range(rng.randrange(40)))))
        for _ in range(4):
            data[rng.randrange(len(data))] = rng.randrange(256)
        spoiled.append(data.hex())
    dns.pods["client"].run("python3", "-c", "import socket, sys\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                           "for text in sys.argv[1:]: s.sendto(bytes.fromhex(text), ('127.0.0.1', 15053))", *spoiled)
    assert dns.short("web") == [f"10.{dns.net}.9.1"]
    assert dns.silo_of(dns.pods["client"]) == silo
    wait_for("descriptors", lambda: fd_count(dns) <= before + 1, timeout=40)


TCP = """
import socket, struct, sys, time
def connect():
    return socket.create_connection(("127.0.0.1", 15053), timeout=30)
query = bytes.fromhex(sys.argv[1])
framed = struct.pack(">H", len(query)) + query
def read(s):
    data = b""
    while len(data) < 2 or len(data) < 2 + struct.unpack(">H", data[:2])[0]:
        more = s.recv(65535)
        if not more:
            return None
        data += more
    return data[2:]
# Several on one connection, in pieces and at once.
s = connect()
for byte in framed:
    s.sendall(bytes([byte]))
first = read(s)
s.sendall(framed * 3)
data = b""
while len(data) < 3 * (len(first) + 2):
    data += s.recv(65535)
print("served", data.count(first[12:]))
# Silence ends it.
print("closed", s.recv(1) == b"")
# Half a query, too.
s = connect()
s.sendall(framed[:5])
print("cut", s.recv(1) == b"")
# No more than 64 at a time.
socks = [connect() for _ in range(70)]
alive = 0
for s in socks:
    try:
        s.sendall(framed)
        alive += read(s) is not None
    except OSError:
        pass
print("alive", alive)
"""


def test_l08_tcp_connections(dns):
    before = fd_count(dns)
    out = dns.pods["client"].run("python3", "-c", TCP, ask("web").hex(), timeout=120).stdout.splitlines()
    assert out == ["served 3", "closed True", "cut True", "alive 64"]
    wait_for("descriptors", lambda: fd_count(dns) <= before + 1, timeout=30)


def test_l09_the_mesh_changes(dns):
    """What has been asked for is followed: a name that was not there, one that goes."""
    assert header(dns.dig("later.other"))[0] == "REFUSED"
    made = dns.service("later", ns="other", vips=[f"/10.{dns.net}.9.9"], ports={80: 80})
    dns.write_mesh()
    wait_for("the new service", lambda: dns.short("later.other") == [f"10.{dns.net}.9.9"])
    dns.mesh["services"].remove(made)
    dns.write_mesh()
    wait_for("its end", lambda: header(dns.dig("later.other"))[0] == "REFUSED")


def test_l10_access_log(dns):
    dns.dig("web")
    dns.dig("nope.example.test")
    line = dns.wait_log('domain="web."', 'result="success"')[0]
    for part in ('src.workload="client"', 'src.namespace="default"', 'query="A"', "endpoints=0"):
        assert part in line
    dns.wait_log('domain="nope.example.test."', "forwarding failed")


def test_l11_metrics(dns):
    def value(name):
        text = run("ip", "netns", "exec", dns.node, "curl", "-s", "http://127.0.0.1:15020/metrics").stdout
        rows = [line for line in text.splitlines() if line.startswith(name + "{") and 'request_query_type="a"' in line
                and 'request_protocol="udp"' in line and 'source_canonical_service="client"' in line]
        return sum(float(row.rsplit(" ", 1)[1]) for row in rows)
    before = [value(n) for n in ("istio_dns_requests_total", "istio_dns_upstream_requests_total",
                                 "istio_dns_upstream_failures_total")]
    dns.dig("web")
    dns.dig("www.example.test")
    dns.dig("nope.example.test")
    after = [value(n) for n in ("istio_dns_requests_total", "istio_dns_upstream_requests_total",
                                "istio_dns_upstream_failures_total")]
    assert [b - a for a, b in zip(before, after)] == [3, 2, 1]


def test_l12_silo_restarts(dns):
    """The next silo of the pod has listeners of its own."""
    pid = dns.silo_of(dns.pods["client"])
    os.kill(pid, 9)
    wait_for("another silo", lambda: dns.silo_of(dns.pods["client"]) not in (None, pid))
    wait_for("answers", lambda: dns.short("web", wait=1) == [f"10.{dns.net}.9.1"])


FLOOD = """
import socket, struct, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
for i in range(2000):
    name = b"".join(bytes([len(p)]) + p for p in (b"f%d" % i, b"example", b"test")) + bytes(1)
    s.sendto(struct.pack(">HHHHHH", i, 0x0100, 1, 0, 0, 0) + name + struct.pack(">HH", 1, 1), ("127.0.0.1", 15053))
    if i % 50 == 0:
        time.sleep(0.01)
print("sent", flush=True)
"""


def test_l13_flood(dns):
    """Queries that nobody answers cost a bounded number of sockets, and the mesh is answered again at once after."""
    silo = dns.silo_of(dns.pods["client"])
    before = fd_count(dns)
    dns.resolv(f"nameserver 10.{dns.net}.0.250\noptions timeout:1 attempts:1\n")
    try:
        # Until the change is seen NSD answers all of it, which is no flood.
        wait_for("the dead server", lambda: header(dns.dig(f"g{time.monotonic_ns()}.example.test", wait=15))[0] == "SERVFAIL",
                 timeout=40, interval=0.5)
        dns.pods["client"].run("python3", "-c", FLOOD)
        assert before < fd_count(dns) <= before + 512 + 8
        wait_for("the end of the flood", lambda: fd_count(dns) <= before + 8, timeout=40)
        assert dns.short("web") == [f"10.{dns.net}.9.1"]
    finally:
        dns.resolv(f"nameserver {dns.server_ip}\noptions timeout:1 attempts:2\n")
    assert dns.silo_of(dns.pods["client"]) == silo


def test_l14_warden_and_broker_restart(dns):
    """DNS goes on while other processes are replaced, and afterwards."""
    silo = dns.silo_of(dns.pods["client"])
    for role in ("warden", "broker"):
        pid = dns.pid_of(role)
        os.kill(pid, 9)
        assert dns.short("web") == [f"10.{dns.net}.9.1"]
        wait_for(f"another {role}", lambda: dns.pid_of(role) not in (None, pid))
        dns.wait_ready()
        wait_for("answers", lambda: dns.short("headless.other", wait=2) == sorted([dns.pods["one"].ip, dns.pods["two"].ip]))
        wait_for("forwarding", lambda: dns.short("www.example.test", wait=2) == ["192.0.2.1", "192.0.2.2"])
    assert dns.silo_of(dns.pods["client"]) == silo


def test_l15_dead_servers(dns):
    """A dead first server costs little, only dead ones SERVFAIL, a changed file is seen."""
    def again(cond, what):
        wait_for(what, cond, timeout=40, interval=0.5)
    dead = f"10.{dns.net}.0.250"
    dns.resolv(f"nameserver {dead}\nnameserver {dns.server_ip}\noptions timeout:1 attempts:2\n")
    names = (f"n{i}.example.test" for i in range(1000))
    try:
        again(lambda: header(dns.dig(next(names), wait=15))[0] == "NXDOMAIN", "the second server")
        dns.resolv(f"nameserver {dead}\noptions timeout:1 attempts:1\n")
        again(lambda: header(dns.dig(next(names), wait=15))[0] == "SERVFAIL", "failure")
        # What was learned before is still known, and the mesh does not need servers.
        assert dns.short("web") == [f"10.{dns.net}.9.1"]
    finally:
        dns.resolv(f"nameserver {dns.server_ip}\noptions timeout:1 attempts:2 edns0\n")
    again(lambda: header(dns.dig(next(names), wait=15))[0] == "NXDOMAIN", "the server")
    assert dns.short("big.example.test", "+tcp") == sorted(BIG)


@pytest.fixture
def small(tmp_path):
    with DnsLab(tmp_path) as lab:
        lab.pod("client")
        lab.start_agent()
        yield lab


def listeners(lab):
    out = lab.pods["client"].run("ss", "-lntuH").stdout.split("\n")
    return sorted(":".join((line.split()[0], line.split()[4])) for line in out if line and ":15053" in line or ":5353" in line)


def test_l16_switched_off(small):
    small.start_daemon(ISTIO_META_DNS_CAPTURE="false")
    small.add(small.pods["client"])
    assert listeners(small) == []


def test_l17_addresses(small):
    small.pods["client"].run("sysctl", "-qw", "net.ipv6.conf.lo.disable_ipv6=1")
    small.start_daemon()
    small.add(small.pods["client"])
    assert listeners(small) == ["tcp:127.0.0.1:15053", "udp:127.0.0.1:15053"]


def test_l18_one_address(small):
    small.service("web", vips=["/10.255.0.1", "/fd00:255::1"])
    small.start_daemon(ISTIO_META_DNS_PROXY_ADDR="127.0.0.1:5353", IPV6_ENABLED="false")
    small.add(small.pods["client"])
    assert listeners(small) == ["tcp:127.0.0.1:5353", "udp:127.0.0.1:5353"]
    dig = ["dig", "@127.0.0.1", "-p", "5353", "web.default"]
    assert small.pods["client"].run(*dig, "+short").stdout.split() == ["10.255.0.1"]
    status, flags, answers, *_ = header(small.pods["client"].run(*dig, "AAAA").stdout)
    assert (status, answers) == ("NOERROR", 0) and "aa" in flags


def test_l19_whose_service(small):
    """Own namespace, canonical, the preferred namespace, the first; hidden ones never; another domain."""
    def service(host, ns, last, **extra):
        small.service("x", ns=ns, hostname=host, vips=[f"/10.255.0.{last}"], **extra)
    service("a.test", "other", 1, canonical=True)
    service("a.test", "default", 2)
    service("b.test", "other", 3)
    service("b.test", "liked", 4)
    service("b.test", "more", 5, canonical=True)
    service("c.test", "other", 6)
    service("c.test", "liked", 7)
    service("d.test", "other", 8, visibility="Namespace")
    service("e.test", "other", 9, visibility="Namespace")
    service("e.test", "last", 10)
    service("web.other.svc.k8s.example", "other", 11)
    small.start_daemon(PREFERED_SERVICE_NAMESPACE="liked", CLUSTER_DOMAIN="k8s.example")
    small.add(small.pods["client"])
    for name, last in (("a.test", 2), ("b.test", 5), ("c.test", 7), ("e.test", 10), ("web.other", 11)):
        assert small.short(name, direct=True) == [f"10.255.0.{last}"], name
    # No server is there: what is forwarded fails.
    assert header(small.dig("d.test", direct=True, wait=15))[0] == "SERVFAIL"
