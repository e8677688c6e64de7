# SPDX-License-Identifier: GPL-2.0-or-later
"""Certificates from a CA over gRPC: a python gRPC server as Istio's, every bad answer, outages, rotations, the queue."""
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from culvert_e2e.ca_server import CaServer
from culvert_e2e.lab import PATIENCE, run, wait_for
from test_a_basic import serve


@pytest.fixture
def ca(lab):
    with CaServer(lab) as server:
        yield server


def start(lab, ca, *pods, served=(), token="token-1", **env):
    """The daemon with this CA, pods enrolled; the token is in a file, with a newline as editors leave it."""
    (lab.tmp / "token").write_text(token + "\n")
    lab.write_mesh()
    lab.start_agent()
    lab.start_daemon(ready=False, **ca.env(AUTH_TOKEN=lab.tmp / "token", **env))
    lab.add(*pods)
    lab.wait_ready()
    for pod in served:
        serve(pod)


@pytest.fixture
def two(lab, ca):
    """Client and server with certificates from the CA."""
    client, server = lab.pod("client"), lab.pod("server")
    start(lab, ca, client, server, served=[server])
    return lab


def get(lab, client="client", server="server", check=True, timeout=10):
    client, server = lab.pods[client], lab.pods[server]
    return client.curl(f"http://{server.ip}:8080/", check=check, timeout=timeout)


def works(lab, timeout=PATIENCE + 15):
    wait_for("a connection", lambda: get(lab, check=False, timeout=3).returncode == 0, timeout=timeout)


def certificates(lab):
    return {c["identity"]: c for c in json.loads(lab.ctl("dump").stdout)["certificates"]}


def serials(lab, pod):
    found = certificates(lab).get(pod.spiffe)
    return [x["serialNumber"] for x in found["certChain"]] if found else []


def chain_of(lab, server, root):
    """What openssl says of a server's chain, from a namespace that nothing captures."""
    return run("ip", "netns", "exec", lab.node, "sh", "-c",
               f"openssl s_client -connect {server.ip}:15008 -alpn h2 -showcerts -CAfile {root} </dev/null 2>&1",
               check=False).stdout


def test_h01_certificates_are_signed_by_the_ca(two, ca):
    """Mutual TLS works, and what a pod shows leads to the CA's root by openssl's judgement."""
    client, server = two.pods["client"], two.pods["server"]
    assert get(two).stdout == f"hello from server to ::ffff:{client.ip}"
    first, = ca.calls(server.spiffe)
    assert first["signed"] and first["validity"] == 86400
    assert first["struct"] == {"ImpersonatedIdentity": server.spiffe}
    meta = dict(first["metadata"])
    assert meta["authorization"] == "Bearer token-1"
    assert meta["clusterid"] == "Kubernetes"
    shown = chain_of(two, server, ca.root())
    assert "O = root-a-mid" in shown and "Verify return code: 0 (ok)" in shown, shown
    assert "Verify return code: 0 (ok)" not in chain_of(two, server, ca.root("b"))


def test_h02_headers(lab, ca):
    """CA_HEADER_* arrive, those that gRPC owns do not, the cluster's id is the mesh's."""
    pod = lab.pod("client")
    start(lab, ca, pod, CA_HEADER_X_Region="north", CA_HEADER_te="gzip", CA_HEADER_clusterid="mine",
          XDS_HEADER_other="no", ISTIO_META_CLUSTER_ID="c-9")
    call = wait_for("a call", lambda: ca.calls(pod.spiffe))[0]
    meta = dict(call["metadata"])
    assert meta["x_region"] == "north" and meta["clusterid"] == "c-9" and "other" not in meta


def test_h03_token_is_read_for_every_call(lab, ca):
    ca.script(mode="error", code="UNAUTHENTICATED", words="token is not known")
    pod = lab.pod("client")
    start(lab, ca, pod)
    lab.wait_log("The request does not have valid authentication credentials", "token is not known")
    (lab.tmp / "token").write_text("token-2")
    ca.script(mode="ok")
    wait_for("the new token", lambda: any(dict(c["metadata"])["authorization"] == "Bearer token-2"
                                          for c in ca.calls(pod.spiffe)), timeout=PATIENCE + 10)


