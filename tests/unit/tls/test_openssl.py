#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""TLS sessions against the openssl tool, both ways: who is let in, what is negotiated, what is carried.

usage: test_openssl.py PEER-PROGRAM [unittest arguments]
"""
import hashlib
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PEER = ""
ALICE = "spiffe://cluster.local/ns/default/sa/alice"
BOB = "spiffe://cluster.local/ns/default/sa/bob"
STRANGER = "spiffe://other.domain/ns/default/sa/bob"
LIMIT = 20  # seconds a step may take

CONFIG = """
[ca]
default_ca = ca
[ca]
database = index
serial = serial
new_certs_dir = .
default_md = sha256
policy = policy
unique_subject = no
[policy]
organizationName = optional
commonName = optional
[req]
distinguished_name = dn
[dn]
"""


def openssl(*args, cwd):
    done = subprocess.run(["openssl", *args], cwd=cwd, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {' '.join(args)}: {done.stderr}")
    return done.stdout


class Authority:
    """A certificate authority of the openssl tool in a folder of its own."""

    def __init__(self, top, name, kind="ec", parent=None):
        self.dir = os.path.join(top, name)
        os.mkdir(self.dir)
        for file, text in (("index", ""), ("serial", "1000\n"), ("conf", CONFIG)):
            with open(os.path.join(self.dir, file), "w", encoding="ascii") as f:
                f.write(text)
        self.cert, self.key = self.path("ca.pem"), self.path("ca.key")
        make_key(self.key, kind)
        if parent:
            parent.sign(self.key, self.cert, "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n", f"/O={name}")
        else:
            openssl("req", "-x509", "-new", "-key", self.key, "-subj", f"/O={name}", "-days", "30", "-out", self.cert,
                    "-addext", "keyUsage=critical,keyCertSign,cRLSign", cwd=self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def sign(self, key, out, extensions, subject="/", start=-3600, end=3600):
        csr, ext = out + ".csr", out + ".ext"
        with open(ext, "w", encoding="ascii") as f:
            f.write(extensions)
        openssl("req", "-new", "-key", key, "-subj", subject, "-out", csr, "-config", "conf", cwd=self.dir)
        openssl("ca", "-batch", "-config", "conf", "-cert", self.cert, "-keyfile", self.key, "-in", csr, "-out", out,
                "-startdate", stamp(start), "-enddate", stamp(end), "-extfile", ext, "-notext", cwd=self.dir)

    def leaf(self, name, sans, usage="extendedKeyUsage=serverAuth,clientAuth\n", kind="ec", start=-3600, end=3600):
        """Key and certificate files of a leaf with these SANs."""
        key, out = self.path(name + ".key"), self.path(name + ".pem")
        make_key(key, kind)
        extensions = "basicConstraints=critical,CA:FALSE\n" + usage
        if sans:
            extensions += "subjectAltName=critical," + ",".join(sans) + "\n"
        self.sign(key, out, extensions, "/", start, end)
        return key, out


def stamp(offset):
    return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + offset))


def make_key(path, kind):
    args = ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"] if kind == "rsa" else \
        ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
    openssl("genpkey", *args, "-out", path, cwd="/")


def uri(identity):
    return "URI:" + identity


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listening(port):
    """Whether a socket listens, without connecting to it: s_server -naccept counts connections."""
    with open("/proc/net/tcp", encoding="ascii") as f, open("/proc/net/tcp6", encoding="ascii") as g:
        return any(re.search(rf":{port:04X} [0-9A-F]+:0000 0A", line) for line in f.readlines() + g.readlines())


class World(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp(prefix="culvert-tls-")
        cls.ca = Authority(cls.top, "mesh")
        cls.other = Authority(cls.top, "other")
        cls.rsa = Authority(cls.top, "rsa", kind="rsa")
        cls.middle = Authority(cls.top, "middle", parent=cls.ca)
        cls.alice = cls.ca.leaf("alice", [uri(ALICE)])
        cls.bob = cls.ca.leaf("bob", [uri(BOB)])

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.top)

    def server(self, client_args, peer_args=(), leaf=None, roots=None, steps=()):
        """Our server, openssl s_client. `steps` are lines for s_client and what must come before the next (None: nothing).
        Returns (our exit status, our report, s_client's output)."""
        key, cert = leaf or self.bob
        with subprocess.Popen([PEER, "server", "0", "--key", key, "--chain", cert, "--roots", roots or self.ca.cert, *peer_args],
                              stderr=subprocess.PIPE, text=True) as peer:
            port = int(peer.stderr.readline().split()[1])
            with subprocess.Popen(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-CAfile", self.ca.cert, *client_args],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0) as client:
                try:
                    out = self.converse(client, steps)
                finally:
                    client.kill()
            try:
                report = peer.communicate(timeout=LIMIT)[1]
            finally:
                peer.kill()
        return peer.returncode, report, out

    def converse(self, process, steps):
        """Sends each line when the answer to the one before has come; then reads to the end, the input left open."""
        out = b""
        end = time.time() + LIMIT
        for line, answer in [*steps, (b"", None)]:
            process.stdin.write(line)
            last = answer is None
            while last or not re.search(answer, out):
                self.assertLess(time.time(), end, out)
                if not select.select([process.stdout], [], [], 0.2)[0]:
                    continue
                more = os.read(process.stdout.fileno(), 65536)
                out += more
                if not more:
                    return out.decode(errors="replace")
        return out.decode(errors="replace")

    def client(self, server_args, peer_args, leaf=None, roots=None, text=b"hello\n", server_leaf=None, ours=True):
        """openssl s_server, our client. Returns (our exit status, our report, what we read, s_server's output)."""
        key, cert = leaf or self.alice
        server_key, server_cert = server_leaf or self.bob
        port = free_port()
        server = subprocess.Popen(["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-key", server_key, "-cert", server_cert,
                                   "-naccept", "1", *server_args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, cwd=self.top)
        try:
            end = time.time() + LIMIT
            while not listening(port):
                self.assertIsNone(server.poll(), "s_server did not start")
                self.assertLess(time.time(), end)
                time.sleep(0.02)
            mine = ["--key", key, "--chain", cert] if ours else []
            done = subprocess.run([PEER, "client", str(port), "--roots", roots or self.ca.cert, *mine, *peer_args],
                                  input=text, capture_output=True, timeout=LIMIT)
            server.stdin.close()
            try:
                server.wait(timeout=3)
            except subprocess.TimeoutExpired:
                server.terminate()
            out = server.stdout.read().decode(errors="replace")
        finally:
            server.kill()
            server.wait()
            server.stdout.close()
        return done.returncode, done.stderr.decode(), done.stdout, out


def as_client(leaf):
    return ["-key", leaf[0], "-cert", leaf[1]]


class OurServer(World):
    def accepted(self, client_args, want, **kw):
        code, report, out = self.server(client_args, steps=[(b"hello\n", rb"(?m)^hello$"), (b"Q\n", None)], **kw)
        self.assertEqual(code, 0, report + out)
        self.assertRegex(report, want)
        self.assertIn("closed", report)
        self.assertRegex(out, r"(?m)^hello$")
        return out

    def refused(self, client_args, reason, alert, **kw):
        code, report, out = self.server(client_args, **kw)
        self.assertEqual(code, 1, report + out)
        self.assertNotIn("established", report)
        self.assertIn("failed " + reason, report)
        if alert:
            self.assertIn(f"SSL alert number {alert}", out)

    def test_good(self):
        out = self.accepted(as_client(self.alice) + ["-alpn", "h2", "-verify_return_error"],
                            rf"established TLSv1.3 TLS_AES_256_GCM_SHA384 X25519 h2 {ALICE}")
        self.assertIn("ALPN protocol: h2", out)
        self.assertIn("Verification: OK", out)
        self.assertNotIn("New Session Ticket", out)

    def test_no_certificate(self):
        self.refused([], "peer sent no certificates", 116)

    def test_unknown_authority(self):
        self.refused(as_client(self.other.leaf("x", [uri(ALICE)])), "invalid peer certificate: UnknownIssuer", 48)

    def test_expired(self):
        self.refused(as_client(self.ca.leaf("old", [uri(ALICE)], start=-7200, end=-60)), "invalid peer certificate: Expired", 45)

    def test_not_yet(self):
        self.refused(as_client(self.ca.leaf("new", [uri(ALICE)], start=600)), "invalid peer certificate: NotValidYet", 45)

    def test_trust_domain(self):
        self.refused(as_client(self.ca.leaf("stranger", [uri(STRANGER)])), "identity verification error: peer did not present the "
                     rf"expected trust domain (cluster.local), got [{STRANGER}]", 46)

    def test_no_spiffe_name(self):
        self.refused(as_client(self.ca.leaf("dns", ["DNS:alice.example"])), "identity verification error", 46)
        self.refused(as_client(self.ca.leaf("none", [])), "identity verification error", 46)

    def test_several_names(self):
        leaf = self.ca.leaf("several", ["DNS:alice.example", uri(STRANGER), uri(ALICE)])
        self.accepted(as_client(leaf), rf"established .* {STRANGER}")

    def test_key_usage(self):
        self.refused(as_client(self.ca.leaf("server-only", [uri(ALICE)], usage="extendedKeyUsage=serverAuth\n")),
                     "invalid peer certificate: InvalidPurpose", 43)
        self.accepted(as_client(self.ca.leaf("no-usage", [uri(ALICE)], usage="")), f"established .* {ALICE}")

    def test_forged(self):
        """Signed by another key that calls itself the same authority."""
        twin = Authority(tempfile.mkdtemp(dir=self.top), "mesh")
        self.refused(as_client(twin.leaf("x", [uri(ALICE)])), "invalid peer certificate: ", None)

    def test_intermediate(self):
        leaf = self.middle.leaf("far", [uri(ALICE)])
        self.refused(as_client(leaf), "invalid peer certificate: UnknownIssuer", 48)
        self.accepted(as_client(leaf) + ["-cert_chain", self.middle.cert], f"established .* {ALICE}")

    def test_several_roots(self):
        bundle = os.path.join(self.top, "roots.pem")
        with open(bundle, "w", encoding="ascii") as out:
            out.write("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
            for authority in (self.other, self.rsa, self.ca):
                with open(authority.cert, encoding="ascii") as f:
                    out.write(f.read())
        for name, authority in (("o", self.other), ("r", self.rsa), ("c", self.ca)):
            self.accepted(as_client(authority.leaf("multi-" + name, [uri(ALICE)])), f"established .* {ALICE}", roots=bundle)

    def test_rsa_client(self):
        leaf = self.rsa.leaf("rsa-leaf", [uri(ALICE)], kind="rsa")
        self.accepted(as_client(leaf), f"established .* {ALICE}", roots=self.rsa.cert)

    def test_suites(self):
        self.accepted(as_client(self.alice) + ["-ciphersuites", "TLS_AES_128_GCM_SHA256"], "established TLSv1.3 TLS_AES_128_GCM_SHA256")
        self.refused(as_client(self.alice) + ["-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"], "peer is incompatible", 40)

    def test_groups(self):
        for name, ours in (("X25519", "X25519"), ("P-256", "SECP256R1"), ("P-384", "SECP384R1")):
            self.accepted(as_client(self.alice) + ["-groups", name], f"established TLSv1.3 [^ ]* {ours} ")
        # The library asks again for a group that was not offered instead of sending an alert; it fails all the same.
        self.refused(as_client(self.alice) + ["-groups", "P-521"], "", None)
        self.refused(as_client(self.alice) + ["-groups", "X25519"], "", None, peer_args=["--pqc"])

    def test_alpn(self):
        self.accepted(as_client(self.alice) + ["-alpn", "http/1.1,h2"], "established .* h2 spiffe")
        self.accepted(as_client(self.alice), "established .* none spiffe")
        self.refused(as_client(self.alice) + ["-alpn", "http/1.1"], "peer doesn't support any known protocol", 120)

    def test_version(self):
        self.refused(as_client(self.alice) + ["-tls1_2"], "", 70)
        self.accepted(as_client(self.alice) + ["-tls1_2"], "established TLSv1.2 TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 "
                      rf"\w+ none {ALICE}", peer_args=["--tls12"])
        self.accepted(as_client(self.alice), "established TLSv1.3", peer_args=["--tls12"])
        self.refused(as_client(self.alice) + ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], "", None, peer_args=["--tls12"])

    def test_version_12_identity(self):
        self.refused(as_client(self.ca.leaf("stranger12", [uri(STRANGER)])) + ["-tls1_2"], "identity verification error", 46,
                     peer_args=["--tls12"])
        self.refused(["-tls1_2"], "peer sent no certificates", 40, peer_args=["--tls12"])

    def test_key_update(self):
        code, report, out = self.server(as_client(self.alice), steps=[
            (b"one\n", rb"(?m)^one$"), (b"K\n", rb"KEYUPDATE"), (b"two\n", rb"(?m)^two$"), (b"k\n", rb"(?s)KEYUPDATE.*KEYUPDATE"),
            (b"three\n", rb"(?m)^three$"), (b"Q\n", None)])
        self.assertEqual(code, 0, report + out)
        self.assertIn("KEYUPDATE", out)
        for word in ("one", "two", "three"):
            self.assertRegex(out, rf"(?m)^{word}$")


class OurClient(World):
    def accepted(self, server_args, peer_args, want, **kw):
        code, report, got, out = self.client([*server_args, "-rev", "-Verify", "3", "-verify_return_error", "-CAfile", self.ca.cert],
                                             peer_args, **kw)
        self.assertRegex(report, want, out)
        self.assertEqual(got, b"olleh\n", report + out)
        return out

    def refused(self, server_args, peer_args, reason, **kw):
        code, report, got, out = self.client([*server_args, "-rev"], peer_args, **kw)
        self.assertEqual(code, 1, report + out)
        self.assertNotIn("established", report)
        self.assertIn("failed " + reason, report)
        return out

    # s_server -rev leaves at the line CLOSE, after which our client sees the end.
    def client(self, *args, text=b"hello\nCLOSE\n", **kw):
        return super().client(*args, text=text, **kw)

    def test_good(self):
        self.accepted(["-alpn", "h2"], ["--accept", ALICE, "--accept", BOB],
                      rf"established TLSv1.3 TLS_AES_256_GCM_SHA384 X25519 h2 {BOB}")

    def test_alpn_not_insisted(self):
        self.accepted([], ["--accept", BOB], rf"established .* none {BOB}")

    def test_unexpected_identity(self):
        out = self.refused([], ["--accept", ALICE], "identity verification error: peer did not present the expected SAN "
                           f"({ALICE}), got [{BOB}]")
        self.assertIn("SSL alert number 46", out)
        self.refused([], [], "identity verification error: peer did not present the expected SAN (), got")

    def test_unknown_authority(self):
        out = self.refused([], ["--accept", BOB], "invalid peer certificate: UnknownIssuer",
                           server_leaf=self.other.leaf("y", [uri(BOB)]))
        self.assertIn("SSL alert number 48", out)

    def test_expired(self):
        out = self.refused([], ["--accept", BOB], "invalid peer certificate: Expired",
                           server_leaf=self.ca.leaf("oldbob", [uri(BOB)], start=-7200, end=-60))
        self.assertIn("SSL alert number 45", out)

    def test_key_usage(self):
        out = self.refused([], ["--accept", BOB], "invalid peer certificate: InvalidPurpose",
                           server_leaf=self.ca.leaf("client-only", [uri(BOB)], usage="extendedKeyUsage=clientAuth\n"))
        self.assertIn("SSL alert number 43", out)

    def test_groups_and_suites(self):
        for name, ours in (("P-256", "SECP256R1"), ("P-384", "SECP384R1")):
            self.accepted(["-groups", name], ["--accept", BOB], f"established TLSv1.3 [^ ]* {ours} ")
        self.accepted(["-ciphersuites", "TLS_AES_128_GCM_SHA256"], ["--accept", BOB], "TLS_AES_128_GCM_SHA256")
        self.refused(["-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"], ["--accept", BOB], "received fatal alert: HandshakeFailure")

    def test_version(self):
        self.refused(["-tls1_2"], ["--accept", BOB], "received fatal alert: ProtocolVersion")
        self.accepted(["-tls1_2"], ["--accept", BOB, "--tls12"], "established TLSv1.2 TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")

    def test_offer(self):
        """What the ClientHello says: suites and groups in upstream's order, one key share, ALPN h2, no SNI, no tickets."""
        out = self.accepted(["-trace", "-alpn", "h2"], ["--accept", BOB], "established")
        hello = out[out.index("ClientHello"):out.index("ServerHello")]
        suites = re.findall(r"\{0x\w\w, 0x\w\w\} (TLS_\w+)", hello)
        self.assertEqual([s for s in suites if "RENEGOTIATION" not in s], ["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"])
        groups = hello[hello.index("supported_groups"):]
        self.assertEqual(re.findall(r"\((\d+)\)", groups)[1:5], ["29", "23", "24", "4588"])
        share = hello[hello.index("key_share"):]
        self.assertEqual(re.findall(r"NamedGroup: .*\((\d+)\)", share), ["29"])
        self.assertIn("h2", hello)
        self.assertNotIn("server_name", hello)
        self.assertNotIn("session_ticket", hello)
        self.assertNotIn("psk", hello)

    def test_bulk_from_openssl(self):
        data = os.urandom(6 << 20)
        with open(os.path.join(self.top, "bulk.bin"), "wb") as f:
            f.write(data)
        code, report, got, _ = self.client(["-HTTP"], ["--accept", BOB], text=b"GET /bulk.bin HTTP/1.0\r\n\r\n")
        self.assertIn("established", report)
        self.assertEqual(hashlib.sha256(got[-len(data):]).hexdigest(), hashlib.sha256(data).hexdigest())


class ControlPlane(World):
    def leaf(self, name, sans, **kw):
        return self.ca.leaf(name, sans, usage="extendedKeyUsage=serverAuth\n", **kw)

    def check(self, leaf, peer_args, good):
        code, report, got, out = self.client(["-rev", "-trace"], peer_args, server_leaf=leaf, ours=False, text=b"hello\nCLOSE\n")
        if good:
            self.assertEqual(got, b"olleh\n", report + out)
        else:
            self.assertEqual(code, 1)
            self.assertIn("failed identity verification error: peer did not present the expected SAN", report)
            self.assertIn("certificate_unknown", out.lower().replace("certificate unknown", "certificate_unknown"))
        return out

    def test_name(self):
        leaf = self.leaf("istiod", ["DNS:istiod.istio-system.svc", "DNS:*.example.com", "IP:10.1.2.3", "IP:fd00::5"])
        out = self.check(leaf, ["--name", "ISTIOD.istio-system.svc."], True)
        hello = out[out.index("ClientHello"):out.index("ServerHello")]
        self.assertIn("server_name", hello)
        self.check(leaf, ["--name", "a.example.com"], True)
        self.check(leaf, ["--name", "a.b.example.com"], False)
        self.check(leaf, ["--name", "example.com"], False)
        self.check(leaf, ["--name", "istiod"], False)
        self.check(leaf, ["--name", "localhost", "--alt", "istiod.istio-system.svc"], True)
        self.check(leaf, ["--name", "localhost", "--alt", "istiod.other.svc"], False)

    def test_address(self):
        leaf = self.leaf("istiod-ip", ["DNS:127.0.0.1", "IP:10.1.2.3", "IP:fd00::5"])
        out = self.check(leaf, ["--name", "10.1.2.3"], True)
        hello = out[out.index("ClientHello"):out.index("ServerHello")]
        self.assertNotIn("server_name", hello)
        self.check(leaf, ["--name", "fd00:0::5"], True)
        self.check(leaf, ["--name", "127.0.0.1"], False)

    def test_rsa_server(self):
        leaf = self.rsa.leaf("istiod-rsa", ["DNS:istiod"], kind="rsa")
        code, report, got, out = self.client(["-rev"], ["--name", "istiod"], server_leaf=leaf, ours=False, roots=self.rsa.cert,
                                             text=b"hello\nCLOSE\n")
        self.assertEqual(got, b"olleh\n", report + out)

    def test_no_roots(self):
        code, report, _, _ = self.client(["-rev"], ["--name", "istiod"], server_leaf=self.leaf("z", ["DNS:istiod"]), ours=False,
                                         roots="/dev/null")
        self.assertEqual(code, 1)
        self.assertIn("UnknownIssuer", report)


if __name__ == "__main__":
    PEER = os.path.abspath(sys.argv.pop(1))
    unittest.main()
