"""Client properties are Java's: what is understood is used, what matters and is not is refused."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from analytics.errors import InputNotRecognizedError
from analytics.snapshot.cluster_connection import ClientSettings, client_settings
from jobs.cli.settings_files import read_client_properties

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
LOGIN = f'{PLAIN} required username="auditor" password="hunter2";'


def settings(**keys: str) -> ClientSettings:
    """Settings of keys that are written with underscores."""
    return client_settings({name.replace("_", "."): value for name, value in keys.items()}, "f")


def test_without_a_file_nothing_is_encrypted() -> None:
    assert client_settings({}, "f") == ClientSettings()


@pytest.mark.parametrize(
    ("login", "password"),
    [
        (LOGIN, "hunter2"),
        (f"{PLAIN} required  username=auditor password=hunter2 ;", "hunter2"),
        (f"{PLAIN} required\n username='auditor'\n password='two words';", "two words"),
        (f'{PLAIN} required username="auditor" password="a\\"b\\\\c;d";', 'a"b\\c;d'),
        (f"shaded.{PLAIN} required username=auditor password=hunter2;", "hunter2"),
    ],
)
def test_a_login_is_read_as_java_reads_it(login: str, password: str) -> None:
    found = client_settings(SASL | {"sasl.jaas.config": login}, "f")
    assert (found.username, found.password) == ("auditor", password)
    assert found.for_client()["sasl_mechanism"] == "PLAIN"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "scram-sha-512"])
def test_scram_has_a_login_of_its_own(mechanism: str) -> None:
    keys = SASL | {"sasl.mechanism": mechanism}
    found = client_settings(keys | {"sasl.jaas.config": LOGIN.replace(PLAIN, SCRAM)}, "f")
    assert found.mechanism == mechanism.upper()
    with pytest.raises(InputNotRecognizedError, match="needs ScramLoginModule"):
        client_settings(keys | {"sasl.jaas.config": LOGIN}, "f")


REFUSED = {
    "an unknown protocol": ({"security.protocol": "TLS"}, "security.protocol is none of"),
    "a mechanism that is not there": (
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"},
        "sasl.mechanism is none of those supported: PLAIN",
    ),
    "SASL without a mechanism": ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is none of"),
    "SASL without a login": (SASL, "there is no sasl.jaas.config"),
    "a login of another form": (SASL | {"sasl.jaas.config": "hunter2"}, "not of the form"),
    "two logins": (SASL | {"sasl.jaas.config": LOGIN + LOGIN}, "not of the form"),
    "a login without a password": (
        SASL | {"sasl.jaas.config": f"{PLAIN} required username=hunter2;"},
        "without password",
    ),
    "a delegation token": (
        SASL | {"sasl.jaas.config": LOGIN.replace(";", " tokenauth=true;")},
        "options that are not supported: tokenauth",
    ),
    "a secret to be looked up": (
        SASL | {"sasl.jaas.config": "${file:/run/hunter2:jaas}"},
        "by a config provider",
    ),
    "a login that is not used": ({"sasl.jaas.config": LOGIN}, "without effect: security.protocol"),
    "a store of Java without its password": (
        {"security.protocol": "SSL", "ssl.truststore.location": "trust.jks"},
        "there is no ssl.truststore.password",
    ),
    "a file that is not there": (
        {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "no/such/file",
        },
        "ssl.truststore.location is not usable: No such file",
    ),
    "certificates that are none": (
        {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": "hunter2",
        },
        "ssl.truststore.certificates is not usable: no PEM",
    ),
    "an inline key that is not declared": (
        {"security.protocol": "SSL", "ssl.keystore.key": "hunter2"},
        "ssl.keystore.type is not PEM",
    ),
    "a password without a key": (
        {"security.protocol": "SSL", "ssl.key.password": "hunter2"},
        "there is ssl.key.password and no ssl.keystore.location",
    ),
    "a key that matters": (
        {"security.protocol": "SSL", "ssl.cipher.suites": "hunter2"},
        "ssl.cipher.suites is not supported",
    ),
    "another check of names": (
        {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "LDAPS"},
        "neither https nor empty",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_matters_and_is_not_understood_is_an_error_without_secrets(name: str) -> None:
    keys, why = REFUSED[name]
    with pytest.raises(InputNotRecognizedError) as caught:
        client_settings(keys, "client.properties")
    assert why in str(caught.value)
    assert str(caught.value).startswith("client.properties: ")
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_what_means_nothing_here_is_named() -> None:
    assert settings(client_id="mine", fetch_min_bytes="1").ignored == (
        "client.id",
        "fetch.min.bytes",
    )


def test_names_of_hosts_are_checked_unless_the_file_says_otherwise() -> None:
    material = settings(security_protocol="SSL").tls
    assert material is not None
    usual = material.context()
    assert usual.check_hostname
    assert usual.verify_mode is ssl.CERT_REQUIRED
    keys = {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""}
    material = client_settings(keys, "f").tls
    assert material is not None
    unchecked = material.context()
    assert not unchecked.check_hostname
    assert unchecked.verify_mode is ssl.CERT_REQUIRED


def test_secrets_are_not_shown() -> None:
    found = client_settings(SASL | {"sasl.jaas.config": LOGIN}, "f")
    assert "hunter2" not in repr(found)
    assert found.without_secrets("auditor said hunter2") == "*** said ***"


def test_a_line_goes_on_as_java_has_it_go_on(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "# keys of the old host: C:\\kafka\\\n"
        "security.protocol=SSL\n"
        "client.id=a\\\\\n"
        "metadata.max.age.ms=7\n"
        "client.rack=one \\\r\n   and the same\n"
        "last=1\\"
    )
    assert read_client_properties(str(file)) == {
        "security.protocol": "SSL",
        "client.id": "a\\",
        "metadata.max.age.ms": "7",
        "client.rack": "one and the same",
        "last": "1",
    }


def test_a_file_is_read_as_properties(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "# auditor\n! too\nsecurity.protocol : SASL_PLAINTEXT\nsasl.mechanism PLAIN\n"
        f'sasl.jaas.config={PLAIN} required \\\n    username="auditor" \\\n'
        '    password="caf\\u00e9";\n'
    )
    found = client_settings(read_client_properties(str(file)), str(file))
    assert found.password == "caf\N{LATIN SMALL LETTER E WITH ACUTE}"
