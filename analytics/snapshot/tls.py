"""Which brokers are trusted, and what a client shows them, by the keys of Java's ``SslConfigs``.

Certificates and keys as Java's clients keep them: PEM (KIP-651), PKCS12 and JKS.

What a file is its first bytes say, as in Java, which reads JKS under the name of PKCS12 and the
other way round (``keystore.type.compat``). PKCS12 is read by `cryptography`; of JKS, which only
Java reads, its own `keytool` makes PKCS12. Passwords are in no command line and no message, and a
private key lies in a file only encrypted, and in memory where the system has files there.
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from analytics.errors import InputNotRecognizedError, InstallationError
from analytics.locations import local_path

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
    with _as_file(key.pem) as path:
        try:
            # Without a password OpenSSL would ask the terminal for it.
            context.load_cert_chain(path, password=key.password)
        except ssl.SSLError as error:
            raise StoreUnusableError(why_not_loaded(error)) from None


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Hand over the path of a file for OpenSSL, which reads keys from files only: one in memory.

    Where the system has no such files, it lies in a temporary folder meanwhile.
    """
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("groupscope"), "wb") as file:
            file.write(content)
            file.flush()
            path = f"/proc/self/fd/{file.fileno()}"
            if Path(path).exists():
                yield path
                return
    with tempfile.TemporaryDirectory(prefix="groupscope-") as folder:
        plain = Path(folder, "key.pem")
        plain.touch(mode=0o600)
        plain.write_bytes(content)
        yield str(plain)


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


_HOSTNAME_CHECK: Final = "ssl.endpoint.identification.algorithm"
_TRUST_TYPE: Final = "ssl.truststore.type"
_TRUST_FILE: Final = "ssl.truststore.location"
_TRUST_PASSWORD: Final = "ssl.truststore.password"  # noqa: S105 - the key's name
_TRUST_TEXT: Final = "ssl.truststore.certificates"
_OWN_TYPE: Final = "ssl.keystore.type"
_OWN_FILE: Final = "ssl.keystore.location"
_OWN_PASSWORD: Final = "ssl.keystore.password"  # noqa: S105 - likewise
_OWN_CHAIN: Final = "ssl.keystore.certificate.chain"
_OWN_KEY: Final = "ssl.keystore.key"
_KEY_PASSWORD: Final = "ssl.key.password"  # noqa: S105 - likewise
TLS_KEYS: Final = frozenset(
    {
        *(_HOSTNAME_CHECK, _TRUST_TYPE, _TRUST_FILE, _TRUST_PASSWORD, _TRUST_TEXT),
        *(_OWN_TYPE, _OWN_FILE, _OWN_PASSWORD, _OWN_CHAIN, _OWN_KEY, _KEY_PASSWORD),
    }
)
_USUAL_TYPE: Final = "JKS"
"""Of stores, for Java's clients."""


def refused(where: str, key: str, why: str) -> InputNotRecognizedError:
    """Return the error of a key that cannot be gone by."""
    return InputNotRecognizedError(f"{where}: {key} is {why}")


