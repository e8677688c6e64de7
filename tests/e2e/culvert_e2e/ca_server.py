# SPDX-License-Identifier: GPL-2.0-or-later
"""A certificate authority as Istio's, by python's gRPC: the independent peer of the CA client.

Runs as a program of its own, so that it can stand in the node's namespace:
reads what to answer from script.json in its folder before every call, and
appends what it saw to calls.jsonl. CaServer starts it and speaks for it.
"""
from __future__ import annotations

import datetime
import ipaddress
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SERVICE = "istio.v1.auth.IstioCertificateService"
METHOD = f"/{SERVICE}/CreateCertificate"

# Istio's message numbers, written for these tests only; Struct as google.protobuf has it, whose files need not be
# installed.
PROTO = """
syntax = "proto3";
package istio.v1.auth;
message Value { oneof kind { int32 null_value = 1; double number_value = 2; string string_value = 3; bool bool_value = 4; } }
message Struct { map<string, Value> fields = 1; }
message IstioCertificateRequest {
  string csr = 1;
  int64 validity_duration = 3;
  Struct metadata = 4;
}
message IstioCertificateResponse { repeated string cert_chain = 1; }
"""


def messages():
    """Compiles PROTO by protoc; the module with both messages."""
    with tempfile.TemporaryDirectory() as tmp:
        (Path(tmp) / "ca_test.proto").write_text(PROTO)
        subprocess.run(["protoc", f"-I{tmp}", f"--python_out={tmp}", f"{tmp}/ca_test.proto"], check=True)
        sys.path.insert(0, tmp)
        try:
            import ca_test_pb2
        finally:
            sys.path.remove(tmp)
    return ca_test_pb2


