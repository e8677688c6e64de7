# SPDX-License-Identifier: GPL-2.0-or-later
"""The main job: pods in, mutual TLS out. Peers: curl, python's http.server, tcpdump, iperf3."""
import json
import re
import subprocess
import time

import pytest

from culvert_e2e.lab import REFUSED, access_fields, run, wait_for

HTTP = "import http.server,sys\n" \
    "class H(http.server.BaseHTTPRequestHandler):\n" \
    "  protocol_version='HTTP/1.1'\n" \
    "  def do_GET(self):\n" \
    "    body=('hello from %s to %s' % (sys.argv[1], self.client_address[0])).encode()\n" \
    "    self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers(); self.wfile.write(body)\n" \
    "  def log_message(self, *a): pass\n" \
    "import socket\n" \
    "class S(http.server.ThreadingHTTPServer):\n" \
    "  address_family=socket.AF_INET6\n" \
    "S(('::', int(sys.argv[2])), H).serve_forever()\n"


def serve(pod, port=8080):
    pod.python(HTTP, pod.name, port)
    pod.wait_port(port)


@pytest.fixture
def mesh(lab):
    """Client and server in the mesh, one pod outside; HTTP servers in the latter two."""
    client, server = lab.pod("client"), lab.pod("server")
    outside = lab.pod("outside", mesh=False)
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False)
    lab.add(client, server)
    lab.wait_ready()
    serve(server)
    serve(outside)
    return lab