def test_h04_token_file_comes_late(lab, ca):
    """What looks like a path is one: its absence is named, nothing is sent in its place, and it heals."""
    pod = lab.pod("client")
    lab.write_mesh()
    lab.start_agent()
    late = lab.tmp / "late-token"
    lab.start_daemon(ready=False, **ca.env(AUTH_TOKEN=late))
    lab.add(pod)
    lab.wait_log("certificate for", f"cannot read token file {late}")
    assert not ca.calls()
    late.write_text("token-late")
    call = wait_for("a call", lambda: ca.calls(pod.spiffe), timeout=PATIENCE + 15)[0]
    assert dict(call["metadata"])["authorization"] == "Bearer token-late"


def test_h05_empty_token_file(lab, ca):
    pod = lab.pod("client")
    start(lab, ca, pod, token="")
    lab.wait_log("certificate for", "token file exists, but was empty")
    assert not ca.calls()


BAD = {
    "empty": "chain returned from CA is empty for: ",
    "leaf_only": "no root certificate present",
    "no_root": "no root certificate present",
    "rubbish": "failed to create CSR: element 0 of the chain",
    "other_identity": "did not find expected SAN: ",
    "expired": "expired at ",
    "foreign_key": "the certificate was not issued for our key",
    "error": "signing gRPC error (The caller does not have permission to execute the specified operation): not you",
}


@pytest.mark.parametrize("mode", BAD)
def test_h10_bad_answers(lab, ca, mode):
    """One clear line, a pod that does not speak meanwhile, and a certificate at the next try."""
    ca.script(mode=mode, code="PERMISSION_DENIED", words="not you")
    client, server = lab.pod("client"), lab.pod("server")
    start(lab, ca, client, server, served=[server])
    line = lab.wait_log("certificate for", server.spiffe, BAD[mode])[0]
    assert "\\n" not in line
    assert get(lab, check=False, timeout=4).returncode != 0
    assert len(ca.calls(server.spiffe)) <= 5, "retries wait"
    ca.script(mode="ok")
    works(lab)


def test_h11_nobody_there(lab, ca):
    """The line names the address and why; the CA's return is enough."""
    ca.stop()
    client, server = lab.pod("client"), lab.pod("server")
    start(lab, ca, client, server, served=[server])
    lab.wait_log("certificate for", "The service is currently unavailable", f"{ca.host}:{ca.port}", "Connection refused")
    ca.start()
    works(lab)


def test_h12_unknown_server(lab, ca):
    """A CA whose own certificate leads elsewhere is refused."""
    pod = lab.pod("client")
    start(lab, ca, pod, CA_ROOT_CA=ca.root("b"))
    lab.wait_log("certificate for", f"{ca.host}:{ca.port}", "tls handshake error")
    assert not ca.calls()


@pytest.fixture
def etc(lab):
    """The node's own /etc/hosts and /etc/resolv.conf, which `ip netns exec` puts in place of the machine's."""
    folder = Path("/etc/netns") / lab.node
    folder.mkdir(parents=True)
    (folder / "hosts").write_text("127.0.0.1 localhost\n")
    (folder / "resolv.conf").write_text(f"search one.test two.test\noptions ndots:5\nnameserver 127.0.0.1\n"
                                        f"nameserver 10.{lab.net}.0.1\n")
    yield folder
    shutil.rmtree(folder)
    try:
        folder.parent.rmdir()
    except OSError:
        pass


def test_h13_name_is_checked(lab, etc, ca):
    """The host of the address must be in the certificate."""
    pod = lab.pod("client")
    (etc / "hosts").write_text(f"{ca.host} ca.test wrong.test\n")
    start(lab, ca, pod, CA_ADDRESS=f"wrong.test:{ca.port}")
    lab.wait_log("certificate for", f"wrong.test:{ca.port}", "did not present the expected SAN")
    assert not ca.calls()


def test_h15_other_name(lab, etc, ca):
    """... unless ALT_CA_HOSTNAME is. The first address of a name may be dead."""
    client, server = lab.pod("client"), lab.pod("server")
    (etc / "hosts").write_text(f"127.0.0.1 wrong.test\n{ca.host} wrong.test\n")
    start(lab, ca, client, server, served=[server], CA_ADDRESS=f"wrong.test:{ca.port}", ALT_CA_HOSTNAME="ca.test")
    works(lab)


