"""A certificate authority of the tests' own, and stores as Java and OpenSSL keep them."""

from __future__ import annotations

import ipaddress
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12

_VALID: timedelta = timedelta(days=30)
_PEM = serialization.Encoding.PEM


@dataclass(frozen=True)
class Identity:
    """A certificate with its key, and the authority that vouches for it."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    issuer: x509.Certificate

    def certificates(self) -> str:
        """Its chain as PEM."""
        return "".join(each.public_bytes(_PEM).decode() for each in (self.certificate, self.issuer))

    def private_key(self, password: str = "") -> str:
        """Its key as PEM."""
        way = (
            serialization.BestAvailableEncryption(password.encode())
            if password
            else serialization.NoEncryption()
        )
        return self.key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, way).decode()

    def write_pem(self, path: Path, password: str = "") -> Path:
        path.write_text(self.private_key(password) + self.certificates())
        return path

    def write_pkcs12(self, path: Path, password: str) -> Path:
        way = serialization.BestAvailableEncryption(password.encode())
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"own", self.key, self.certificate, [self.issuer], way
            )
        )
        return path

    def write_jks(self, path: Path, password: str, key_password: str | None = None) -> Path:
        """By `keytool`; the key has a password of its own, or that of the store."""
        source = self.write_pkcs12(path.with_suffix(".p12"), password)
        _keytool(
            *("-importkeystore", "-srckeystore", source, "-srcstorepass", password),
            *("-destkeystore", path, "-deststoretype", "JKS", "-deststorepass", password),
            *("-srcalias", "own", "-destkeypass", key_password or password),
        )
        return path


@dataclass(frozen=True)
class Authority:
    """Who signs certificates."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def new(cls, name: str) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        who = _name(name)
        signed = (
            _certificate(who, who, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(key, signed)

    def issue(self, name: str) -> Identity:
        """Vouch for a name; servers at loopback have it too."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName(
            [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        )
        signed = (
            _certificate(_name(name), self.certificate.subject, key)
            .add_extension(names, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return Identity(key, signed, self.certificate)

    def pem(self) -> str:
        return self.certificate.public_bytes(_PEM).decode()

    def write_pem(self, path: Path) -> Path:
        path.write_text(self.pem())
        return path

    def write_truststore(self, path: Path, store_type: str, password: str) -> Path:
        """As Java's own tool writes one."""
        source = self.write_pem(path.with_suffix(".pem"))
        _keytool(
            *("-importcert", "-noprompt", "-alias", "authority", "-file", source),
            *("-keystore", path, "-storetype", store_type, "-storepass", password),
        )
        return path


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return x509.CertificateBuilder(
        subject_name=subject,
        issuer_name=issuer,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - timedelta(days=1),
        not_valid_after=now + _VALID,
    )


def _keytool(*arguments: str | Path) -> None:
    subprocess.run(["keytool", *map(str, arguments)], check=True, capture_output=True, timeout=120)
