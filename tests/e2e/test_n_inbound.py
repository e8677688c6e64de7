# SPDX-License-Identifier: GPL-2.0-or-later
"""The inbound half beyond the wire: revocation, tunnels of applications, policies. Row ids of the behaviour table in the names."""
import json
import time

import pytest

from culvert_e2e import pki
from culvert_e2e.lab import access_fields, presence, run, wait_for
from test_a_basic import serve
from test_d_hbone import OTHER, call

# Copies bytes back until the other side ends.
ECHO = "import socket,sys,threading\n" \
    "def talk(s):\n" \
    "  while b := s.recv(65536): s.sendall(b)\n" \
    "  s.close()\n" \
    "l=socket.create_server(('::',int(sys.argv[1])),family=socket.AF_INET6,dualstack_ipv6=True)\n" \
    "while True: threading.Thread(target=talk,args=(l.accept()[0],)).start()\n"

# Says hello, prints what comes back, and how the connection ends.
HOLD = "import socket,sys\n" \
    "s=socket.create_connection((sys.argv[1],int(sys.argv[2])),timeout=60)\n" \
    "s.sendall(b'hello'); print(s.recv(5).decode(),flush=True)\n" \
    "try: print('eof' if s.recv(1)==b'' else 'bytes',flush=True)\n" \
    "except ConnectionResetError: print('reset',flush=True)\n" \
    "except TimeoutError: print('open',flush=True)\n"


def start(lab, **env):
    """Client and server in the mesh, one pod outside; the server echoes on 9000."""
    client, server, outside = lab.pod("client"), lab.pod("server"), lab.pod("outside", mesh=False)
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False, **env)
    lab.add(client, server)
    lab.wait_ready()
    server.python(ECHO, 9000)
    server.wait_port(9000)
    serve(server)
    return client, server, outside


def mesh_ca(lab):
    path = wait_for("the CA", lambda: next(iter((lab.run_dir / "culvert").glob("*/ca-root.key")), None))
    return pki.Ca.from_dir(path.parent)


def hold(pod, addr, port):
    """An open connection that has proved itself."""
    proc = pod.python(HOLD, addr, port)
    assert proc.stdout.readline() == "hello\n"
    return proc


# --- revocation ---------------------------------------------------------------


class Crl:
    """CRLs by openssl, for the mesh's own CA."""

    def __init__(self, lab):
        self.folder = lab.tmp / "crl-maker"
        self.folder.mkdir()
        self.source = wait_for("the CA", lambda: next(iter((lab.run_dir / "culvert").glob("*/ca-root.pem")), None))
        (self.folder / "openssl.cnf").write_text(
            f"[ca]\ndefault_ca=own\n[own]\ndatabase={self.folder}/index.txt\ndefault_md=sha256\n"
            f"private_key={self.source.parent}/ca-root.key\ncertificate={self.source}\n")

    def make(self, path, *serials, args=("-crldays", "1")):
        """A PEM CRL that lists the serial numbers (hexadecimal), moved into its place."""
        rows = "".join(f"R\t991231235959Z\t200101000000Z\t{s.upper().zfill(len(s) + len(s) % 2)}\tunknown\t/CN=x\n"
                       for s in serials)
        (self.folder / "index.txt").write_text(rows)
        (self.folder / "index.txt.attr").write_text("unique_subject = no\n")
        new = path.with_suffix(".new")
        run("openssl", "ca", "-config", self.folder / "openssl.cnf", "-gencrl", *args, "-out", new)
        new.rename(path)


def serial_of(cert):
    return run("openssl", "x509", "-noout", "-serial", "-in", cert).stdout.strip().split("=")[1]


def own_serial(lab, pod):
    """The serial number of a pod's certificate, as the dump has it."""
    own = next(c for c in json.loads(lab.ctl("dump").stdout)["certificates"] if c["identity"] == pod.spiffe)
    return f"{int(own['certChain'][0]['serialNumber']):x}"


def is_refused(lab, files):
    server = lab.pods["server"]
    result = call(lab, files, f"{server.ip}:9000", send="x")
    return not any(s["status"] == 200 for s in result.get("streams", {}).values())


