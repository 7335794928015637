"""`snapshot` of a running broker by every kind of listener, and by users who may not do all."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from schemas.names import CONSUMER_OFFSETS, COORDINATOR_TOPICS, SHARE_GROUP_STATE, TRANSACTION_STATE
from tests.brokers.asking import Asker
from tests.brokers.broker import Broker, properties_text
from tests.brokers.programs import Programs
from tests.brokers.releases import Release, broker_settings
from tests.brokers.secured import (
    AUDITOR,
    LISTENERS,
    LOGIN,
    PLAIN_PASSWORD,
    SCRAM_PASSWORD,
    STORE_PASSWORD,
    Ports,
    Right,
    allow,
    scram_login,
    secured_settings,
)
from tests.brokers.snapshot_rows import rows_below
from tests.brokers.troupe import Troupe
from tests.support.certificates import Authority
from tests.support.recorded_cluster import document

if TYPE_CHECKING:
    import subprocess

    from tests.conftest import Groupscope

pytestmark = [
    pytest.mark.maven,
    # kafka-python leaves the socket of a handshake that failed to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning"),
]

RELEASES = ("3.9.2", "4.2.1", "4.4.0")
SEED, SECONDS = 3, 12
STILL = {
    "log.cleaner.enable": "false",
    "offsets.retention.minutes": "100000",
    "share.coordinator.state.topic.prune.interval.ms": "86400000",
}
"""What a broker has once written it keeps: snapshots one after the other have the same records."""

READ = [Right("read", "topic", each) for each in COORDINATOR_TOPICS]
TOPICS = Right("describe", "topic", "*")
CLUSTER = Right("describe", "cluster", "kafka-cluster")
GROUPS = Right("describe", "group", "*")
CONFIGS = [
    Right("describe_configs", "cluster", "kafka-cluster"),
    Right("describe_configs", "topic", "*"),
    Right("describe_configs", "group", "*"),
]
ALL = [*READ, TOPICS, CLUSTER, GROUPS, *CONFIGS]
"""The table of docs/snapshot.md."""


def without(*rights: Right) -> list[Right]:
    return [each for each in ALL if each not in rights]


USERS = {
    "may-all": ALL,
    "no-offsets": without(READ[COORDINATOR_TOPICS.index(CONSUMER_OFFSETS)]),
    "no-transactions": without(READ[COORDINATOR_TOPICS.index(TRANSACTION_STATE)]),
    "no-logs": without(*READ),
    "no-topics": without(TOPICS),
    "no-cluster": without(CLUSTER),
    "no-groups": without(GROUPS),
    "neither": without(CLUSTER, GROUPS),
    "no-broker-configs": without(CONFIGS[0]),
    "no-topic-configs": without(CONFIGS[1]),
    "no-group-configs": without(CONFIGS[2]),
    "nothing": [],
}
PASSWORDS = {each: f"hunter2-{each}" for each in USERS} | {AUDITOR: SCRAM_PASSWORD}


@dataclass(frozen=True)
class Secured:
    """A broker that runs and is not written to any more."""

    release: Release
    ports: Ports
    folder: Path

    def take(
        self, groupscope: Groupscope, out: Path, listener: str, keys: Mapping[str, str], *more: str
    ) -> subprocess.CompletedProcess[str]:
        """Take a snapshot with a client's properties; no secret is in what it says or writes."""
        config = out.with_suffix(".properties")
        config.write_text(properties_text(keys))
        bootstrap = self.ports.bootstrap(listener)
        ran = groupscope(
            *("snapshot", "--bootstrap-server", bootstrap, "--command-config", config),
            *("--out", out, "--timeout", "10", *more),
        )
        written = [each.read_bytes() for each in out.rglob("*") if each.is_file()]
        assert b"hunter2" not in b"".join([ran.stdout.encode(), ran.stderr.encode(), *written])
        assert "Traceback" not in ran.stderr
        return ran


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> Release:
    return Release(request.param)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.new("ours")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Path:
    """What clients trust and show."""
    folder = tmp_path_factory.mktemp("stores")
    authority.write_pem(folder / "trust.pem")
    authority.write_truststore(folder / "trust.jks", "JKS", STORE_PASSWORD)
    authority.write_truststore(folder / "trust.p12", "PKCS12", STORE_PASSWORD)
    authority.issue(AUDITOR).write_pkcs12(folder / "own.p12", STORE_PASSWORD)
    Authority.new("another").write_pem(folder / "another.pem")
    return folder


@pytest.fixture(scope="module")
def secured(
    tmp_path_factory: pytest.TempPathFactory,
    release: Release,
    programs: Programs,
    authority: Authority,
) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("broker")
    ports = Ports.free()
    settings = broker_settings(release, SEED) | STILL
    settings |= secured_settings(ports, authority, folder)
    broker = Broker(programs, ports.addresses, settings, folder / "live")
    broker.format(release, PASSWORDS)
    broker.start()
    clients = Troupe(folder / "clients.txt")
    with contextlib.ExitStack() as ends:
        ends.callback(broker.kill)
        ends.callback(clients.kill)
        bootstrap = ports.bootstrap("PLAINTEXT")
        with Asker(programs, bootstrap) as ask:
            broker.answer(lambda: ask("Metadata", {"topics": None}))
            allow(ask, USERS)
            clients.begin(programs, release, bootstrap, SEED, SECONDS)
            clients.wait_until_still(SECONDS)
        yield Secured(release, ports, folder)


