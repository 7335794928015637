"""Where the retention of offsets comes from, and what goes before what."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from analytics.errors import AbsentFileError, InputNotRecognizedError
from analytics.questions.expiration.retention_settings import (
    RetentionFound,
    Setting,
    SettingSources,
    retention_found,
    with_state,
)
from analytics.replayed.given_settings import BrokerSettings, GivenSettings
from jobs.cli.settings_files import read_broker_settings, read_given_settings
from schemas.names import is_setting

RETENTION, INTERVAL = "offsets.retention.minutes", "offsets.retention.check.interval.ms"
BARE = SettingSources(release="4.3")
DYNAMIC = replace(BARE, dynamic={None: {RETENTION: "50"}})


def broker(node: int | None, **values: int) -> BrokerSettings:
    named = {"retention": RETENTION, "interval": INTERVAL}
    said = {named[name]: str(value) for name, value in values.items()}
    return BrokerSettings(f"broker-{node}.properties", node, said)


def in_force(sources: SettingSources) -> tuple[int, str, int]:
    setting = retention_found(sources).retention.otherwise
    return setting.retention_ms // 60_000, setting.source, setting.check_interval_ms


ORDER = {
    "nothing given": (BARE, (10080, "default_assumed", 600_000)),
    "nothing given, 1.1": (replace(BARE, release="1.1"), (1440, "default_assumed", 600_000)),
    "the metadata log": (DYNAMIC, (50, "dynamic", 600_000)),
    "a broker's file": (
        replace(DYNAMIC, brokers=[broker(1, retention=40, interval=7)]),
        (40, "broker_config", 7),
    ),
    "a file that does not set it: the default, assumed": (
        replace(DYNAMIC, brokers=[broker(1, interval=7)]),
        (10080, "default_assumed", 7),
    ),
    "--config": (
        replace(
            DYNAMIC, brokers=[broker(1, retention=40)], overrides=GivenSettings({RETENTION: "30"})
        ),
        (30, "broker_config", 600_000),
    ),
    "one --retention-minutes": (
        replace(DYNAMIC, overrides=GivenSettings({RETENTION: "30", INTERVAL: "9"}), minutes=[20]),
        (20, "option", 9),
    ),
    "several are tried, and another is in force": (
        replace(DYNAMIC, minutes=[20, 30]),
        (50, "dynamic", 600_000),
    ),
    "several, and nothing else": (
        replace(BARE, minutes=[20, 30]),
        (10080, "default_assumed", 600_000),
    ),
}


@pytest.mark.parametrize("case", ORDER)
def test_what_comes_later_goes_before(case: str) -> None:
    sources, expected = ORDER[case]
    assert in_force(sources) == expected


SAID = {
    "nothing given": (BARE, "10080 (Kafka's default, assumed: no broker settings were given)"),
    "a file": (
        replace(BARE, brokers=[broker(1, retention=40)]),
        "40 (from the settings given: broker-1.properties)",
    ),
    "a silent file": (
        replace(BARE, brokers=[broker(1, interval=7)]),
        "10080 (Kafka's default, assumed: broker-1.properties does not set it)",
    ),
    "--config": (
        replace(BARE, overrides=GivenSettings({RETENTION: "30"})),
        "30 (from the settings given: --config)",
    ),
    "the metadata log": (DYNAMIC, "50 (from the metadata log)"),
    "one tried": (replace(DYNAMIC, minutes=[20]), "20 (from --retention-minutes)"),
    "several tried": (replace(DYNAMIC, minutes=[20, 30]), "50 (from the metadata log)"),
}


@pytest.mark.parametrize("case", SAID)
def test_what_is_in_force_is_said_with_where_it_is_from(case: str) -> None:
    sources, expected = SAID[case]
    said = retention_found(sources).explanations
    assert said[0].startswith(f"{RETENTION} = {expected} is in force; {INTERVAL} = ")
    tried = ", ".join(map(str, retention_found(sources).minutes))
    assert said[-1] == f"what-if tries {RETENTION} = {tried}"


def disagreeing() -> RetentionFound:
    return retention_found(
        replace(
            BARE,
            brokers=[broker(1, retention=60), broker(2, retention=10)],
            leaders={0: 1, 1: 2, 2: 3},
        )
    )


def test_each_partition_goes_by_its_coordinators_broker() -> None:
    retention = disagreeing().retention
    kept = {
        partition: retention.of_partitions.get(partition, retention.otherwise).retention_ms
        for partition in range(3)
    }
    # Of the third broker there is no file: the shortest, as that is what could cost offsets.
    assert kept == {0: 60 * 60_000, 1: 10 * 60_000, 2: 10 * 60_000}


def test_brokers_that_disagree_are_named() -> None:
    (said,) = disagreeing().findings
    assert "broker-1.properties 60, broker-2.properties 10" in said


def test_each_coordinators_retention_is_said_with_its_file() -> None:
    assert disagreeing().explanations[1] == (
        f"__consumer_offsets 0: {RETENTION} = 60 (from the settings given: broker-1.properties)"
    )


def test_a_misspelt_setting_in_a_brokers_file_is_pointed_out() -> None:
    file = BrokerSettings("server.properties", 1, {"offset.retention.minutes": "5", "my.own": "x"})
    (said,) = retention_found(replace(BARE, brokers=[file])).findings
    assert said == (
        "server.properties sets offset.retention.minutes, which Kafka does not know; "
        f"did you mean {RETENTION}?"
    )


def test_brokers_that_agree_are_no_finding() -> None:
    same = replace(BARE, brokers=[broker(1, retention=60), broker(2, retention=60)])
    assert retention_found(same).findings == ()


def test_what_is_tried_is_what_is_in_force_unless_said_otherwise() -> None:
    assert disagreeing().minutes == (10, 60)
    assert retention_found(replace(BARE, minutes=[5, 7])).minutes == (5, 7)


def test_settings_of_groups_go_before_those_of_brokers() -> None:
    found = retention_found(
        replace(
            BARE,
            dynamic_groups={"a": {RETENTION: "1"}, "b": {RETENTION: "2"}, "c": {"x": "y"}},
            overrides=GivenSettings(groups={"b": {RETENTION: "3"}}),
        )
    )
    kept = {
        name: (each.retention_ms // 60_000, each.source)
        for name, each in found.retention.of_groups.items()
    }
    assert kept == {"a": (1, "dynamic"), "b": (3, "broker_config")}


def test_the_state_says_what_was_set_dynamically_and_who_leads() -> None:
    configs = pa.Table.from_pylist(
        [
            {"resource_type": "broker", "resource": "", "name": RETENTION, "value": "5"},
            {"resource_type": "broker", "resource": "2", "name": RETENTION, "value": "6"},
            {"resource_type": "group", "resource": "g", "name": RETENTION, "value": "7"},
            {"resource_type": "topic", "resource": "t", "name": RETENTION, "value": "8"},
        ]
    )
    leaders = pa.Table.from_pylist(
        [
            {"topic": "__consumer_offsets", "partition": 4, "leader": 2},
            {"topic": "__consumer_offsets", "partition": 5, "leader": -1},
            {"topic": "orders", "partition": 6, "leader": 2},
        ]
    )
    retention = retention_found(with_state(BARE, configs, leaders)).retention
    assert retention.otherwise.retention_ms == 5 * 60_000
    assert {at: each.retention_ms // 60_000 for at, each in retention.of_partitions.items()} == {
        4: 6
    }
    assert retention.of_groups["g"].retention_ms == 7 * 60_000


def test_what_the_metadata_log_says_holds_since_it_was_set() -> None:
    set_at = datetime(2024, 1, 1, tzinfo=UTC)
    configs = pa.Table.from_pylist(
        [
            {"resource_type": "broker", "resource": "", "name": RETENTION, "value": "5"},
            {"resource_type": "broker", "resource": "2", "name": RETENTION, "value": "6"},
            {"resource_type": "group", "resource": "g", "name": RETENTION, "value": "7"},
            # A controller stores what no broker takes.
            {"resource_type": "broker", "resource": "3", "name": RETENTION, "value": "-1"},
        ]
    ).append_column("since", pa.array([None, set_at, set_at, set_at], pa.timestamp("us", "UTC")))
    leaders = pa.Table.from_pylist(
        [{"topic": "__consumer_offsets", "partition": each, "leader": each} for each in (2, 3)]
    )
    sources = with_state(BARE, configs, leaders)
    kept = retention_found(sources).retention
    since_ms, week = round(set_at.timestamp() * 1000), 10080 * 60_000
    assert kept.otherwise == Setting(5 * 60_000, "dynamic", 600_000)
    assert kept.of_partitions == {2: Setting(6 * 60_000, "dynamic", 600_000, since_ms, week)}
    assert kept.of_groups == {"g": Setting(7 * 60_000, "dynamic", 600_000, since_ms, week)}
    given = replace(sources, overrides=GivenSettings({RETENTION: "30"}))
    assert retention_found(given).retention.otherwise.since_ms is None


ASKED = datetime(2026, 11, 27, 15, tzinfo=UTC)
ASKED_MS = round(ASKED.timestamp() * 1000)


def answered(*rows: tuple[str, str, str, str], leaders: dict[int, int] | None = None) -> Any:
    """What a cluster answered, and who leads which partition."""
    names = ("resource_type", "resource", "name", "value")
    configs = pa.Table.from_pylist(
        [
            {**dict(zip(names, row, strict=True)), "since": ASKED, "source": "snapshot"}
            for row in rows
        ]
    )
    led = [
        {"topic": "__consumer_offsets", "partition": partition, "leader": leader}
        for partition, leader in (leaders or {}).items()
    ]
    schema = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("leader", pa.int32())])
    return with_state(BARE, configs, pa.Table.from_pylist(led, schema))


def test_what_brokers_answered_is_in_force_and_what_was_before_assumed() -> None:
    sources = answered(("broker", "", RETENTION, "5"), ("broker", "", INTERVAL, "70"))
    found = retention_found(sources)
    five = 5 * 60_000
    assert found.retention.otherwise == Setting(five, "snapshot", 70, ASKED_MS, five)
    assert found.minutes == (5,)
    assert found.explanations[0] == (
        f"{RETENTION} = 5 (as the cluster answered at 2026-11-27T15:00:00.000Z; before that the "
        f"same is assumed) is in force; {INTERVAL} = 70 (as the cluster answered)"
    )
    assert found.findings == ()


def test_a_person_goes_before_what_brokers_answered_where_they_say_it() -> None:
    sources = answered(("broker", "", RETENTION, "5"), ("broker", "", INTERVAL, "70"))
    silent = replace(sources, brokers=[broker(1, interval=7)])
    assert in_force(silent) == (5, "snapshot", 7)
    given = replace(sources, brokers=[broker(1, retention=40)])
    assert in_force(given) == (40, "broker_config", 70)
    assert in_force(replace(sources, minutes=[20])) == (20, "option", 70)


def test_brokers_that_answered_otherwise_each_count_where_they_coordinate() -> None:
    rows = [("broker", "1", RETENTION, "9"), ("broker", "2", RETENTION, "6")]
    sources = answered(*rows, ("group", "g", RETENTION, "7"), leaders={4: 1, 5: 2, 6: 3})
    kept = retention_found(sources).retention
    # Where nobody knows who leads it is the one that keeps offsets the shortest.
    assert kept.otherwise.retention_ms == 6 * 60_000
    minutes = {at: each.retention_ms // 60_000 for at, each in kept.of_partitions.items()}
    assert minutes == {4: 9, 6: 10080}
    assert kept.of_partitions[6].source == "default_assumed"
    seven = 7 * 60_000
    assert kept.of_groups == {"g": Setting(seven, "snapshot", 600_000, ASKED_MS, seven)}
    assert "group g: offsets.retention.minutes = 7 (as the cluster answered" in " ".join(
        retention_found(sources).explanations
    )


def test_no_release_heeds_what_the_metadata_log_says_and_that_is_told() -> None:
    (said,) = retention_found(DYNAMIC).findings
    assert said.startswith(f"{RETENTION} is in the metadata log, where brokers of Kafka 4.3 do not")
    silent = replace(DYNAMIC, brokers=[broker(1)])
    assert in_force(silent) == (10080, "default_assumed", 600_000)


@pytest.mark.parametrize("text", ["0", "-1"])
def test_a_setting_that_kafka_does_not_take_is_an_error(text: str) -> None:
    with pytest.raises(InputNotRecognizedError, match="from 1 to"):
        retention_found(replace(BARE, overrides=GivenSettings({INTERVAL: text})))


@pytest.mark.parametrize("text", ["seven", "1.5", ""])
def test_a_setting_that_is_no_number_is_an_error(text: str) -> None:
    with pytest.raises(InputNotRecognizedError, match=RETENTION):
        retention_found(replace(BARE, overrides=GivenSettings({RETENTION: text})))


PROPERTIES = r"""
# comment
! another
node.id=3
offsets.retention.minutes : 60
offsets.retention.check.interval.ms 9000
listeners=PLAINTEXT://:9092,\
    CONTROLLER://:9093