def test_c01_c02_missing_then_revoked_inbound(lab):
    """Without the file nothing is revoked; when it comes, its serials are refused, others are not."""
    path = lab.tmp / "crl.pem"
    start(lab, CRL_PATH=path)
    lab.wait_log("CRL file is missing")
    ca = mesh_ca(lab)
    bad, good = ca.issue(lab.tmp, [OTHER], name="bad"), ca.issue(lab.tmp, [OTHER], name="good")
    assert not is_refused(lab, bad)
    Crl(lab).make(path, serial_of(bad[0]))
    lab.wait_log("CRL file loaded")
    wait_for("the refusal", lambda: is_refused(lab, bad))
    lab.wait_log("connection failed", "tls handshake error: invalid peer certificate: Revoked", 'direction="inbound"')
    assert not is_refused(lab, good)


@pytest.mark.parametrize("kind", ["empty", "other-blocks", "expired"])
def test_c01_files_that_are_accepted(lab, kind):
    path = lab.tmp / "crl.pem"
    path.write_text("" if kind != "other-blocks" else (pki.Ca.foreign().issue(lab.tmp, [OTHER])[0]).read_text())
    start(lab, CRL_PATH=path)
    lab.wait_log("CRL file loaded")
    files = mesh_ca(lab).issue(lab.tmp, [OTHER], name="peer")
    assert not is_refused(lab, files)
    if kind == "expired":
        Crl(lab).make(path, serial_of(files[0]), args=("-crl_lastupdate", "20200101000000Z",
                                                       "-crl_nextupdate", "20200102000000Z"))
        wait_for("the refusal", lambda: is_refused(lab, files))


def test_c01_garbage_turns_it_off_until_restart(lab):
    path = lab.tmp / "crl.pem"
    path.write_text("-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n")
    start(lab, CRL_PATH=path)
    lab.wait_log("CRL file cannot be used, CRLs are off until a restart")
    files = mesh_ca(lab).issue(lab.tmp, [OTHER])
    Crl(lab).make(path, serial_of(files[0]))
    time.sleep(4)
    assert not is_refused(lab, files)


def test_c01_garbage_later_leaves_the_former(lab):
    path = lab.tmp / "crl.pem"
    path.write_text("")
    start(lab, CRL_PATH=path)
    files = mesh_ca(lab).issue(lab.tmp, [OTHER])
    Crl(lab).make(path, serial_of(files[0]))
    wait_for("the refusal", lambda: is_refused(lab, files))
    path.write_bytes(b"\x30\x03garbage")
    lab.wait_log("CRL file is not used, the previous one stays")
    assert is_refused(lab, files)


def test_c02_revoked_server_outbound(lab):
    path = lab.tmp / "crl.pem"
    path.write_text("")
    client, server, _ = start(lab, CRL_PATH=path)
    wait_for("its certificate", lambda: client.curl(f"http://{server.ip}:8080/", check=False).returncode == 0)
    Crl(lab).make(path, own_serial(lab, server))
    wait_for("the refusal", lambda: client.curl(f"http://{server.ip}:8080/", check=False).returncode != 0)
    lab.wait_log("connection complete", 'direction="outbound"', "Revoked")


def test_c04_revoked_while_open(lab):
    """Both ends of a tunnel: the client's certificate revoked ends it at the server, the server's at the client."""
    path = lab.tmp / "crl.pem"
    path.write_text("")
    client, server, _ = start(lab, CRL_PATH=path)
    maker = Crl(lab)
    one = hold(client, server.ip, 9000)
    maker.make(path, own_serial(lab, client))
    assert one.communicate(timeout=30)[0].strip() == "eof", "a server says GOAWAY first"
    line = lab.wait_log("connection complete", 'direction="inbound"', "peer certificate revoked by CRL")[0]
    assert access_fields(line)["src.identity"] == client.spiffe
    maker.make(path)
    two = None

    def again():
        nonlocal two
        two = client.python(HOLD, server.ip, 9000)
        return two.stdout.readline() == "hello\n"

    wait_for("the list to be empty again", again, interval=0.5)
    maker.make(path, own_serial(lab, server))
    assert two.communicate(timeout=30)[0].strip() == "reset"
    lab.wait_log("connection complete", 'direction="outbound"', "peer certificate revoked by CRL")


