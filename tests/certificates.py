"""Certificates made on the spot: an authority, whom it signs for, and the stores that Java and OpenSSL read."""

from __future__ import annotations

import datetime
import ipaddress
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates as serialize

from srm_spark.jars import java_home


class Identity(NamedTuple):
    """A key pair with its certificate."""

    key: rsa.RSAPrivateKey
    certificate: x509.Certificate

    @property
    def certificate_pem(self) -> str:
        """The certificate as text."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        """The private key as text, not encrypted."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    def encrypted_pem(self, password: str) -> str:
        """The private key as text, as OpenSSL encrypts it today."""
        encryption = BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


def identity(name: str, issuer: Identity | None = None, *, is_ca: bool = False) -> Identity:
    """Who is called `CN=name` on the loopback interface; without an issuer it signs for itself."""
    key = rsa.generate_private_key(65537, 2048)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.timezone.utc)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
    )
    return Identity(key, builder.sign(issuer.key if issuer else key, hashes.SHA256()))


def write_keystore(path: Path, owner: Identity, chain: Sequence[Identity], password: str) -> Path:
    """A PKCS12 keystore: the owner's key, and its certificate with the chain."""
    encryption = BestAvailableEncryption(password.encode())
    others = [found.certificate for found in chain]
    path.write_bytes(serialize(path.stem.encode(), owner.key, owner.certificate, others, encryption))
    return path


def write_truststore(path: Path, trusted: Identity, password: str) -> Path:
    """A truststore with one certificate, by the ending of its name: `.p12` or `.pem`."""
    if path.suffix == ".pem":
        path.write_text(trusted.certificate_pem)
    else:
        encryption = BestAvailableEncryption(password.encode())
        path.write_bytes(serialize_java_truststore([PKCS12Certificate(trusted.certificate, b"ca")], encryption))
    return path


def write_jks(pkcs12: Path, password: str) -> Path:
    """The same store beside it in Java's old format, by Java's own tool."""
    path = pkcs12.with_suffix(".jks")
    source = ["-srckeystore", str(pkcs12), "-srcstoretype", "PKCS12", "-srcstorepass", password]
    target = ["-destkeystore", str(path), "-deststoretype", "JKS", "-deststorepass", password]
    keytool = java_home() / "bin" / "keytool"
    subprocess.run([keytool, "-importkeystore", "-noprompt", *source, *target], check=True, capture_output=True)
    return path
