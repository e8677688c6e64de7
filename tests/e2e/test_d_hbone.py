# SPDX-License-Identifier: GPL-2.0-or-later
"""HBONE as peers see it: a client and a server on python h2 and OpenSSL. Row ids of reference dataplane.md 21 in the names."""
import json
import sys
from pathlib import Path

import pytest

from culvert_e2e import pki
from culvert_e2e.lab import REFUSED, access_fields, wait_for
from test_a_basic import mesh, serve  # noqa: F401

PEER = Path(pki.__file__).with_name("hbone_peer.py")
OTHER = "spiffe://cluster.local/ns/other/sa/peer"


@pytest.fixture
def ca(mesh):  # noqa: F811
    """The mesh's own CA, for certificates of the tests' own making."""
    path = wait_for("the CA", lambda: next(iter((mesh.run_dir / "culvert").glob("*/ca-root.key")), None))
    return pki.Ca.from_dir(path.parent)


def call(lab, files, authority, *args, method="CONNECT", send="ping", port=15008, timeout=8):
    """One request from the pod outside of the mesh; returns what the peer saw."""
    outside, server = lab.pods["outside"], lab.pods["server"]
    crt, key, root = files
    cmd = [sys.executable, PEER, "client", "--connect", f"{server.ip}:{port}", "--root", root, "--method", method,
           "--timeout", timeout]
    if crt:
        cmd += ["--cert", crt, "--key", key]
    for name in [authority] if isinstance(authority, str) else authority or []:
        cmd += ["--authority", name]
    if send is not None:
        cmd += ["--send", send]
    out = outside.run(*cmd, *args, timeout=timeout + 20).stdout
    return json.loads(out)


@pytest.fixture
def files(ca, tmp_path):
    return ca.issue(tmp_path, [OTHER])


REQUEST = "GET / HTTP/1.0\r\n\r\n"


def stream(result):
    assert "error" not in result, result
    return next(iter(result["streams"].values()))


def test_i00_connect_reaches_the_application(mesh, files):  # noqa: F811
    server, outside = mesh.pods["server"], mesh.pods["outside"]
    result = call(mesh, files, f"{server.ip}:8080", send=REQUEST)
    got = stream(result)
    assert got["status"] == 200 and f"hello from server to ::ffff:{outside.ip}" in got["data"] and got["ended"]
    assert result["peer"] == [server.spiffe] and result["alpn"] == "h2" and result["tls"] == "TLSv1.3"
    line = access_fields(mesh.wait_log("connection complete", f'src.identity="{OTHER}"')[0])
    assert line["dst.hbone_addr"] == f"{server.ip}:8080"


def test_i01_get_is_400(mesh, files):  # noqa: F811
    assert stream(call(mesh, files, "x:1", method="GET"))["status"] == 400
    mesh.wait_log("connection failed", "expected method CONNECT, got GET")


@pytest.mark.parametrize("authority", ["server", "10.0.0.1", "[::1]", ""])
def test_i02_authority_without_port_is_400(mesh, files, authority):  # noqa: F811
    got = stream(call(mesh, files, authority))
    assert got["status"] == 400 or got["reset"] is not None


def test_i03_other_address_is_400(mesh, files):  # noqa: F811
    client, server = mesh.pods["client"], mesh.pods["server"]
    assert stream(call(mesh, files, f"{client.ip}:8080"))["status"] == 400
    mesh.wait_log("connection failed", f"ip mismatch: {server.ip} != {client.ip}")


@pytest.mark.parametrize("port", [15001, 15006, 15008])
def test_i10_illegal_port_is_503(mesh, files, port):  # noqa: F811
    server = mesh.pods["server"]
    assert stream(call(mesh, files, f"{server.ip}:{port}"))["status"] == 503
    mesh.wait_log("connection failed", "attempted recursive call to ourselves")


def test_i08_i09_hostname_authority(lab, tmp_path):
    server, outside = lab.pod("server"), lab.pod("outside", mesh=False)
    lab.service("web", vips=[f"/10.{lab.net}.200.9"], ports={80: 8080}, pods=[server])
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False)
    lab.add(server)
    lab.wait_ready()
    serve(server)
    path = wait_for("the CA", lambda: next(iter((lab.run_dir / "culvert").glob("*/ca-root.key")), None))
    files = pki.Ca.from_dir(path.parent).issue(tmp_path, [OTHER])
    assert outside
    good = stream(call(lab, files, "web.default.svc.cluster.local:80", send=REQUEST))
    assert good["status"] == 200 and "hello from server" in good["data"]
    assert stream(call(lab, files, "nobody.default.svc.cluster.local:80"))["status"] == 503
    lab.wait_log("no service or workload for hostname: nobody.default.svc.cluster.local")
    assert stream(call(lab, files, "web.default.svc.cluster.local:81"))["status"] == 503
    lab.wait_log("requested service web.default.svc.cluster.local:81 found, but cannot resolve port")