def test_h18_a_bad_server_hides_no_good_one(lab, etc, ca):
    """The first address of the name takes connections and speaks no TLS; the second is the CA."""
    client, server = lab.pod("client"), lab.pod("server")
    (etc / "hosts").write_text(f"127.0.0.1 ca.test\n{ca.host} ca.test\n")
    code = "import socket, sys\ns = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n" \
        "while True:\n  c, _ = s.accept(); c.recv(9); c.sendall(b'hello hello'); c.close()\n"
    bad = subprocess.Popen(["ip", "netns", "exec", lab.node, sys.executable, "-c", code, str(ca.port)])
    try:
        wait_for("the bad server", lambda: f"127.0.0.1:{ca.port} " in run(
            "ip", "netns", "exec", lab.node, "ss", "-ltnH").stdout)
        start(lab, ca, client, server, served=[server], CA_ADDRESS=f"ca.test:{ca.port}", RUST_LOG="debug")
        works(lab)
        lab.wait_log("127.0.0.1", "trying the next address")
    finally:
        bad.kill()
        bad.wait()


DNS = """
import socket, sys
host, log = sys.argv[1], open(sys.argv[2], "a")
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((host, 53))
while True:
    data, peer = s.recvfrom(4096)
    at, name = 12, []
    while data[at]:
        name.append(data[at + 1:at + 1 + data[at]].decode())
        at += 1 + data[at]
    kind = data[at + 2]
    question = data[12:at + 5]
    name = ".".join(name)
    print(name, kind, file=log, flush=True)
    good = name == "ca.test"
    answer = b""
    if good and kind == 1:
        answer = b"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\x1e\\0\\4" + socket.inet_aton(host)
    # Addresses come "truncated", as of a name with very many: those that are there will do.
    flags = b"\\x83\\x80" if answer else b"\\x81\\x80" if good else b"\\x81\\x83"
    s.sendto(data[:2] + flags + b"\\0\\1" + (b"\\0\\1" if answer else b"\\0\\0")
             + b"\\0\\0\\0\\0" + question + answer, peer)
"""


def test_h16_name_is_resolved(lab, etc, ca):
    """By the second server (nobody answers at the first), after the search list."""
    client, server = lab.pod("client"), lab.pod("server")
    log = lab.tmp / "dns.log"
    dns = subprocess.Popen(["ip", "netns", "exec", lab.node, sys.executable, "-c", DNS, ca.host, str(log)])
    try:
        start(lab, ca, client, server, served=[server], CA_ADDRESS=f"ca.test:{ca.port}")
        works(lab)
    finally:
        dns.kill()
        dns.wait()
    asked = log.read_text().split("\n")
    assert asked.index("ca.test.one.test 1") < asked.index("ca.test.two.test 1") < asked.index("ca.test 1")
    assert "ca.test 28" in asked


def test_h17_name_is_not_resolved(lab, etc, ca):
    pod = lab.pod("client")
    (etc / "resolv.conf").write_text("")
    start(lab, ca, pod, CA_ADDRESS=f"ca.test:{ca.port}")
    lab.wait_log("certificate for", f"ca.test:{ca.port}", "no usable nameserver")


def test_h14_plain_http(lab, ca):
    pod = lab.pod("client")
    start(lab, ca, pod, CA_ADDRESS=f"http://{ca.host}:{ca.port}")
    lab.wait_log("certificate for", "unsupported scheme http")


def test_h20_renewal_at_half_life(lab, ca):
    """Certificates of 16 seconds are renewed long before their end; connections go on working all the time."""
    ca.script(ttl=16)
    client, server = lab.pod("client"), lab.pod("server")
    start(lab, ca, client, server, served=[server])
    works(lab)
    seen = set()
    until = time.monotonic() + 60
    while len(seen) < 3 and time.monotonic() < until:
        assert get(lab).returncode == 0
        seen.update(serials(lab, client)[:1])
        time.sleep(0.5)
    assert len(seen) >= 3


