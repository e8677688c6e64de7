# SPDX-License-Identifier: GPL-2.0-or-later
"""Certificates of the tests' own making, from the mesh's embedded CA or from a foreign one."""
from __future__ import annotations

import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


class Ca:
    """A signing root: the daemon's own (read from its run directory) or a new foreign one."""

    def __init__(self, key, cert):
        self.key, self.cert = key, cert

    @classmethod
    def from_dir(cls, path: Path):
        key = serialization.load_pem_private_key((path / "ca-root.key").read_bytes(), None)
        return cls(key, x509.load_pem_x509_certificate((path / "ca-root.pem").read_bytes()))

    @classmethod
    def foreign(cls):
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "elsewhere")])
        now = datetime.datetime.now(datetime.timezone.utc)
        cert = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
                .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(hours=1))
                .not_valid_after(now + datetime.timedelta(days=1))
                .add_extension(x509.BasicConstraints(True, None), critical=True).sign(key, hashes.SHA256()))
        return cls(key, cert)

    def issue(self, out: Path, uris, name="peer", before_s=-60, after_s=3600, kind=x509.UniformResourceIdentifier):
        """Writes name.crt, name.key and name-root.crt below out; returns the three paths."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = (x509.CertificateBuilder().subject_name(x509.Name([])).issuer_name(self.cert.subject)
                   .public_key(key.public_key()).serial_number(x509.random_serial_number())
                   .not_valid_before(now + datetime.timedelta(seconds=before_s))
                   .not_valid_after(now + datetime.timedelta(seconds=after_s))
                   .add_extension(x509.ExtendedKeyUsage(
                       [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False))
        if uris:
            names = [kind(u) for u in uris]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=kind is not x509.DNSName)
        cert = builder.sign(self.key, hashes.SHA256())
        pem = serialization.Encoding.PEM
        paths = out / f"{name}.crt", out / f"{name}.key", out / f"{name}-root.crt"
        paths[0].write_bytes(cert.public_bytes(pem))
        paths[1].write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
        paths[2].write_bytes(self.cert.public_bytes(pem))
        return paths

    def issue_server(self, out: Path, names, name="server"):
        """Writes name.crt (the root behind it), name.key and name-root.crt for a server of these host names."""
        return self.issue(out, names, name, kind=x509.DNSName)