def test_c07_symlink_swap(lab):
    """As a mounted ConfigMap changes: data directory and a link to it."""
    mount = lab.tmp / "mount"
    for name in ("..1", "..2"):
        (mount / name).mkdir(parents=True)
    (mount / "..1/crl.pem").write_text("")
    (mount / "..data").symlink_to("..1")
    (mount / "crl.pem").symlink_to("..data/crl.pem")
    start(lab, CRL_PATH=mount / "crl.pem")
    files = mesh_ca(lab).issue(lab.tmp, [OTHER])
    assert not is_refused(lab, files)
    Crl(lab).make(mount / "..2/crl.pem", serial_of(files[0]))
    (mount / "..tmp").symlink_to("..2")
    (mount / "..tmp").rename(mount / "..data")
    wait_for("the refusal", lambda: is_refused(lab, files))


# --- tunnels of applications --------------------------------------------------

# Takes one connection on a port of an address, tells the first bytes and who came, and answers.
FIRST = "import json,socket,sys\n" \
    "l=socket.create_server((sys.argv[1],int(sys.argv[2])))\n" \
    "while True:\n" \
    "  s,peer=l.accept(); s.settimeout(5); data=b''\n" \
    "  while not data.endswith(b'ping'): data+=s.recv(65536)\n" \
    "  print(json.dumps({'data': data.hex(), 'peer': peer[0]}),flush=True); s.sendall(b'pong'); s.close()\n"

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def tunnelled(lab, address, **tunnel):
    """A server whose application speaks through a tunnel on 15088, listening on the address."""
    client, server = lab.pod("client"), lab.pod("server", applicationTunnel={"port": 15088, **tunnel})
    outside = lab.pod("outside", mesh=False)
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False)
    lab.add(client, server)
    lab.wait_ready()
    app = server.python(FIRST, server.ip if address == "pod" else address, 15088)
    server.wait_port(15088)
    return outside, server, app


def test_i06_application_tunnel_with_proxy_header(lab):
    """Delivered to loopback; the header names client and authority, and the client's identity."""
    outside, server, app = tunnelled(lab, "127.0.0.1", protocol="PROXY")
    files = mesh_ca(lab).issue(lab.tmp, [OTHER])
    result = call(lab, files, "10.99.0.1:8080")
    got = next(iter(result["streams"].values()))
    assert got["status"] == 200 and got["data"] == "pong"
    seen = json.loads(app.stdout.readline())
    data = bytes.fromhex(seen["data"])
    assert seen["peer"] == "127.0.0.1"
    assert data[:12] == SIGNATURE and data[12:14] == b"\x21\x11"
    length = int.from_bytes(data[14:16], "big")
    head, rest = data[16:16 + length], data[16 + length:]
    assert head[0:4] == bytes(map(int, outside.ip.split("."))) and head[4:8] == bytes([10, 99, 0, 1])
    assert int.from_bytes(head[10:12], "big") == 8080
    assert head[12:13] == b"\xd0" and head[13:15] == len(OTHER).to_bytes(2, "big") and head[15:] == OTHER.encode()
    assert rest == b"ping"
    line = access_fields(lab.wait_log("connection complete", 'direction="inbound"')[0])
    assert line["bytes_recv"] == "4" and line["bytes_sent"] == "4", "the header is not the client's"


def test_i07_application_tunnel_without_header(lab):
    """Any authority, raw bytes, the client's address."""
    outside, _, app = tunnelled(lab, "pod", protocol="NONE")
    files = mesh_ca(lab).issue(lab.tmp, [OTHER])
    got = next(iter(call(lab, files, "10.99.0.1:8080")["streams"].values()))
    assert got["status"] == 200 and got["data"] == "pong"
    seen = json.loads(app.stdout.readline())
    assert bytes.fromhex(seen["data"]) == b"ping" and seen["peer"] == outside.ip


# --- plaintext and policies ---------------------------------------------------


def strict(name="istio_converted_static_strict", **match):
    """What the control plane makes of STRICT: deny whoever has no identity; for some ports only, if told."""
    return {"name": name, "namespace": "istio-system", "scope": "WorkloadSelector", "action": "Deny", "dryRun": False,
            "rules": [[[{"notPrincipals": [presence()], **match}]]]}


def reaches(pod, addr, port=8080):
    return pod.curl(f"http://{addr}:{port}/", check=False, timeout=5).returncode == 0


