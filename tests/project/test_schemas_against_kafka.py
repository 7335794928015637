"""Our schemas are Kafka's: field by field, version by version, release by release.

A release's own description of its records is read out of its published jars. Tagged fields may be
missing from an older release (that is how Kafka adds fields); everything else has to be the same,
in the order it is written, and in the newest release that has a record nothing may be missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

import pytest

import schemas
from schemas import RecordType
from tests.support.kafka_jars import (
    RELEASES,
    JarsUnavailableError,
    describe_by_classes,
    fetch_jars,
)
from tests.support.kafka_messages import (
    NOT_COMPARED,
    Message,
    WireField,
    messages_in,
    messages_of_classes,
    our_fields,
)

pytestmark = pytest.mark.maven

TOPIC_OF_JAR = {
    "kafka-group-coordinator": "__consumer_offsets",
    "kafka-share-coordinator": "__share_group_state",
    "kafka-transaction-coordinator": "__transaction_state",
}
GONE = {"ShareGroupPartitionMetadata"}
NOT_YET = {"StreamsGroupTargetAssignmentResolvedTopicIds"}
# Releases before 4.1 number record types by the version of the key's schema.
KEY_VERSION_IS_ID = ("3.9.2", "4.0.2")
EMBEDDED = {
    "ConsumerProtocolSubscription": "consumer_protocol_subscription",
    "ConsumerProtocolAssignment": "consumer_protocol_assignment",
    "sticky_user_data": "sticky_user_data",
    "cooperative_sticky_user_data": "cooperative_sticky_user_data",
}


@dataclass(frozen=True)
class Release:
    """What one release of Kafka says about its records."""

    version: str
    by_topic: Mapping[str, Mapping[str, Message]]
    embedded: Mapping[str, Message]

    def records(self) -> Iterator[tuple[str, int, Message | None, Message]]:
        """Yield topic, id, key and value of every record type."""
        for topic, messages in self.by_topic.items():
            for name, value in messages.items():
                if topic == "__cluster_metadata":
                    assert value.id is not None
                    yield topic, value.id, None, value
                elif name.endswith("Value"):
                    key = messages[name.removesuffix("Value") + "Key"]
                    for number in self.ids(key):
                        yield topic, number, key, value

    def ids(self, key: Message) -> list[int]:
        """Return the record types' numbers that a key's schema stands for."""
        return sorted(key.versions) if key.id is None else [key.id]

    def layout(self, layouts: tuple[str, ...]) -> str | None:
        """Return the layout this release writes, of those that are named newest first."""
        series = self.version.rpartition(".")[0]
        for layout in layouts:
            if layout.removesuffix("+") <= series:
                return layout
        return layouts[-1] if layouts else None


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Release]:
    try:
        jars = fetch_jars(tmp_path_factory.mktemp("kafka-jars"))
        return {version: described(version, jars[version]) for version in RELEASES}
    except JarsUnavailableError as reason:
        pytest.skip(f"Kafka's jars cannot be had here: {reason}")


def described(version: str, jars: list[Path]) -> Release:
    by_classes = messages_of_classes(describe_by_classes(jars))
    by_topic: dict[str, Mapping[str, Message]] = {}
    for jar in jars:
        topic = TOPIC_OF_JAR.get(jar.name.removesuffix(f"-{version}.jar"))
        if topic is not None:
            by_topic[topic] = messages_in(jar)
    by_topic["__cluster_metadata"] = {
        name: each for name, each in by_classes.items() if each.id is not None
    }
    (clients,) = (jar for jar in jars if jar.name.startswith("kafka-clients"))
    messages = {**messages_in(clients, "ConsumerProtocol"), **by_classes}
    embedded = {ours: messages[theirs] for theirs, ours in EMBEDDED.items()}
    return Release(version, by_topic, embedded)


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest, releases: dict[str, Release]) -> Release:
    return releases[request.param]


def test_every_record_type_of_a_release_is_known(release: Release) -> None:
    unknown = {
        (topic, number, value.name)
        for topic, number, _, value in release.records()
        if number not in schemas.record_types(topic)
        or our_name(schemas.record_types(topic)[number]) != value.name.removeprefix("Legacy")
    }
    assert not unknown


def test_the_newest_release_has_every_record_type_we_know(releases: dict[str, Release]) -> None:
    theirs = {(topic, number) for topic, number, _, _ in releases[RELEASES[-1]].records()}
    ours = {
        (each.topic, number)
        for each in schemas.all_record_types().values()
        for number in each.ids
        if each.name not in GONE | NOT_YET
    }
    assert ours == theirs


def test_keys_have_the_fields_kafka_gives_them(release: Release) -> None:
    compared = 0
    for topic, number, key, _ in release.records():
        ours = schemas.record_types(topic)[number]
        if key is None or ours.read != "decode":
            continue
        version = number if release.version in KEY_VERSION_IS_ID and key.id is None else 0
        assert key.versions[version] == our_fields(ours.key, 0, None), ours.name
        assert not key.flexible, ours.name
        compared += len(key.versions[version])
    assert compared > 10


def test_values_have_the_fields_kafka_gives_them(release: Release) -> None:
    compared = 0
    for topic, number, _, value in release.records():
        ours = schemas.record_types(topic)[number]
        if ours.read != "decode":
            continue
        layout = release.layout(ours.layouts)
        for version, theirs in value.versions.items():
            assert version in ours.versions, ours.name
            assert (version in value.flexible) == (version in ours.flexible), ours.name
            assert_same(theirs, our_fields(ours.value, version, layout), f"{ours.name} v{version}")
            compared += len(theirs)
    assert compared > 100


def test_embedded_messages_have_the_fields_kafka_gives_them(release: Release) -> None:
    assert set(release.embedded) == set(schemas.all_embedded())
    for name, message in release.embedded.items():
        ours = schemas.embedded(name)
        assert set(message.versions) == set(range(ours.versions.last + 1)), name
        assert not message.flexible, name
        for version, theirs in message.versions.items():
            assert_same(theirs, our_fields(ours.struct, version, None), f"{name} v{version}")


def test_nothing_is_missing_where_a_release_knows_a_record_best(
    releases: dict[str, Release],
) -> None:
    newest = {
        (topic, number): (release, value)
        for release in releases.values()
        for topic, number, _, value in release.records()
    }
    for ours in schemas.all_record_types().values():
        if ours.read != "decode" or ours.name in NOT_YET:
            continue
        release, value = newest[ours.topic, ours.ids[-1]]
        assert set(value.versions) == set(range(ours.versions.last + 1)), ours.name
        layout = release.layout(ours.layouts)
        for version, theirs in value.versions.items():
            assert our_fields(ours.value, version, layout) == theirs, f"{ours.name} v{version}"


def test_every_layout_was_compared(releases: dict[str, Release]) -> None:
    compared = {
        (ours.name, release.layout(ours.layouts))
        for release in releases.values()
        for topic, number, _, _ in release.records()
        if (ours := schemas.record_types(topic)[number]).layouts
    }
    assert compared == {
        (ours.name, layout)
        for ours in schemas.all_record_types().values()
        for layout in ours.layouts
    }


def our_name(record_type: RecordType) -> str:
    """Return what Kafka calls the value."""
    return record_type.name + ("" if record_type.framing == "metadata" else "Value")


def assert_same(theirs: tuple[WireField, ...], ours: tuple[WireField, ...], what: str) -> None:
    """Check that ours are theirs, but for tags the release does not know yet."""
    known = {each.path: each for each in theirs}
    newer = {each.path for each in ours if each.tag is not None and each.path not in known}
    kept = tuple(
        replace(each, default=NOT_COMPARED)
        if each.path in known and known[each.path].default == NOT_COMPARED
        else each
        for each in ours
        if not any(each.path == path or each.path.startswith(f"{path}.") for path in newer)
    )
    different = [pair for pair in zip_longest(kept, theirs) if pair[0] != pair[1]]
    assert not different, f"{what}: ours beside Kafka's"