class Root:
    """A signing root with one intermediate below it."""

    def __init__(self, name):
        self.key, self.cert = self._make(name, None, None)
        self.mid_key, self.mid = self._make(f"{name}-mid", self.cert, self.key)

    @staticmethod
    def _make(name, issuer, issuer_key):
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, name)])
        now = datetime.datetime.now(datetime.timezone.utc)
        cert = (x509.CertificateBuilder().subject_name(subject)
                .issuer_name(issuer.subject if issuer else subject).public_key(key.public_key())
                .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(hours=1))
                .not_valid_after(now + datetime.timedelta(days=1))
                .add_extension(x509.BasicConstraints(True, None), critical=True)
                .sign(issuer_key or key, hashes.SHA256()))
        return key, cert

    def issue(self, public_key, uri=None, before_s=-5, after_s=3600, dns=(), ips=()):
        """A leaf signed by the intermediate, as a certificate object."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.x509.oid import ExtendedKeyUsageOID
        now = datetime.datetime.now(datetime.timezone.utc)
        names = [x509.UniformResourceIdentifier(uri)] if uri else []
        names += [x509.DNSName(n) for n in dns] + [x509.IPAddress(ipaddress.ip_address(a)) for a in ips]
        return (x509.CertificateBuilder().subject_name(x509.Name([])).issuer_name(self.mid.subject)
                .public_key(public_key).serial_number(x509.random_serial_number())
                .not_valid_before(now + datetime.timedelta(seconds=before_s))
                .not_valid_after(now + datetime.timedelta(seconds=after_s))
                .add_extension(x509.ExtendedKeyUsage(
                    [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
                .add_extension(x509.SubjectAlternativeName(names), critical=True)
                .sign(self.mid_key, hashes.SHA256()))


def pem(cert):
    from cryptography.hazmat.primitives.serialization import Encoding
    return cert.public_bytes(Encoding.PEM).decode()


class Service:
    """Answers by the script; see CaServer.script()."""

    def __init__(self, folder: Path, pb):
        self.folder, self.pb = folder, pb
        self.roots = {"a": Root("root-a"), "b": Root("root-b")}
        self.lock = threading.Lock()
        self.now = 0
        for name, root in self.roots.items():
            (folder / f"root-{name}.pem").write_text(pem(root.cert))

    def rule(self, identity):
        script = json.loads((self.folder / "script.json").read_text())
        return {**script["default"], **script["identities"].get(identity, {})}

    def note(self, **line):
        with self.lock, open(self.folder / "calls.jsonl", "a") as out:
            out.write(json.dumps({"time": time.monotonic(), **line}) + "\n")

    def create(self, request, context):
        from cryptography import x509
        csr = x509.load_pem_x509_csr(request.csr.encode())
        asked = csr.extensions.get_extension_for_class(x509.SubjectAlternativeName).value[0].value
        with self.lock:
            self.now += 1
            at_once = self.now
        rule = self.rule(asked)
        self.note(identity=asked, at_once=at_once, validity=request.validity_duration,
                  struct={k: v.string_value for k, v in request.metadata.fields.items()}
                  if request.HasField("metadata") else None,
                  metadata=[list(pair) for pair in context.invocation_metadata()], signed=csr.is_signature_valid,
                  subject=csr.subject.rfc4514_string(), key=f"{csr.public_key().curve.name} {csr.signature_algorithm_oid._name}",
                  extensions=[[e.oid.dotted_string, e.critical] for e in csr.extensions], label=request.csr.split("\n")[0])
        try:
            return self.answer(rule, asked, csr.public_key(), context)
        finally:
            with self.lock:
                self.now -= 1

    def answer(self, rule, asked, key, context):
        import grpc
        from cryptography.hazmat.primitives.asymmetric import ec
        root = self.roots[rule["sign"]]
        bundle = "".join(pem(self.roots[name].cert) for name in rule["roots"])
        after = rule["ttl"]
        mode = rule["mode"]
        if rule["delay"]:
            time.sleep(rule["delay"])
        if mode == "hang":
            while context.is_active():
                time.sleep(0.05)
        if mode == "error":
            context.abort(getattr(grpc.StatusCode, rule["code"]), rule["words"])
        if mode == "other_identity":
            asked += "-other"
        if mode == "foreign_key":
            key = ec.generate_private_key(ec.SECP256R1()).public_key()
        before = -5
        if mode == "expired":
            before, after = -3600, -60
        chain = [pem(root.issue(key, asked, before, after)), pem(root.mid), bundle]
        if mode == "empty":
            chain = []
        if mode == "leaf_only":
            chain = chain[:1]
        if mode == "rubbish":
            chain[0] = "-----BEGIN CERTIFICATE-----\nrubbish\n-----END CERTIFICATE-----\n"
        if mode == "no_root":
            chain[-1] = "no certificate at all"
        return self.pb.IstioCertificateResponse(cert_chain=chain)


def main(folder, host):
    import grpc
    from concurrent import futures
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    folder = Path(folder)
    pb = messages()
    service = Service(folder, pb)
    key = ec.generate_private_key(ec.SECP256R1())
    # The server's own certificate comes from a root of its own, which the client is told of by a file.
    own = Root("ca-server")
    (folder / "server-root.pem").write_text(pem(own.cert))
    chain = pem(own.issue(key.public_key(), dns=["ca.test"], ips=[host])) + pem(own.mid)
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                               serialization.NoEncryption())
    server = grpc.server(futures.ThreadPoolExecutor(64), maximum_concurrent_rpcs=64)
    handler = grpc.unary_unary_rpc_method_handler(
        service.create, request_deserializer=pb.IstioCertificateRequest.FromString,
        response_serializer=pb.IstioCertificateResponse.SerializeToString)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, {"CreateCertificate": handler})])
    port = server.add_secure_port(f"{host}:0" if len(sys.argv) < 4 else f"{host}:{sys.argv[3]}",
                                  grpc.ssl_server_credentials([(secret, chain.encode())]))
    server.start()
    (folder / "port.new").write_text(str(port))
    (folder / "port.new").rename(folder / "port")
    server.wait_for_termination()


class CaServer:
    """The program above in a lab's node namespace."""

    def __init__(self, lab, name="ca"):
        self.lab, self.folder = lab, lab.tmp / name
        self.folder.mkdir()
        self.host = f"10.{lab.net}.0.1"
        self.port = None
        self.proc = None
        self.default = {"mode": "ok", "ttl": 3600, "sign": "a", "roots": ["a"], "delay": 0,
                        "code": "UNAVAILABLE", "words": ""}
        self.identities = {}
        self.script()
        self.start()

    def script(self, **default):
        """Sets what is answered, from the next call on; a dict under identities= overrides by SPIFFE id."""
        self.identities.update(default.pop("identities", {}))
        self.default.update(default)
        new = self.folder / "script.new"
        new.write_text(json.dumps({"default": self.default, "identities": self.identities}))
        new.rename(self.folder / "script.json")

    def start(self):
        from .lab import wait_for
        (self.folder / "port").unlink(missing_ok=True)
        args = [self.folder, self.host] + ([self.port] if self.port else [])
        with open(self.folder / "log", "a") as out:
            self.proc = subprocess.Popen(
                ["ip", "netns", "exec", self.lab.node, sys.executable, __file__, *map(str, args)],
                stdout=out, stderr=subprocess.STDOUT)
        wait_for("the CA's port", lambda: (self.folder / "port").exists() or self.proc.poll() is not None, timeout=30)
        assert self.proc.poll() is None, (self.folder / "log").read_text()
        self.port = int((self.folder / "port").read_text())

    def stop(self):
        if self.proc and self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()

    def env(self, **extra):
        """Environment of a daemon that uses this CA."""
        return {"FAKE_CA": "false", "CA_ADDRESS": f"https://{self.host}:{self.port}",
                "CA_ROOT_CA": str(self.folder / "server-root.pem"), **extra}

    def calls(self, identity=None):
        path = self.folder / "calls.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [c for c in lines if identity is None or c["identity"] == identity]

    def root(self, name="a"):
        return self.folder / f"root-{name}.pem"

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