def test_h21_outage_keeps_a_valid_certificate(lab, ca):
    """While the CA is away the certificate serves to its end, then no longer; afterwards all is well."""
    ca.script(ttl=20)
    client, server = lab.pod("client"), lab.pod("server")
    start(lab, ca, client, server, served=[server])
    works(lab)
    ca.stop()
    lab.wait_log("certificate for", "failed, trying again", timeout=40)
    assert get(lab).returncode == 0
    wait_for("the end of the certificate", lambda: get(lab, check=False, timeout=3).returncode != 0, timeout=60)
    ca.script(ttl=3600)
    ca.start()
    works(lab, timeout=60)


def test_h22_root_rotation(lab, ca):
    """One side is renewed under a new root, both trust both: new connections work all along."""
    ca.script(ttl=16, roots=["a", "b"])
    client, server = lab.pod("client"), lab.pod("server")
    start(lab, ca, client, server, served=[server])
    works(lab)
    ca.script(identities={server.spiffe: {"sign": "b"}})
    before = len(ca.calls(server.spiffe))
    until = time.monotonic() + 60
    while len(ca.calls(server.spiffe)) < before + 2 and time.monotonic() < until:
        assert get(lab).returncode == 0
        time.sleep(0.3)
    assert len(ca.calls(server.spiffe)) >= before + 2
    assert "O = root-b-mid" in chain_of(lab, server, ca.root("b"))


def test_h23_root_file_is_read_again(lab, ca):
    """Garbage in the file leaves the roots in use; when the CA moves to another root, the file's change is enough."""
    client, server = lab.pod("client"), lab.pod("server")
    roots = lab.tmp / "ca-roots.pem"
    roots.write_text((ca.folder / "server-root.pem").read_text())
    ca.script(ttl=16)
    start(lab, ca, client, server, served=[server], CA_ROOT_CA=roots)
    works(lab)
    roots.write_text("garbage")
    before = len(ca.calls(client.spiffe))
    lab.wait_log("the root certificates read before stay in use", str(roots), timeout=40)
    wait_for("a renewal meanwhile", lambda: len(ca.calls(client.spiffe)) > before, timeout=40)
    ca.stop()
    ca.start()
    new = roots.with_suffix(".new")
    new.write_text((ca.folder / "server-root.pem").read_text())
    before = len(ca.calls(client.spiffe))
    new.rename(roots)
    wait_for("a renewal", lambda: len(ca.calls(client.spiffe)) > before, timeout=60)
    works(lab)


def many(lab, cnt):
    return [lab.pod(f"p{i}") for i in range(cnt)]


def test_h30_at_most_eight_at_once(lab, ca):
    """Forty pods at once: the server never has more than eight requests, and all get their certificate."""
    ca.script(delay=0.3)
    pods = many(lab, 40)
    start(lab, ca, *pods)
    wait_for("all certificates", lambda: {c["identity"] for c in ca.calls()} == {p.spiffe for p in pods}, timeout=60)
    # The server counts a call from its own turn on, so that a slow one may see fewer than there are.
    assert 4 <= max(c["at_once"] for c in ca.calls()) <= 8
    assert len(ca.calls()) == 40


def test_h31_those_with_a_connection_go_first(lab, ca):
    """The last of a long queue is asked for by a connection: it passes the others, and is not asked for twice."""
    ca.script(delay=1.5)
    pods = many(lab, 30)
    start(lab, ca, *pods[:-1])
    last = pods[-1]
    lab.add(last)
    proc = last.popen("curl", "-s", "--max-time", "20", f"http://{pods[0].ip}:8080/")
    wait_for("its request", lambda: ca.calls(last.spiffe), timeout=40)
    order = [c["identity"] for c in ca.calls()]
    assert order.index(last.spiffe) < 24, order
    wait_for("all requests", lambda: len(ca.calls()) >= 30, timeout=60)
    proc.wait()
    assert len(ca.calls(last.spiffe)) == 1