def test_a01_pod_to_pod_is_mutual_tls(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    assert client.curl(f"http://{server.ip}:8080/").stdout == f"hello from server to ::ffff:{client.ip}"
    out = access_fields(mesh.wait_log("connection complete", 'direction="outbound"')[0])
    assert out["src.workload"] == "client"
    assert out["dst.addr"] == f"{server.ip}:15008"
    assert out["dst.hbone_addr"] == f"{server.ip}:8080"
    assert out["src.identity"] == client.spiffe and out["dst.identity"] == server.spiffe
    inb = access_fields(mesh.wait_log("connection complete", 'direction="inbound"')[0])
    assert inb["src.identity"] == client.spiffe and inb["dst.identity"] == server.spiffe
    assert inb["src.workload"] == "client" and inb["dst.workload"] == "server"
    assert inb["dst.addr"] == f"{server.ip}:15008"
    assert inb["bytes_sent"] == out["bytes_recv"] and int(inb["bytes_sent"]) > 0
    assert inb["bytes_recv"] == out["bytes_sent"]


def test_a02_ipv6(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    assert client.curl(f"http://[{server.ip6}]:8080/").stdout == f"hello from server to {client.ip6}"
    out = access_fields(mesh.wait_log("connection complete", 'direction="outbound"')[0])
    assert out["dst.addr"] == f"[{server.ip6}]:15008"


def test_a03_out_of_the_mesh_is_plain(mesh):
    client, outside = mesh.pods["client"], mesh.pods["outside"]
    assert "hello from outside" in client.curl(f"http://{outside.ip}:8080/").stdout
    out = access_fields(mesh.wait_log("connection complete", 'direction="outbound"')[0])
    assert out["dst.addr"] == f"{outside.ip}:8080"
    assert "src.identity" not in out and "dst.hbone_addr" not in out


def test_a04_into_the_mesh_from_outside(mesh):
    server, outside = mesh.pods["server"], mesh.pods["outside"]
    text = outside.curl(f"http://{server.ip}:8080/").stdout
    assert text == f"hello from server to ::ffff:{outside.ip}", "the application sees the client's address"
    inb = access_fields(mesh.wait_log("connection complete", 'direction="inbound"')[0])
    assert inb["src.addr"].startswith(outside.ip) and "src.identity" not in inb
    assert inb["src.workload"] == "outside"


def test_a05_the_wire_carries_tls(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    pcap = mesh.tmp / "wire.pcap"
    dump = server.popen("tcpdump", "-i", "eth0", "-U", "-w", pcap, "tcp", stderr=subprocess.DEVNULL)
    wait_for("tcpdump", lambda: pcap.exists() and pcap.stat().st_size > 0)
    client.curl(f"http://{server.ip}:8080/", "-H", "X-Secret: squeamish-ossifrage")
    wait_for("packets", lambda: pcap.stat().st_size > 3000)
    time.sleep(0.3)
    dump.terminate()
    dump.wait()
    raw = pcap.read_bytes()
    assert b"squeamish" not in raw and b"hello from" not in raw
    assert re.search(rb"\x16\x03[\x01\x03]..\x01\x00", raw, re.S), "a TLS ClientHello is on the wire"


def test_a06_identities_as_openssl_sees_them(mesh):
    """OpenSSL fetches the server's certificate without presenting one: it sees the SPIFFE id and is refused."""
    client, server = mesh.pods["client"], mesh.pods["server"]
    client.curl(f"http://{server.ip}:8080/")
    outside = mesh.pods["outside"]
    res = outside.run("openssl", "s_client", "-connect", f"{server.ip}:15008", "-alpn", "h2", "-showcerts",
                      check=False, input="", timeout=20)
    pem = res.stdout[res.stdout.index("-----BEGIN"):]
    text = run("openssl", "x509", "-noout", "-text", input=pem).stdout
    assert f"URI:{server.spiffe}" in text
    mesh.wait_log("connection failed", "tls handshake error", 'direction="inbound"')


def test_a07_service_vip_with_port_mapping(lab):
    client, one, two = lab.pod("client"), lab.pod("one"), lab.pod("two")
    vip = f"10.{lab.net}.200.1"
    lab.service("web", vips=[f"/{vip}"], ports={80: 8080}, pods=[one, two])
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False)
    lab.add(client, one, two)
    lab.wait_ready()
    serve(one)
    serve(two)
    seen = {client.curl(f"http://{vip}/").stdout.split()[2] for _ in range(30)}
    assert seen == {"one", "two"}
    out = access_fields(lab.wait_log("connection complete", 'direction="outbound"')[0])
    assert out["dst.service"] == "web.default.svc.cluster.local"


def test_a08_service_without_endpoints_is_refused(lab):
    client = lab.pod("client")
    vip = f"10.{lab.net}.200.2"
    lab.service("empty", vips=[f"/{vip}"], ports={80: 8080})
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False)
    lab.add(client)
    lab.wait_ready()
    assert client.curl(f"http://{vip}/", check=False).returncode in REFUSED
    lab.wait_log("connection failed", f"no healthy upstream: {vip}:80")


def test_a17_a_service_that_no_record_holds_is_refused(lab):
    """Left out of the answer it would be an address like any other, and the connection plaintext."""
    client, outside = lab.pod("client"), lab.pod("outside", mesh=False)
    lab.service("huge", vips=[f"/{outside.ip}"], ports={port: port for port in range(8080, 9300)})
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False)
    lab.add(client)
    lab.wait_ready()
    serve(outside)
    assert client.curl(f"http://{outside.ip}:8080/", check=False).returncode in REFUSED
    lab.wait_log("huge.default.svc.cluster.local is refused, no record can hold it")


def test_a09_weights(lab):
    client, one, two = lab.pod("client"), lab.pod("one", capacity=9), lab.pod("two", capacity=0)
    vip = f"10.{lab.net}.200.3"
    lab.service("web", vips=[f"/{vip}"], ports={80: 8080}, pods=[one, two])
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False)
    lab.add(client, one, two)
    lab.wait_ready()
    serve(one)
    serve(two)
    assert {client.curl(f"http://{vip}/").stdout.split()[2] for _ in range(15)} == {"one"}


def test_a10_json_log(lab):
    client, server = lab.pod("client"), lab.pod("server")
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False, LOG_FORMAT="json")
    lab.add(client, server)
    lab.wait_ready()
    serve(server)
    client.curl(f"http://{server.ip}:8080/")
    line = json.loads(lab.wait_log("connection complete", "outbound")[0])
    assert list(line)[:5] == ["level", "time", "scope", "message", "src.addr"]
    assert line["scope"] == "access" and line["level"] == "info"
    assert isinstance(line["bytes_sent"], int) and line["duration"].endswith("ms")