def test_i11_policy_is_401(mesh, files):  # noqa: F811
    server = mesh.pods["server"]
    mesh.mesh["policies"] = [{"name": "nobody", "namespace": "default", "scope": "Namespace", "action": "Allow",
                              "dryRun": False, "rules": []}]
    mesh.write_mesh()
    mesh.wait_log("local config initialized", count=2)
    wait_for("the refusal", lambda: stream(call(mesh, files, f"{server.ip}:8080"))["status"] == 401)
    mesh.wait_log("connection closed due to policy rejection: allow policies exist, but none allowed")


def test_i12_application_refuses_503(mesh, files):  # noqa: F811
    server = mesh.pods["server"]
    assert stream(call(mesh, files, f"{server.ip}:9"))["status"] == 503


def test_i14_answer_carries_baggage(mesh, files):  # noqa: F811
    server = mesh.pods["server"]
    got = stream(call(mesh, files, f"{server.ip}:8080", send=REQUEST))
    assert "k8s.namespace.name=default" in got["headers"]["baggage"]


def test_i15_i22_source_from_baggage_behind_a_gateway(mesh, files):  # noqa: F811
    server = mesh.pods["server"]
    call(mesh, files, f"{server.ip}:8080", "--header", "baggage=k8s.namespace.name=far,service.name=away",
         "--header", "x-forwarded-network=other", send=REQUEST)
    line = access_fields(mesh.wait_log("connection complete", 'src.workload="away"')[0])
    assert line["src.namespace"] == "far"
    call(mesh, files, f"{server.ip}:8080", "--header", "baggage=k8s.namespace.name=far,service.name=away",
         "--header", "x-forwarded-network=", send=REQUEST)
    assert mesh.wait_log("connection complete", 'src.workload="outside"', f'src.identity="{OTHER}"')


def test_i16_clients_that_are_refused(mesh, ca, tmp_path):  # noqa: F811
    server = mesh.pods["server"]
    root = ca.issue(tmp_path, [OTHER])[2]
    bad = {
        "foreign": pki.Ca.foreign().issue(tmp_path, [OTHER], name="foreign"),
        "expired": ca.issue(tmp_path, [OTHER], name="expired", before_s=-3600, after_s=-60),
        "early": ca.issue(tmp_path, [OTHER], name="early", before_s=3600, after_s=7200),
        "domain": ca.issue(tmp_path, ["spiffe://elsewhere/ns/other/sa/peer"], name="domain"),
        "nameless": ca.issue(tmp_path, [], name="nameless"),
        "none": (None, None, None),
    }
    for name, (crt, key, _) in bad.items():
        before = len(mesh.log_lines("connection failed", "tls handshake error"))
        result = call(mesh, (crt, key, root), f"{server.ip}:8080")
        refused = "error" in result or result.get("eof") or all(
            s["status"] is None for s in result.get("streams", {}).values())
        assert refused, (name, result)
        mesh.wait_log("connection failed", "tls handshake error", count=before + 1)


def test_i18_alpn(mesh, files):  # noqa: F811
    server = mesh.pods["server"]
    refused = call(mesh, files, f"{server.ip}:8080", "--alpn", "http/1.1")
    assert "error" in refused, refused
    accepted = call(mesh, files, f"{server.ip}:8080", "--alpn", "", send=REQUEST)
    assert stream(accepted)["status"] == 200


@pytest.mark.parametrize("version,ok", [("-tls1_2", False), ("-tls1_3", True)])
def test_i19_tls_versions(mesh, files, version, ok):  # noqa: F811
    outside, server = mesh.pods["outside"], mesh.pods["server"]
    crt, key, root = files
    res = outside.run("openssl", "s_client", version, "-connect", f"{server.ip}:15008", "-cert", crt, "-key", key,
                      "-CAfile", root, "-alpn", "h2", "-verify_return_error", check=False, input="", timeout=20)
    assert ("Verification: OK" in res.stdout and "Cipher is TLS_AES_256_GCM_SHA384" in res.stdout) == ok


@pytest.mark.parametrize("group", ["X25519", "P-256", "P-384"])
def test_i19_groups(mesh, files, group):  # noqa: F811
    outside, server = mesh.pods["outside"], mesh.pods["server"]
    crt, key, root = files
    res = outside.run("openssl", "s_client", "-groups", group, "-connect", f"{server.ip}:15008", "-cert", crt, "-key", key,
                      "-CAfile", root, "-alpn", "h2", check=False, input="", timeout=20)
    assert "Verification: OK" in res.stdout


def test_i20_streams_are_independent(mesh, files):  # noqa: F811
    server = mesh.pods["server"]
    result = call(mesh, files, [f"{server.ip}:8080", f"{server.ip}:9", f"{server.ip}:8080"], send=REQUEST)
    assert sorted(s["status"] for s in result["streams"].values()) == [200, 200, 503]


@pytest.mark.parametrize("trace", ["00-" + "0" * 52, "x" * 55, "00", "00-" + "A" * 32 + "-" + "b" * 16 + "-00"])
def test_i21_malformed_traceparent(mesh, files, trace):  # noqa: F811
    server = mesh.pods["server"]
    assert stream(call(mesh, files, f"{server.ip}:8080", "--header", f"traceparent={trace}", send=REQUEST))["status"] == 200