def test_h32_a_failing_identity_delays_nobody(lab, ca):
    """Ten identities that always fail, and one that hangs: the others have their certificates meanwhile."""
    bad, good = many(lab, 10), [lab.pod(f"g{i}") for i in range(6)]
    ca.script(identities={p.spiffe: {"mode": "error", "code": "INTERNAL", "words": "never"} for p in bad})
    ca.script(identities={bad[0].spiffe: {"mode": "hang"}})
    start(lab, ca, *bad, *good)
    wait_for("the good ones", lambda: {c["identity"] for c in ca.calls()} >= {p.spiffe for p in good}, timeout=30)
    lab.wait_log("certificate for", bad[1].spiffe, "Internal error", "never")
    lab.wait_log("certificate for", bad[0].spiffe, "Deadline expired before operation could complete", timeout=40)
    wait_for("their certificates", lambda: all(serials(lab, p) for p in good))


def test_h33_a_hanging_ca_gives_its_places_back(lab, ca):
    """All eight places hang; once they are given back everybody is served."""
    pods = many(lab, 9)
    ca.script(mode="hang")
    start(lab, ca, *pods)
    wait_for("eight calls", lambda: len(ca.calls()) >= 8)
    ca.script(mode="ok")
    wait_for("all", lambda: all(serials(lab, p) for p in pods), timeout=60)


def test_h34_an_idle_node_is_idle(two, ca):
    """With all certificates in hand the broker does nothing: no loop, no call."""
    works(two)
    pid = two.pid_of("broker")
    calls = len(ca.calls())

    def spent():
        fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    before = spent()
    time.sleep(3)
    assert spent() - before <= 15, "hundredths of a second in three"
    assert len(ca.calls()) == calls


# What a server that gets gRPC wrong does, and what is said of it.
ODD = {
    "http503": "(The service is currently unavailable): ",
    "html": "the answer is no gRPC",
    "trailers_only": "(The caller does not have permission to execute the specified operation): go away",
    "refused": "(The service is currently unavailable): ",
    "calm": "(Some resource has been exhausted): ",
    "goaway": "connection lost",
    "cut": "connection lost",
    "gzip": "(Operation is not implemented or not supported): Content is compressed with `gzip`",
    "compressed": "compressed-flag",
    "huge": "the limit is: 4194304 bytes",
    "half": "Unexpected EOF decoding stream",
    "rubbish": "IstioCertificateResponse",
    "bad_utf8": "IstioCertificateResponse",
    "two": "a second message in a unary answer",
    "nothing": "Missing response message",
    "no_status": "ended the call without a status",
}


def test_h40_odd_servers(lab):
    """Every way to get gRPC wrong ends the call with one clear line, and the next try is made by the back-off."""
    folder = lab.tmp / "odd"
    folder.mkdir()
    (folder / "mode").write_text("http503")
    pods = [lab.pod(f"p{i}") for i in range(len(ODD))]
    with open(folder / "log", "w") as out:
        odd = subprocess.Popen(["ip", "netns", "exec", lab.node, sys.executable,
                                str(Path(__file__).parent / "culvert_e2e" / "odd_grpc.py"), str(folder),
                                f"10.{lab.net}.0.1"], stdout=out, stderr=subprocess.STDOUT)
    try:
        wait_for("its port", (folder / "port").exists, timeout=30)
        lab.write_mesh()
        lab.start_agent()
        lab.start_daemon(ready=False, FAKE_CA="false", CA_ROOT_CA=folder / "server-root.pem", AUTH_TOKEN="",
                         CA_ADDRESS=f"10.{lab.net}.0.1:{(folder / 'port').read_text()}")
        for pod, (mode, words) in zip(pods, ODD.items()):
            (folder / "mode").write_text(mode)
            lab.add(pod)
            lab.wait_log("certificate for", f"/{pod.sa} failed, trying again in", words)
        seen = (folder / "seen").read_text().split("\n")
        assert len(seen) < 200, "no loop"
        assert lab.pid_of("broker")
    finally:
        odd.kill()
        odd.wait()


def test_h41_a_dead_connection_is_replaced(lab, ca):
    """The server stops without a word; its successor at the address is found although the old connection stands."""
    ca.script(ttl=16)
    client, server = lab.pod("client"), lab.pod("server")
    start(lab, ca, client, server, served=[server])
    works(lab)
    old = ca.proc
    old.send_signal(signal.SIGSTOP)
    try:
        lab.wait_log("certificate for", "Deadline expired before operation could complete", timeout=60)
    finally:
        old.kill()
        old.wait()
    ca.start()
    works(lab, timeout=60)
