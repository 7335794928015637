"""Whom a client trusts and what it shows, in every form that Java's clients keep it in.

Each store is proven by a handshake with a server that the authority vouches for.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import ssl
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from analytics.errors import InputNotRecognizedError, InstallationError
from analytics.snapshot.cluster_connection import client_settings
from tests.support.certificates import Authority, Identity

PASSWORD = "hunter2-of-the-store"
KEY_PASSWORD = "hunter2-of-the-key"
WRONG = "hunter2-of-another"

needs_keytool = pytest.mark.skipif(shutil.which("keytool") is None, reason="there is no keytool")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.new("ours")


@pytest.fixture(scope="module")
def client(authority: Authority) -> Identity:
    return authority.issue("auditor")


@pytest.fixture(scope="module")
def folder(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority, client: Identity
) -> Path:
    """A store of each form."""
    folder = tmp_path_factory.mktemp("stores")
    authority.write_pem(folder / "trust.pem")
    client.write_pem(folder / "own.pem")
    client.write_pem(folder / "own-locked.pem", KEY_PASSWORD)
    client.write_pkcs12(folder / "own.pkcs12", PASSWORD)
    (folder / "nothing").write_text("hunter2")
    if shutil.which("keytool") is not None:
        for store_type in ("JKS", "PKCS12"):
            authority.write_truststore(folder / f"trust.{store_type}", store_type, PASSWORD)
        client.write_jks(folder / "own.JKS", PASSWORD)
        client.write_jks(folder / "own-locked.JKS", PASSWORD, KEY_PASSWORD)
    return folder


def context_of(folder: Path, keys: Mapping[str, str]) -> ssl.SSLContext:
    """The context of properties in which FOLDER stands for where the stores are."""
    found = {name: value.replace("FOLDER", str(folder)) for name, value in keys.items()}
    material = client_settings({"security.protocol": "SSL", **found}, "f").tls
    assert material is not None
    return material.context()


@contextlib.contextmanager
def server(authority: Authority, folder: Path) -> Iterator[int]:
    """A port at which a server asks for a certificate of the authority's, and answers its name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("broker").write_pem(folder / "server.pem"))
    context.load_verify_locations(cadata=authority.pem())
    context.verify_mode = ssl.CERT_OPTIONAL

    def serve() -> None:
        with contextlib.suppress(OSError):
            connection, _ = listening.accept()
            with context.wrap_socket(connection, server_side=True) as wrapped:
                shown = wrapped.getpeercert() or {}
                names = [value for ((_, value),) in shown.get("subject", ())]
                wrapped.sendall(" ".join(map(str, names)).encode() or b"nobody")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(10)