def enforce(lab, policy, *names):
    lab.mesh["policies"] = [policy] if policy else []
    lab.record(lab.pods["server"])["authorizationPolicies"] = list(names)
    lab.write_mesh()


def test_t03_strict_with_a_permissive_port(lab):
    _, server, outside = start(lab)
    serve(server, 8081)
    enforce(lab, strict(notDestinationPorts=[8081]), "istio-system/istio_converted_static_strict")
    wait_for("8080 to be closed", lambda: not reaches(outside, server.ip))
    assert reaches(outside, server.ip, 8081)
    assert reaches(lab.pods["client"], server.ip)


def test_t04_allow_by_source_address(lab):
    _, server, outside = start(lab)
    other = lab.pod("other", mesh=False)
    enforce(lab, {"name": "from", "namespace": "default", "scope": "Namespace", "action": "Allow", "dryRun": False,
                  "rules": [[[{"sourceIps": [f"{outside.ip}/32"]}]]]})
    wait_for("others to be refused", lambda: not reaches(other, server.ip))
    assert reaches(outside, server.ip)
    lab.wait_log("connection complete", "allow policies exist, but none allowed")


def test_n30_the_service_of_a_plaintext_connection(lab):
    """Guessed by the port, as for a tunnel; a port of no service has none."""
    _, server, outside = start(lab)
    serve(server, 8081)
    lab.service("web", vips=[f"/10.{lab.net}.201.1"], ports={80: 8080}, pods=[server])
    lab.write_mesh()

    def service_of(port):
        assert reaches(outside, server.ip, port)
        line = lab.wait_log("connection complete", 'direction="inbound"', f"dst.addr={server.ip}:{port}")[-1]
        return access_fields(line).get("dst.service")
    wait_for("the service", lambda: service_of(8080) == "web.default.svc.cluster.local")
    assert service_of(8081) is None


def test_t05_illegal_port(lab):
    _, server, outside = start(lab)
    for port in (15001, 15006):
        assert not reaches(outside, server.ip, port)
    lab.wait_log("connection failed", "attempted recursive call to ourselves")


# Opens connections one after the other, each proved by an echo before the next; then all of them once more.
MANY = "import socket,sys\n" \
    "conns=[]\n" \
    "def say(s): s.sendall(b'hello'); assert s.recv(5)==b'hello'\n" \
    "for _ in range(int(sys.argv[3])):\n" \
    "  conns.append(socket.create_connection((sys.argv[1],int(sys.argv[2])),timeout=5)); say(conns[-1])\n" \
    "for s in conns: say(s)\n" \
    "print('all', [s.getsockname()[1] for s in conns])\n"


@pytest.mark.parametrize("family", [4, 6])
def test_t01_ports_of_client_and_proxy_never_meet(lab, family):
    """The proxy dials under the client's address, beside the client's redirected connections: with a port that one of
    those has, connection tracking would take the one for the other. A few ports only: they would meet at once."""
    _, server, outside = start(lab)
    for pod in (server, outside):
        pod.run("sh", "-c", "echo 40000 40007 > /proc/sys/net/ipv4/ip_local_port_range")
    res = outside.run("python3", "-c", MANY, server.ip if family == 4 else server.ip6, 9000, 6, check=False)
    assert res.stdout.startswith("all"), res.stderr


def test_r02_dry_run_is_logged_and_not_enforced(lab):
    _, server, outside = start(lab, AUTHZ_POLICY_INFO_LOGGING="true")
    enforce(lab, {**strict("try"), "namespace": "default", "scope": "Namespace", "dryRun": True})
    wait_for("the judgement", lambda: reaches(outside, server.ip)
             and lab.log_lines("dry-run: deny policy match", 'policy="default/try"'))
    assert reaches(outside, server.ip)


def test_r09_policy_list_alone_closes_nothing(lab):
    """An open connection keeps the list it was opened with, until policies themselves change."""
    _, server, outside = start(lab)
    enforce(lab, strict())
    held = hold(outside, server.ip, 9000)
    enforce(lab, strict(), "istio-system/istio_converted_static_strict")
    wait_for("new ones to be refused", lambda: not reaches(outside, server.ip))
    assert held.poll() is None
