"""What share groups go by: which source goes before which, and what is said of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from analytics.contracts import polars_rows
from analytics.errors import InputNotRecognizedError
from analytics.questions.share.settings import (
    ALWAYS,
    ANSWERED,
    ASSUMED,
    BROKER_CONFIG,
    DELIVERY_LIMIT,
    DYNAMIC,
    ISOLATION,
    RECORD_LOCKS,
    FoundSettings,
    Setting,
    settings_found,
)
from analytics.replayed.given_settings import BrokerSettings, GivenSettings, Settings

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
SINCE_MS = round(SINCE.timestamp() * 1000)
CONFIGS = pa.schema(
    [
        *((name, pa.string()) for name in ("resource_type", "resource", "name", "value")),
        ("since", pa.timestamp("us", "UTC")),
        ("source", pa.string()),
    ]
)


def config(resource: str, name: str, value: str | None, **more: Any) -> dict[str, Any]:
    row = {"resource_type": "group", "resource": resource, "name": name, "value": value}
    return {**row, "since": SINCE, "source": "metadata_log", **more}


def found(
    *configs: dict[str, Any],
    release: str = "4.3",
    brokers: dict[str, dict[str, str]] | None = None,
    values: dict[str, str] | None = None,
    groups: dict[str, dict[str, str]] | None = None,
) -> FoundSettings:
    return settings_found(
        release,
        polars_rows(pa.Table.from_pylist(list(configs), CONFIGS)),
        Settings(
            [BrokerSettings(name, None, said) for name, said in (brokers or {}).items()],
            GivenSettings(values or {}, groups or {}),
        ),
    )


@pytest.mark.parametrize(("release", "locks"), [("4.0", 200), ("4.1", 2000), ("4.4", 2000)])
def test_without_settings_kafkas_default_is_assumed(release: str, locks: int) -> None:
    settings = found(release=release).settings
    assert settings.of("g", DELIVERY_LIMIT) == Setting(5, ASSUMED)
    assert settings.of("g", RECORD_LOCKS) == Setting(locks, ASSUMED)
    assert settings.of("g", ISOLATION) == Setting("read_uncommitted", ASSUMED)


def test_what_is_assumed_is_said() -> None:
    said = found().said
    assert f"{DELIVERY_LIMIT} = 5 (Kafka's default, assumed)" in said
    assert (
        f"{DELIVERY_LIMIT} = 3 (from the settings given)"
        in found(values={DELIVERY_LIMIT: "3"}).said
    )


def test_each_source_goes_before_the_ones_before_it() -> None:
    name = "share.delivery.count.limit"
    brokers = {"one": {DELIVERY_LIMIT: "4"}}
    steps = [
        ({}, Setting(5, ASSUMED)),
        ({"brokers": brokers}, Setting(4, BROKER_CONFIG)),
        ({"brokers": brokers, "values": {DELIVERY_LIMIT: "6"}}, Setting(6, BROKER_CONFIG)),
    ]
    for given, expected in steps:
        assert found(**given).settings.of("g", DELIVERY_LIMIT) == expected
    own = config("g", name, "3")
    everything: dict[str, Any] = {"brokers": brokers, "values": {DELIVERY_LIMIT: "6"}}
    of_group = found(own, **everything).settings
    assert of_group.of("g", DELIVERY_LIMIT) == Setting(3, DYNAMIC, SINCE_MS)
    assert of_group.of("other", DELIVERY_LIMIT) == Setting(6, BROKER_CONFIG)
    given = found(own, **everything, groups={"g": {name: "7"}}).settings
    assert given.of("g", DELIVERY_LIMIT) == Setting(7, BROKER_CONFIG)


def test_what_the_metadata_log_has_of_brokers_they_do_not_heed() -> None:
    """They read these settings from their files, when they start."""
    stored = config("1", DELIVERY_LIMIT, "3", resource_type="broker")
    assert found(stored).settings.of("g", DELIVERY_LIMIT) == Setting(5, ASSUMED)


def test_what_brokers_answered_they_go_by_since_they_answered() -> None:
    answers = [
        config(node, DELIVERY_LIMIT, value, resource_type="broker", source=ANSWERED)
        for node, value in (("1", "9"), ("2", "8"))
    ]
    own = config("g", "share.delivery.count.limit", "3", source=ANSWERED)
    made = found(*answers, own)
    assert made.settings.of("g", DELIVERY_LIMIT) == Setting(3, ANSWERED, SINCE_MS)
    assert made.settings.of("other", DELIVERY_LIMIT) == Setting(8, ANSWERED, SINCE_MS)
    assert f"{DELIVERY_LIMIT} = 8 (as the cluster answered)" in made.said
    assert "group g: share.delivery.count.limit = 3 (as the cluster answered)" in made.said
    given = found(*answers, brokers={"one": {DELIVERY_LIMIT: "4"}}).settings
    assert given.of("other", DELIVERY_LIMIT) == Setting(4, BROKER_CONFIG)


def test_since_when_a_group_has_its_own_is_known_where_the_metadata_log_tells() -> None:
    own = config("g", "share.partition.max.record.locks", "100", since=None)
    assert found(own).settings.of("g", RECORD_LOCKS) == Setting(100, DYNAMIC, ALWAYS)
    gone = config("g", "share.partition.max.record.locks", None)
    assert found(gone).settings.of("g", RECORD_LOCKS) == Setting(2000, ASSUMED)


def test_isolation_is_one_word_however_it_is_written() -> None:
    level = config("g", ISOLATION, "READ_COMMITTED")
    assert found(level).settings.of("g", ISOLATION).value == "read_committed"


def test_where_brokers_disagree_the_least_is_taken_and_it_is_said() -> None:
    made = found(brokers={"a": {DELIVERY_LIMIT: "5"}, "b": {DELIVERY_LIMIT: "3"}})
    assert made.settings.of("g", DELIVERY_LIMIT) == Setting(3, BROKER_CONFIG)
    assert made.findings == (
        f"brokers disagree about {DELIVERY_LIMIT}: a 5, b 3; the least is taken",
    )


@pytest.mark.parametrize("value", ["many", "0", "-1"])
def test_a_limit_that_is_none_is_an_error_that_names_it(value: str) -> None:
    with pytest.raises(InputNotRecognizedError, match=DELIVERY_LIMIT):
        found(values={DELIVERY_LIMIT: value})