def test_l11_plaintext_on_proxy_ports(mesh):  # noqa: F811
    outside, server = mesh.pods["outside"], mesh.pods["server"]
    for port in (15001, 15006, 15008):
        assert outside.curl(f"http://{server.ip}:{port}/", check=False, timeout=5).returncode in REFUSED


# --- our client against a server that is not ours ---------------------------


@pytest.fixture
def foreign_server(lab, tmp_path):
    """A pod whose mesh record says HBONE, served by python h2 instead of a silo."""
    client, peer = lab.pod("client"), lab.pod("peer")
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False)
    lab.add(client)
    lab.wait_ready()
    path = wait_for("the CA", lambda: next(iter((lab.run_dir / "culvert").glob("*/ca-root.key")), None))
    ca = pki.Ca.from_dir(path.parent)

    def start(uris=None, authority=None, **opts):
        crt, key, root = (authority or ca).issue(tmp_path, uris or [peer.spiffe], name="server")
        root = ca.issue(tmp_path, [peer.spiffe], name="anchor")[2]
        args = [f"--{k.replace('_', '-')}={v}" for k, v in opts.items()]
        proc = peer.popen(sys.executable, PEER, "server", "--listen", f"{peer.ip}:15008", "--cert", crt, "--key", key,
                          "--root", root, *args)
        assert json.loads(proc.stdout.readline())["listening"]
        return proc

    lab.start_peer = start
    return lab


SHOUT = "import socket,sys\n" \
    "d=b''\n" \
    "try:\n" \
    "  s=socket.create_connection((sys.argv[1],int(sys.argv[2])),timeout=10)\n" \
    "  s.sendall(b'hello there'); s.shutdown(socket.SHUT_WR)\n" \
    "  while True:\n" \
    "    b=s.recv(65536)\n" \
    "    if not b: break\n" \
    "    d+=b\n" \
    "except OSError as e: d=b'broken'\n" \
    "print(d.decode())\n"


def shout(lab):
    proc = lab.pods["client"].python(SHOUT, lab.pods["peer"].ip, 7000)
    return proc.communicate(timeout=30)[0].strip()


def test_o03_o40_our_connect_request(foreign_server):
    lab = foreign_server
    client, peer = lab.pods["client"], lab.pods["peer"]
    proc = lab.start_peer()
    assert shout(lab) == "HELLO THERE"
    headers = next(m["request"] for m in map(json.loads, proc.stdout) if "request" in m)
    names = [h[0] for h in headers]
    assert names == [":method", ":authority", "baggage", "forwarded", "traceparent"]
    values = dict(headers)
    assert values[":method"] == "CONNECT" and values[":authority"] == f"{peer.ip}:7000"
    assert values["baggage"].startswith("k8s.cluster.name=Kubernetes,k8s.namespace.name=default,k8s.deployment.name=client")
    assert values["forwarded"].startswith(f'for="{client.ip}:')
    assert len(values["traceparent"]) == 55
    line = access_fields(lab.wait_log("connection complete", 'direction="outbound"')[0])
    assert line["bytes_sent"] == "11" and line["bytes_recv"] == "11" and "error" not in line


def test_o38_unexpected_server_identity(foreign_server):
    lab = foreign_server
    lab.start_peer(uris=["spiffe://cluster.local/ns/default/sa/somebody-else"])
    assert shout(lab) in ("", "broken")
    assert lab.wait_log("connection complete", 'direction="outbound"', "peer did not present the expected SAN")


def test_o38_server_of_a_foreign_ca(foreign_server):
    lab = foreign_server
    lab.start_peer(authority=pki.Ca.foreign())
    assert shout(lab) in ("", "broken")
    assert lab.wait_log("connection complete", 'direction="outbound"', "io error")


@pytest.mark.parametrize("status,text", [(401, "http status: 401 Unauthorized"), (503, "http status: 503 Service Unavailable")])
def test_o39_server_refuses(foreign_server, status, text):
    lab = foreign_server
    lab.start_peer(status=status)
    assert shout(lab) in ("", "broken")
    assert lab.wait_log("connection complete", 'direction="outbound"', text)


def test_p13_the_peers_stream_limit_is_respected(foreign_server):
    """Six connections at once against a peer that takes two streams a connection: all are served, over more tunnels."""
    lab = foreign_server
    client, peer = lab.pods["client"], lab.pods["peer"]
    lab.start_peer(max_streams=2)
    hold = ("import socket,sys,time\n"
            "s=socket.create_connection((sys.argv[1],7000),timeout=10); s.sendall(b'x'); assert s.recv(1)==b'X'\n"
            "print('ok',flush=True); time.sleep(3)\n")
    procs = [client.python(hold, peer.ip) for _ in range(6)]
    assert [p.stdout.readline() for p in procs] == ["ok\n"] * 6


def test_o37_nobody_listens(foreign_server):
    lab = foreign_server
    assert shout(lab) in ("", "broken")
    assert lab.wait_log("connection complete", 'direction="outbound"', "Connection refused")