@dataclass(frozen=True)
class TlsMaterial:
    """What certificates are trusted, and the client's own: all of it, whatever files it was in.

    Attributes:
        trusted: Certificates as PEM; null for those that the system trusts.
        own: What the client shows; null where it shows nothing.
        checks_names: A broker's certificate has to be of its name.
    """

    trusted: str | None = None
    own: OwnKey | None = None
    checks_names: bool = True

    def context(self) -> ssl.SSLContext:
        """Return a context of it.

        Raises:
            StoreUnusableError: OpenSSL refuses the client's key.
            OSError: OpenSSL refuses certificates.
            ValueError: Likewise.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.checks_names
        if self.trusted is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(cadata=self.trusted)
        if self.own is not None:
            load_own_key(context, self.own)
        return context


def tls_material(properties: Mapping[str, str], where: str) -> TlsMaterial:
    """Return what certificates are trusted, and the client's own.

    Args:
        properties: By key.
        where: The file, for errors.

    Raises:
        InputNotRecognizedError: A key is not understood, lacks another one, or names a file that
            cannot be used.
    """
    check = properties.get(_HOSTNAME_CHECK, "https").strip().lower()
    if check not in ("", "https"):
        raise refused(where, _HOSTNAME_CHECK, "neither https nor empty")
    trusting = TlsMaterial(_trusted(properties, where), checks_names=bool(check))
    with _usable(where, _TRUST_TEXT if _TRUST_TEXT in properties else _TRUST_FILE):
        trusting.context()
    if not any(each in properties for each in (_OWN_FILE, _OWN_CHAIN, _OWN_KEY)):
        _check_alone(properties, where, (_OWN_TYPE, _OWN_PASSWORD, _KEY_PASSWORD), _OWN_FILE)
        return trusting
    with _usable(where, _OWN_FILE if _OWN_FILE in properties else _OWN_KEY):
        showing = replace(trusting, own=_own(properties, where))
        showing.context()
    return showing


@contextmanager
def _usable(where: str, key: str) -> Iterator[None]:
    """Refuse what a key names where it cannot be used.

    Raises:
        InputNotRecognizedError: It cannot.
    """
    try:
        yield
    except StoreUnusableError as error:
        raise refused(where, key, f"not usable: {error}") from None
    except (OSError, ValueError) as error:
        raise refused(where, key, f"not usable: {why_not_loaded(error)}") from None


def _trusted(properties: Mapping[str, str], where: str) -> str | None:
    file, text = properties.get(_TRUST_FILE), properties.get(_TRUST_TEXT)
    if file is None and text is None:
        _check_alone(properties, where, (_TRUST_PASSWORD,), _TRUST_FILE)
        return None
    if file is not None and text is not None:
        raise refused(where, _TRUST_TEXT, f"given beside {_TRUST_FILE}; one of them is enough")
    is_pem = _is_pem(properties, where, _TRUST_TYPE)
    with _usable(where, _TRUST_TEXT if file is None else _TRUST_FILE):
        if file is None:
            _check_text(properties, where, _TRUST_TYPE, _TRUST_TEXT)
            return certificates_in_lines(text or "")
        if is_pem:
            _check_without_password(properties, where, _TRUST_PASSWORD, _TRUST_TYPE)
            # Between certificates there may be remarks in any encoding.
            return certificates_in_lines(Path(local_path(file)).read_text(encoding="latin-1"))
        password = _password(properties, where, _TRUST_PASSWORD, _TRUST_TYPE)
        return trusted_certificates(local_path(file), password)


def _own(properties: Mapping[str, str], where: str) -> OwnKey:
    key_password = properties.get(_KEY_PASSWORD, "")
    is_pem = _is_pem(properties, where, _OWN_TYPE)
    file = properties.get(_OWN_FILE)
    if file is None:
        _check_text(properties, where, _OWN_TYPE, _OWN_KEY)
        for key, other in ((_OWN_KEY, _OWN_CHAIN), (_OWN_CHAIN, _OWN_KEY)):
            if key not in properties:
                raise InputNotRecognizedError(f"{where}: there is {other} and no {key}")
        key = key_in_lines(properties[_OWN_KEY])
        chain = certificates_in_lines(properties[_OWN_CHAIN])
        return OwnKey((key + chain).encode(), key_password)
    for key in (_OWN_CHAIN, _OWN_KEY):
        if key in properties:
            raise refused(where, key, f"given beside {_OWN_FILE}; one of them is enough")
    if is_pem:
        _check_without_password(properties, where, _OWN_PASSWORD, _OWN_TYPE)
        return OwnKey(Path(local_path(file)).read_bytes(), key_password)
    password = _password(properties, where, _OWN_PASSWORD, _OWN_TYPE)
    return own_key(local_path(file), password, key_password or password)


def _is_pem(properties: Mapping[str, str], where: str, key: str) -> bool:
    store_type = properties.get(key, _USUAL_TYPE).strip().upper()
    if store_type not in STORE_TYPES:
        raise refused(where, key, f"none of {', '.join(STORE_TYPES)}")
    return store_type == PEM


def _check_text(properties: Mapping[str, str], where: str, key: str, text: str) -> None:
    """Check that what stands in the properties themselves is declared as PEM (KIP-651)."""
    if not _is_pem(properties, where, key):
        raise InputNotRecognizedError(
            f"{where}: {key} is not {PEM} (Java's clients take {_USUAL_TYPE} where it is not "
            f"given), and {text} can be nothing else"
        )


def _check_alone(
    properties: Mapping[str, str], where: str, keys: tuple[str, ...], needed: str
) -> None:
    for key in keys:
        if key in properties:
            raise InputNotRecognizedError(f"{where}: there is {key} and no {needed}")


def _check_without_password(
    properties: Mapping[str, str], where: str, key: str, type_key: str
) -> None:
    """Refuse the password of a store that has none, as Java's clients do."""
    if key in properties:
        raise refused(where, key, f"without effect: {type_key} is {PEM}")


def _password(properties: Mapping[str, str], where: str, key: str, type_key: str) -> str:
    password = properties.get(key)
    if not password:
        raise InputNotRecognizedError(
            f"{where}: there is no {key}, without which a store of Java is not read; a file that "
            f"is {PEM} needs {type_key}={PEM} ({_USUAL_TYPE} where it is not given)"
        )
    return password
