"""Certificates and keys as Java's clients keep them: PEM (KIP-651), PKCS12 and JKS.

What a file is its first bytes say, as in Java, which reads JKS under the name of PKCS12 and the
other way round (``keystore.type.compat``). PKCS12 is read by `cryptography`; of JKS, which only
Java reads, its own `keytool` makes PKCS12. Passwords are in no command line and no message, and a
private key lies in a file only encrypted, in a folder of its own, for as long as OpenSSL reads it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import shutil
import ssl
import subprocess
import tempfile
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from analytics.errors import InstallationError

TO_INSTALL: Final = (
    "stores that are PKCS12 or JKS need cryptography, which is not installed here: "
    "pip install 'cryptography>=46' (PEM needs nothing)"
)
PEM: Final = "PEM"
STORE_TYPES: Final = ("PEM", "JKS", "PKCS12")
"""Values of ``ssl.truststore.type`` and ``ssl.keystore.type``."""
_JKS: Final = b"\xfe\xed\xfe\xed"
_SEQUENCE: Final = b"\x30"
"""How DER begins, which PKCS12 is."""
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_CERTIFICATE: Final = "CERTIFICATE"
_PRIVATE_KEY: Final = "PRIVATE KEY"
_KEYTOOL_SECONDS: Final = 60
_IN_ENGLISH: Final = "-J-Duser.language=en"
_KEYTOOL_READ: Final = "keytool error"
"""How it begins what it says of a store."""
_OLD_PASSWORD, _NEW_PASSWORD = "GROUPSCOPE_STORE_PASSWORD", "GROUPSCOPE_COPY_PASSWORD"
"""Names of variables that `keytool` takes passwords from."""


class StoreUnusableError(Exception):
    """A store that cannot be used; the message says why, without secrets."""


@dataclass(frozen=True)
class OwnKey:
    """A client's certificates and its private key.

    Attributes:
        pem: Both, as PEM; the key encrypted or not.
        password: Of the key; empty where it has none.
    """

    pem: bytes = field(repr=False)
    password: str = field(default="", repr=False)


def certificates_in_lines(text: str) -> str:
    """Return certificates as OpenSSL reads them: lines that go on in a properties file are one.

    Raises:
        StoreUnusableError: There are none.
    """
    return _in_lines(text, _CERTIFICATE)


def key_in_lines(text: str) -> str:
    """Return a private key as OpenSSL reads it.

    Raises:
        StoreUnusableError: There is none.
    """
    return _in_lines(text, _PRIVATE_KEY)


def _in_lines(text: str, kind: str) -> str:
    blocks = [
        f"-----BEGIN {label}-----\n{textwrap.fill(''.join(body.split()), 64)}\n"
        f"-----END {label}-----\n"
        for label, body in _BLOCK.findall(text)
        if label.endswith(kind)
    ]
    if not blocks:
        raise StoreUnusableError(f"no PEM: it has no {kind.lower()}")
    return "".join(blocks)


def trusted_certificates(path: str, password: str) -> str:
    """Return the certificates of a truststore of Java as PEM.

    Raises:
        InstallationError: There is no `cryptography`.
        StoreUnusableError: It is none, its password is another one, or it has a private key: its
            own certificates would be trusted, too.
    """
    _check_library()
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415 - optional

    store = _pkcs12(_as_pkcs12(path, password), password)
    if store.key is not None:
        raise StoreUnusableError("it has a private key: a truststore has certificates alone")
    if not store.additional_certs:
        raise StoreUnusableError("it has no certificate")
    found = [each.certificate.public_bytes(Encoding.PEM) for each in store.additional_certs]
    return b"".join(found).decode()


def own_key(path: str, password: str, key_password: str) -> OwnKey:
    """Return what a keystore of Java has: one private key with its certificates.

    Raises:
        InstallationError: There is no `cryptography`.
        StoreUnusableError: It is none, a password is another one, or it has no key.
    """
    _check_library()
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - optional

    store = _pkcs12(_as_pkcs12(path, password, key_password), password)
    if store.key is None or store.cert is None:
        raise StoreUnusableError("it has no private key with a certificate")
    once = secrets.token_hex()
    key = store.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(once.encode()),
    )
    chain = [store.cert, *store.additional_certs]
    certificates = [each.certificate.public_bytes(serialization.Encoding.PEM) for each in chain]
    return OwnKey(b"".join([key, *certificates]), once)


def _check_library() -> None:
    if importlib.util.find_spec("cryptography") is None:
        raise InstallationError(TO_INSTALL)


def load_own_key(context: ssl.SSLContext, key: OwnKey) -> None:
    """Have a context show a client's certificate.

    Raises:
        StoreUnusableError: OpenSSL refuses it, as where its password is another one.
    """
    with tempfile.TemporaryDirectory(prefix="groupscope-") as folder:
        path = Path(folder, "key.pem")
        path.touch(mode=0o600)
        path.write_bytes(key.pem)
        try:
            # Without a password OpenSSL would ask the terminal for it.
            context.load_cert_chain(path, password=key.password)
        except ssl.SSLError as error:
            raise StoreUnusableError(why_not_loaded(error)) from None


def why_not_loaded(error: OSError | ValueError) -> str:
    """Return why OpenSSL does not take a PEM file."""
    if isinstance(error, ssl.SSLError):
        return f"no PEM, or a key of another password ({error.reason or 'not told why'})"
    return (error.strerror if isinstance(error, OSError) else None) or "no PEM"


def _pkcs12(content: bytes, password: str) -> Any:  # noqa: ANN401 - `cryptography` is optional
    from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415

    try:
        return pkcs12.load_pkcs12(content, password.encode())
    except Exception:  # noqa: BLE001 - what it makes of foreign bytes and of other passwords
        raise StoreUnusableError("damaged, or of another password") from None


def _as_pkcs12(path: str, password: str, key_password: str = "") -> bytes:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise StoreUnusableError(error.strerror or "not readable") from None
    if content.startswith(_JKS):
        return _of_jks(path, password, key_password)
    if content.startswith(_SEQUENCE):
        return content
    raise StoreUnusableError("neither PKCS12 nor JKS")


def _of_jks(path: str, password: str, key_password: str) -> bytes:
    """Let Java's own tool make PKCS12 of a JKS file, under the same password."""
    program = _keytool()
    with tempfile.TemporaryDirectory(prefix="groupscope-") as folder:
        copy = Path(folder, "store.p12")
        source = ["-srckeystore", path, "-srcstoretype", "JKS", "-srcstorepass:env", _OLD_PASSWORD]
        target = ["-destkeystore", str(copy), "-deststoretype", "PKCS12"]
        command = [program, _IN_ENGLISH, "-importkeystore", *source, *target, "-deststorepass:env"]
        try:
            subprocess.run(  # noqa: S603 - the tool of the Java that is there
                [*command, _NEW_PASSWORD],
                env={**os.environ, _OLD_PASSWORD: password, _NEW_PASSWORD: password},
                # It asks for the password of a key that has another one than its store.
                input=f"{key_password}\n" * 3,
                capture_output=True,
                encoding="utf-8",
                timeout=_KEYTOOL_SECONDS,
                check=True,
            )
            return copy.read_bytes()
        except subprocess.CalledProcessError as error:
            if _KEYTOOL_READ not in f"{error.stdout}{error.stderr}":
                # Java itself did not start: that says nothing of the store.
                raise StoreUnusableError(f"JKS, and {program} does not run") from None
            raise StoreUnusableError("damaged, or of another password") from None
        except FileNotFoundError:
            raise StoreUnusableError("damaged, or of another password") from None
        except (OSError, subprocess.TimeoutExpired):
            raise StoreUnusableError(f"JKS, and {program} does not read it") from None


def _keytool() -> str:
    home = os.environ.get("JAVA_HOME")
    within = None if not home else shutil.which("keytool", path=str(Path(home, "bin")))
    program = within or shutil.which("keytool")
    if program is None:
        raise StoreUnusableError(
            "JKS, which only Java reads, and there is no keytool in JAVA_HOME or on the PATH; with "
            "one: keytool -importkeystore -srckeystore FILE -destkeystore NEW -deststoretype PKCS12"
        )
    return program