with\:colon = a\ b
empty=
"""


def test_a_server_properties_is_read_as_java_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(PROPERTIES, encoding="utf-8")
    settings = read_broker_settings(str(path))
    assert settings.node == 3
    assert settings.values == {
        "node.id": "3",
        RETENTION: "60",
        INTERVAL: "9000",
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "with:colon": "a b",
        "empty": "",
    }


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AbsentFileError, match="none: there is no such file"):
        read_broker_settings(str(tmp_path / "none"))


@pytest.mark.parametrize("text", ["root:x:0:0:root:/root:/bin/bash\n", "# nothing\n", "a = b\n"])
def test_a_file_that_sets_nothing_kafka_knows_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "passwd"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputNotRecognizedError, match=r"such as node\.id, log\.dirs"):
        read_broker_settings(str(path))


MISSPELT = {
    "offset.retention.minutes: 5": f"'offset.retention.minutes'; did you mean '{RETENTION}'?",
    "offsets: {retention: {minute: 5}}": f"did you mean '{RETENTION}'?",
    "group: {}": "sets nothing",
    "xyzzy: 1": "unknown setting 'xyzzy'",
    "rule: {expiration: {slack_share: 1}}": "unknown setting 'rule.expiration.slack_share'",
    "groups: {g: {offsets.retention.minuts: 5}}": f"groups: g: .*did you mean '{RETENTION}'?",
    "rules: {expirations: {slack_share: 1}}": "'expirations'; did you mean 'expiration'",
    "rules: {expiration: {slack: 1}}": "unknown threshold 'slack'",
    "": "sets nothing",
}


@pytest.mark.parametrize("text", MISSPELT)
def test_a_name_that_nobody_knows_is_an_error_that_names_the_nearest(
    text: str, tmp_path: Path
) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputNotRecognizedError, match=MISSPELT[text].rstrip("?")):
        read_given_settings(str(path))


@pytest.mark.parametrize(
    "dump", ["expiry/kafka-4.3.1-expiry/broker-1.server.properties"], ids=["4.3.1"]
)
def test_a_real_server_properties_is_known(dump: str) -> None:
    settings = read_broker_settings(str(Path(__file__).parents[2] / "data" / dump))
    assert [name for name in settings.values if not is_setting(name)] == []


def test_yaml_has_kafkas_names_flat_or_as_a_tree(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(
        "offsets.retention.minutes: 5\n"
        "offsets:\n  retention:\n    check.interval.ms: 8\n"
        "groups:\n  nightly: {offsets.retention.minutes: 9}\n"
        "rules:\n  expiration: {slack_share: 0.5}\n",
        encoding="utf-8",
    )
    given = read_given_settings(str(path))
    assert given.values == {RETENTION: "5", INTERVAL: "8"}
    assert given.groups == {"nightly": {RETENTION: "9"}}
    assert given.rules == {"expiration": {"slack_share": 0.5}}


@pytest.mark.parametrize("text", ["[1, 2]", "groups: 3", "a: [", "groups: {g: 3}"])
def test_yaml_of_another_shape_is_an_error(text: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputNotRecognizedError):
        read_given_settings(str(path))