@pytest.mark.parametrize("reverse", [False, True], ids=["up", "down"])
def test_a11_iperf3_through_the_whole_path(mesh, reverse):
    client, server = mesh.pods["client"], mesh.pods["server"]
    server.popen("iperf3", "-s", "-p", 5201)
    server.wait_port(5201)
    args = ["-R"] if reverse else []
    res = client.run("iperf3", "-c", server.ip, "-p", 5201, "-t", 2, "-J", *args, timeout=60)
    report = json.loads(res.stdout)
    assert report["end"]["sum_received"]["bits_per_second"] > 50e6
    assert mesh.wait_log("connection complete", f"dst.hbone_addr={server.ip}:5201")


ECHO_HALF_CLOSE = "import socket,sys\n" \
    "l=socket.create_server(('::',int(sys.argv[1])),family=socket.AF_INET6,dualstack_ipv6=True)\n" \
    "while True:\n" \
    "  s,_=l.accept(); data=b''\n" \
    "  while True:\n" \
    "    b=s.recv(65536)\n" \
    "    if not b: break\n" \
    "    data+=b\n" \
    "  s.sendall(data[::-1]); s.close()\n"

ASK_HALF_CLOSE = "import socket,sys\n" \
    "s=socket.create_connection((sys.argv[1],int(sys.argv[2])),timeout=10)\n" \
    "s.sendall(b'abc'*int(sys.argv[3])); s.shutdown(socket.SHUT_WR)\n" \
    "d=b''\n" \
    "while True:\n" \
    "  b=s.recv(65536)\n" \
    "  if not b: break\n" \
    "  d+=b\n" \
    "print(len(d), d[:3].decode())\n"


@pytest.mark.parametrize("count", [1, 1000000])
def test_a12_half_close(mesh, count):
    """The server answers only after it has seen the client's end: FIN must travel alone."""
    client, server = mesh.pods["client"], mesh.pods["server"]
    server.python(ECHO_HALF_CLOSE, 9000)
    server.wait_port(9000)
    proc = client.python(ASK_HALF_CLOSE, server.ip, 9000, count)
    out, _ = proc.communicate(timeout=60)
    assert out.split() == [str(3 * count), "cba"]


def test_a13_closed_port(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    assert client.curl(f"http://{server.ip}:81/", check=False).returncode in REFUSED
    assert mesh.wait_log("connection complete", 'direction="inbound"', "connection failed")
    assert mesh.wait_log("connection complete", 'direction="outbound"', "http status: 503 Service Unavailable")


def test_a14_self_calls_are_refused(mesh):
    client = mesh.pods["client"]
    for port in (15001, 15006, 15008):
        assert client.curl(f"http://{client.ip}:{port}/", check=False, timeout=5).returncode != 0
        assert client.curl(f"http://127.0.0.1:{port}/", check=False, timeout=5).returncode != 0
    for port in (15000, 15020, 15021):
        assert client.curl(f"http://127.0.0.1:{port}/", check=False, timeout=5).returncode == 7


def test_a15_one_tunnel_for_many_connections(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    for _ in range(10):
        client.curl(f"http://{server.ip}:8080/")
    conns = server.run("ss", "-tnH", "state", "established", "( sport = :15008 )").stdout.strip().splitlines()
    assert len(conns) == 1, conns


def test_a16_dump_and_pods(mesh):
    client, server = mesh.pods["client"], mesh.pods["server"]
    client.curl(f"http://{server.ip}:8080/")
    pods = {p["uid"]: p for p in mesh.pods_json()}
    assert set(pods) == {client.uid, server.uid}
    assert all(p["state"] == "Up" and p["restarts"] == 0 for p in pods.values())
    assert "client" in mesh.ctl("pods").stdout
    dump = json.loads(mesh.ctl("dump").stdout)
    assert {w["name"] for w in dump["workloads"]} == {"client", "server", "outside"}
    assert dump["workloadState"][client.uid]["state"] == "Up"
    assert {c["identity"] for c in dump["certificates"]} == {client.spiffe, server.spiffe}
    assert all(c["state"] == "Available" and c["certChain"] for c in dump["certificates"])