def shown_to(port: int, context: ssl.SSLContext) -> str:
    """Whom the server takes the client for."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        return connection.recv(100).decode()


def store(kind: str, place: str, store_type: str | None, password: str | None) -> dict[str, str]:
    keys = {f"ssl.{kind}store.location": f"FOLDER/{place}"}
    keys |= {f"ssl.{kind}store.type": store_type} if store_type else {}
    return keys | ({f"ssl.{kind}store.password": password} if password else {})


TRUST_PEM = store("trust", "trust.pem", "PEM", None)
TRUSTED = {
    "PEM": TRUST_PEM,
    "PKCS12": store("trust", "trust.PKCS12", "PKCS12", PASSWORD),
    "JKS": store("trust", "trust.JKS", "JKS", PASSWORD),
    "PKCS12 by the usual type": store("trust", "trust.PKCS12", None, PASSWORD),
    "JKS by the name of PKCS12": store("trust", "trust.JKS", "PKCS12", PASSWORD),
}


@needs_keytool
@pytest.mark.parametrize("name", TRUSTED)
def test_a_truststore_of_each_form_is_trusted(
    authority: Authority, folder: Path, name: str
) -> None:
    with server(authority, folder) as port:
        assert shown_to(port, context_of(folder, TRUSTED[name])) == "nobody"


def test_certificates_in_the_properties_themselves_are_trusted(
    authority: Authority, folder: Path
) -> None:
    text = authority.pem().replace("\n", " ")
    keys = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": text}
    with server(authority, folder) as port:
        assert shown_to(port, context_of(folder, keys)) == "nobody"


def test_nobody_else_is_trusted(authority: Authority, folder: Path, tmp_path: Path) -> None:
    Authority.new("another").write_pem(tmp_path / "trust.pem")
    with (
        server(authority, folder) as port,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        shown_to(port, context_of(tmp_path, TRUST_PEM))


SHOWN = {
    "PEM": store("key", "own.pem", "PEM", None),
    "PEM whose key is locked": store("key", "own-locked.pem", "PEM", None)
    | {"ssl.key.password": KEY_PASSWORD},
    "PKCS12": store("key", "own.pkcs12", "PKCS12", PASSWORD),
    "JKS": store("key", "own.JKS", "JKS", PASSWORD),
    "JKS whose key is locked": store("key", "own-locked.JKS", "JKS", PASSWORD)
    | {"ssl.key.password": KEY_PASSWORD},
}


def test_a_key_lies_in_memory_where_the_system_has_files_there(
    client: Identity, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_memory = os.memfd_create
    made: list[str] = []

    def noted(name: str) -> int:
        made.append(name)
        return in_memory(name)

    def refuse(**_: str) -> None:
        pytest.fail("a key was written to a disk")

    monkeypatch.setattr(os, "memfd_create", noted)
    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuse)
    own = client.write_pem(tmp_path / "own.pem")
    keys = {"ssl.keystore.location": str(own), "ssl.keystore.type": "PEM"}
    context_of(folder, TRUST_PEM | keys)
    assert made


@needs_keytool
@pytest.mark.parametrize("has_memory", [True, False], ids=["in memory", "in a folder"])
@pytest.mark.parametrize("name", SHOWN)
def test_a_keystore_of_each_form_is_shown_and_nothing_of_it_is_left(
    authority: Authority,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    has_memory: bool,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if not has_memory:
        monkeypatch.delattr(os, "memfd_create")
    context = context_of(folder, TRUST_PEM | SHOWN[name])
    assert [*tmp_path.iterdir()] == []
    with server(authority, folder) as port:
        assert shown_to(port, context) == "auditor"


def test_a_key_in_the_properties_themselves_is_shown(
    authority: Authority, client: Identity, folder: Path
) -> None:
    keys = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": client.private_key(KEY_PASSWORD).replace("\n", " "),
        "ssl.keystore.certificate.chain": client.certificates().replace("\n", " "),
        "ssl.key.password": KEY_PASSWORD,
    }
    with server(authority, folder) as port:
        assert shown_to(port, context_of(folder, TRUST_PEM | keys)) == "auditor"


REFUSED = {
    "a truststore of another password": (
        store("trust", "trust.PKCS12", "PKCS12", WRONG),
        "ssl.truststore.location is not usable: damaged, or of another password",
    ),
    "a JKS truststore of another password": (
        store("trust", "trust.JKS", "JKS", WRONG),
        "ssl.truststore.location is not usable: damaged, or of another password",
    ),
    "a truststore that has a key": (
        store("trust", "own.pkcs12", "PKCS12", PASSWORD),
        "ssl.truststore.location is not usable: it has a private key",
    ),
    "a truststore without its password": (
        store("trust", "trust.PKCS12", "PKCS12", None),
        "there is no ssl.truststore.password, without which a store of Java is not read",
    ),
    "a PEM file that is not declared": (
        store("trust", "trust.pem", None, PASSWORD),
        "ssl.truststore.location is not usable: neither PKCS12 nor JKS",
    ),
    "a password of PEM": (
        store("trust", "trust.pem", "PEM", PASSWORD),
        "ssl.truststore.password is without effect: ssl.truststore.type is PEM",
    ),
    "a password of nothing": (
        {"ssl.truststore.password": PASSWORD},
        "there is ssl.truststore.password and no ssl.truststore.location",
    ),
    "another form": (
        store("trust", "trust.pem", "BCFKS", PASSWORD),
        "ssl.truststore.type is none of PEM, JKS, PKCS12",
    ),
    "a store that is not there": (
        store("trust", "no.p12", "PKCS12", PASSWORD),
        "ssl.truststore.location is not usable: No such file",
    ),
    "a keystore without a key": (
        store("key", "trust.PKCS12", "PKCS12", PASSWORD),
        "ssl.keystore.location is not usable: it has no private key",
    ),
    "a keystore of another password": (
        store("key", "own.pkcs12", "PKCS12", WRONG),
        "ssl.keystore.location is not usable: damaged, or of another password",
    ),
    "a key of another password": (
        store("key", "own-locked.pem", "PEM", None) | {"ssl.key.password": WRONG},
        "ssl.keystore.location is not usable: no PEM, or a key of another password",
    ),
    "a JKS key of another password": (
        store("key", "own-locked.JKS", "JKS", PASSWORD) | {"ssl.key.password": WRONG},
        "ssl.keystore.location is not usable: damaged, or of another password",
    ),
    "a key without its certificates": (
        {"ssl.keystore.type": "PEM", "ssl.keystore.key": "hunter2"},
        "there is ssl.keystore.key and no ssl.keystore.certificate.chain",
    ),
    "a key beside a file": (
        store("key", "own.pem", "PEM", None) | {"ssl.keystore.key": "hunter2"},
        "ssl.keystore.key is given beside ssl.keystore.location",
    ),
}


@needs_keytool
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_used_is_an_error_without_secrets(folder: Path, name: str) -> None:
    keys, why = REFUSED[name]
    with pytest.raises(InputNotRecognizedError) as caught:
        context_of(folder, keys)
    assert str(caught.value).startswith("f: ")
    assert why in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("kind", ["trust", "key"])
def test_without_the_library_that_reads_stores_it_is_said_what_to_install(
    folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    keys = store(kind, "own.pkcs12", "PKCS12", PASSWORD)
    with pytest.raises(InstallationError, match=r"pip install 'cryptography>=46'"):
        context_of(folder, keys)


def test_a_java_that_does_not_start_says_nothing_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "keytool"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho Error: Could not create the Java VM\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (tmp_path / "trust.jks").write_bytes(b"\xfe\xed\xfe\xed")
    with pytest.raises(InputNotRecognizedError, match=f"JKS, and {program} does not run"):
        context_of(tmp_path, store("trust", "trust.jks", "JKS", PASSWORD))