# --- by which listener ------------------------------------------------------------------------


def tls(store: str, store_type: str) -> dict[str, str]:
    keys = {"ssl.truststore.location": f"STORES/{store}", "ssl.truststore.type": store_type}
    is_pem = store_type == "PEM"
    return keys | ({} if is_pem else {"ssl.truststore.password": STORE_PASSWORD})


PLAIN_LOGIN = {
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": (
        f"{LOGIN}.plain.PlainLoginModule required username='{AUDITOR}' password='{PLAIN_PASSWORD}';"
    ),
}
SHOWN = {
    "ssl.keystore.location": "STORES/own.p12",
    "ssl.keystore.type": "PKCS12",
    "ssl.keystore.password": STORE_PASSWORD,
}
WAYS: dict[str, tuple[str, dict[str, str]]] = {
    "SCRAM": ("SCRAM", scram_login(AUDITOR, SCRAM_PASSWORD)),
    "PLAIN": ("PLAIN", PLAIN_LOGIN),
    "TLS that a PEM file trusts": ("TLS", tls("trust.pem", "PEM")),
    "TLS that a JKS file trusts": ("TLS", tls("trust.jks", "JKS")),
    "TLS of both sides": ("MUTUAL", tls("trust.p12", "PKCS12") | SHOWN),
    "SCRAM within TLS": (
        "SCRAMTLS",
        tls("trust.pem", "PEM") | scram_login(AUDITOR, SCRAM_PASSWORD),
    ),
}


def properties_of(listener: str, keys: Mapping[str, str], stores: Path) -> dict[str, str]:
    found = {name: value.replace("STORES", str(stores)) for name, value in keys.items()}
    return {"security.protocol": LISTENERS[listener], **found}


@pytest.fixture(scope="module")
def plaintext(
    secured: Secured, groupscope: Groupscope, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The snapshot by the listener that asks nobody who they are."""
    out = tmp_path_factory.mktemp("plaintext") / "dump"
    ran = secured.take(groupscope, out, "PLAINTEXT", {})
    assert ran.returncode == 0, ran.stderr
    return out


def decoded(
    groupscope: Groupscope, dump: Path, ends: dict[tuple[str, int], int]
) -> dict[str, list[str]]:
    workspace = dump.with_name(f"{dump.name}-decoded")
    if not workspace.exists():
        ran = groupscope("decode", dump, "--out", workspace, "--quiet")
        assert ran.returncode == 0, ran.stderr
    return {name: sorted(rows) for name, rows in rows_below(workspace, ends).items()}


def ends_of(dump: Path) -> dict[tuple[str, int], int]:
    return {(each.topic, each.partition): each.log_end_offset or 0 for each in document(dump).logs}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("more", [(), ("--master", "local[2]")], ids=["here", "in tasks"])
@pytest.mark.parametrize("name", WAYS)
def test_by_each_listener_the_same_is_taken(
    groupscope: Groupscope,
    secured: Secured,
    plaintext: Path,
    stores: Path,
    tmp_path: Path,
    name: str,
    more: tuple[str, ...],
) -> None:
    listener, keys = WAYS[name]
    out = tmp_path / "dump"
    ran = secured.take(groupscope, out, listener, properties_of(listener, keys, stores), *more)
    assert ran.returncode == 0, ran.stderr
    assert document(out).unread == []
    # Coordinators may have written since: of what both have, each has the same.
    before, after = ends_of(plaintext), ends_of(out)
    assert before.keys() == after.keys()
    both = {place: min(end, after[place]) for place, end in before.items()}
    found = decoded(groupscope, out, both)
    assert found == decoded(groupscope, plaintext, both)
    assert found["offset_commit"]


REFUSED: dict[str, tuple[str, dict[str, str], int, str]] = {
    "a wrong password for SCRAM": (
        "SCRAM",
        scram_login(AUDITOR, "hunter2-wrong"),
        3,
        "SaslAuthenticationFailedError",
    ),
    "a wrong password for PLAIN": (
        "PLAIN",
        PLAIN_LOGIN | {"sasl.jaas.config": PLAIN_LOGIN["sasl.jaas.config"].replace("-", "!")},
        3,
        "SaslAuthenticationFailedError",
    ),
    "a mechanism that is not enabled": ("SCRAM", PLAIN_LOGIN, 3, "UnsupportedSaslMechanism"),
    "an authority that is not trusted": (
        "TLS",
        tls("another.pem", "PEM"),
        3,
        "certificate verify failed",
    ),
    "a client that shows no certificate": ("MUTUAL", tls("trust.pem", "PEM"), 3, "certificate"),
    "a plaintext client at a TLS port": (
        "TLS",
        {"security.protocol": "PLAINTEXT"},
        3,
        "does it expect another security.protocol than PLAINTEXT?",
    ),
    "a client without a login at a SASL port": (
        "SCRAM",
        {"security.protocol": "PLAINTEXT"},
        3,
        "does it expect another security.protocol than PLAINTEXT?",
    ),
    "a TLS client at a plaintext port": (
        "PLAINTEXT",
        {"security.protocol": "SSL"} | tls("trust.pem", "PEM"),
        3,
        "Handshake failed",
    ),
    "a key that is not supported": (
        "TLS",
        tls("trust.pem", "PEM") | {"ssl.cipher.suites": "hunter2"},
        2,
        "ssl.cipher.suites is not supported",
    ),
    "a truststore of another password": (
        "TLS",
        tls("trust.p12", "PKCS12") | {"ssl.truststore.password": "hunter2-wrong"},
        2,
        "damaged, or of another password",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_who_is_refused_is_told_in_one_line(
    groupscope: Groupscope, secured: Secured, stores: Path, tmp_path: Path, name: str
) -> None:
    listener, keys, code, why = REFUSED[name]
    out = tmp_path / "dump"
    properties = properties_of(listener, keys, stores)
    ran = secured.take(groupscope, out, listener, properties)
    assert (ran.returncode, ran.stdout) == (code, ""), ran.stderr
    # Where a broker hangs up as soon as it has refused, kafka-python drops the reason.
    is_refused = "hung up while the client logged in" in ran.stderr
    assert why in ran.stderr or (why == "SaslAuthenticationFailedError" and is_refused)
    assert len(ran.stderr.splitlines()) == 1, ran.stderr
    assert not out.exists()


# --- by whom ----------------------------------------------------------------------------------


def taken_by(
    groupscope: Groupscope, secured: Secured, user: str, out: Path
) -> subprocess.CompletedProcess[str]:
    login = scram_login(user, PASSWORDS[user])
    keys = {"security.protocol": LISTENERS["SCRAM"], **login}
    return secured.take(groupscope, out, "SCRAM", keys, "--quiet")


def test_who_may_do_what_the_table_says_takes_all(
    groupscope: Groupscope, secured: Secured, plaintext: Path, tmp_path: Path
) -> None:
    ran = taken_by(groupscope, secured, "may-all", tmp_path / "dump")
    assert (ran.returncode, ran.stderr) == (0, "")
    found, whole = document(tmp_path / "dump"), document(plaintext)
    assert found.unread == []
    assert [each.topic for each in found.topics] == [each.topic for each in whole.topics]
    assert [each.group_id for each in found.groups] == [each.group_id for each in whole.groups]


def test_groups_that_may_be_described_are_enough_without_the_cluster(
    groupscope: Groupscope, secured: Secured, tmp_path: Path
) -> None:
    ran = taken_by(groupscope, secured, "no-cluster", tmp_path / "dump")
    assert (ran.returncode, ran.stderr) == (0, "")


LACKING = {
    "no-offsets": "__consumer_offsets (TOPIC_AUTHORIZATION_FAILED)",
    "no-transactions": "__transaction_state (TOPIC_AUTHORIZATION_FAILED)",
    "no-topics": "cannot tell: ",
    "no-groups": "cannot tell: ",
    "neither": "cannot tell: ",
    "no-broker-configs": "settings of broker 1 (CLUSTER_AUTHORIZATION_FAILED)",
    "no-topic-configs": "settings of topics (TOPIC_AUTHORIZATION_FAILED)",
    "no-group-configs": "settings of groups (GROUP_AUTHORIZATION_FAILED)",
}


@pytest.mark.parametrize("user", LACKING)
def test_a_right_that_is_lacking_is_told(
    groupscope: Groupscope, secured: Secured, tmp_path: Path, user: str
) -> None:
    out = tmp_path / "dump"
    if user == "no-group-configs" and not secured.release.has_share_groups:
        pytest.skip("groups have no settings in this release")
    ran = taken_by(groupscope, secured, user, out)
    assert ran.returncode == 3, ran.stderr
    assert LACKING[user] in ran.stderr
    assert "contradicts" not in ran.stderr
    assert out.exists()


@pytest.mark.parametrize("user", ["no-logs", "nothing"])
def test_who_may_read_no_log_gets_nothing(
    groupscope: Groupscope, secured: Secured, tmp_path: Path, user: str
) -> None:
    out = tmp_path / "dump"
    ran = taken_by(groupscope, secured, user, out)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "TOPIC_AUTHORIZATION_FAILED" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert not out.exists()


def test_no_share_state_is_missed_where_there_is_none(secured: Secured, plaintext: Path) -> None:
    topics = {each.topic for each in document(plaintext).logs}
    assert (SHARE_GROUP_STATE in topics) == secured.release.has_share_groups
