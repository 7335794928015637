"""How long topics keep records: whose setting counts, worked by hand from Kafka's own order."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from analytics.errors import InputNotRecognizedError
from analytics.questions.lag.retention import (
    NO_CONFIGS,
    TIERED,
    TopicRetention,
    topic_retention,
)
from analytics.replayed.given_settings import BrokerSettings, GivenSettings, Settings

HOUR = 3_600_000
TEXT = pa.string()
TOPICS = pa.schema([("topic", TEXT), ("source", TEXT), ("deleted_at", pa.timestamp("us", "UTC"))])
COLUMNS = ("resource_type", "resource", "name", "value", "source")
CONFIGS = pa.schema([(name, TEXT) for name in COLUMNS])
LOGGED, ANSWERED = "metadata_log", "snapshot"


def kept(
    *configs: tuple[str, str, str, str],
    files: tuple[dict[str, str], ...] = (),
    given: dict[str, str] | None = None,
    source: str = LOGGED,
    unanswered: tuple[str, ...] = (),
) -> TopicRetention:
    rows = [dict(zip(CONFIGS.names, (*each, source), strict=True)) for each in configs]
    brokers = [BrokerSettings(f"{n}.properties", n, each) for n, each in enumerate(files)]
    found = topic_retention(
        pl.DataFrame(pa.Table.from_pylist([{"topic": "t", "source": source}], TOPICS)),
        pl.DataFrame(pa.Table.from_pylist(rows, CONFIGS)),
        Settings(brokers, GivenSettings(given or {})),
        unanswered,
    )
    return found["t"]


def own(name: str, value: str) -> tuple[str, str, str, str]:
    return "topic", "t", name, value


def test_without_any_setting_a_week_is_assumed_and_said() -> None:
    found = kept()

    assert (found.ms, found.size) == (168 * HOUR, None)
    assert "assumed" in found.said


def test_a_topics_own_setting_goes_before_all_others() -> None:
    dynamic = ("broker", "", "log.retention.ms", "5")
    found = kept(own("retention.ms", "7"), dynamic, files=({"log.retention.ms": "6"},))

    assert (found.ms, found.said) == (7, "retention.ms = 7 (the topic's own)")


@pytest.mark.parametrize(
    ("configs", "files", "given", "ms"),
    [
        ([], ({"log.retention.hours": "2"},), {}, 2 * HOUR),
        ([], ({"log.retention.hours": "2", "log.retention.minutes": "3"},), {}, 180_000),
        ([], ({"log.retention.minutes": "3", "log.retention.ms": "4"},), {}, 4),
        ([], ({"log.retention.hours": "-1"},), {}, None),
        # Brokers that differ: the one that keeps less.
        ([], ({"log.retention.ms": "90"}, {"log.retention.ms": "30"}), {}, 30),
        ([("broker", "", "log.retention.ms", "5")], ({"log.retention.ms": "6"},), {}, 5),
        ([("broker", "3", "log.retention.ms", "5")], (), {}, 5),
        ([], (), {"log.retention.ms": "8"}, 8),
    ],
)
def test_a_brokers_setting_is_the_finest_and_the_dynamic_one(
    configs: Any, files: tuple[dict[str, str], ...], given: dict[str, str], ms: int | None
) -> None:
    assert kept(*configs, files=files, given=given).ms == ms


def test_size_counts_where_it_is_set() -> None:
    assert kept(own("retention.bytes", "100")).size == 100
    assert kept(own("retention.bytes", "-1"), own("retention.ms", "-1")).ms is None


@pytest.mark.parametrize(
    ("policy", "ms"),
    [("compact", None), ("compact,delete", 168 * HOUR), ("delete", 168 * HOUR), ("", None)],
)
def test_what_is_only_compacted_is_never_deleted_by_retention(policy: str, ms: int | None) -> None:
    found = kept(own("cleanup.policy", policy))

    assert (found.ms, found.why_unknown) == (ms, None)


def test_what_the_dump_does_not_tell_is_not_assumed() -> None:
    assert kept(source="partition_metadata").why_unknown == NO_CONFIGS
    assert kept(own("remote.storage.enable", "true")).why_unknown == TIERED


def test_what_a_cluster_answered_counts_where_no_file_is_given() -> None:
    answer = ("broker", "", "log.retention.hours", "2")
    found = kept(answer, source=ANSWERED)
    assert found.ms == 2 * HOUR
    assert found.said == f"retention.ms = {2 * HOUR} (the brokers', as they answered)"
    # What a person gives goes before, whatever unit it is in.
    in_ms = ("broker", "", "log.retention.ms", "7")
    assert kept(in_ms, source=ANSWERED, files=({"log.retention.hours": "3"},)).ms == 3 * HOUR
    assert kept(own("retention.ms", "5"), answer, source=ANSWERED).ms == 5


def test_of_brokers_that_answered_otherwise_the_one_that_keeps_less_counts() -> None:
    answers = [("broker", str(node), "log.retention.ms", str(node)) for node in (9, 4)]
    assert kept(*answers, source=ANSWERED).ms == 4


def test_of_a_topic_whose_settings_were_not_answered_nothing_is_assumed() -> None:
    found = kept(source=ANSWERED, unanswered=("t",))
    assert found.why_unknown == NO_CONFIGS


def test_a_setting_that_is_no_number_is_refused() -> None:
    with pytest.raises(InputNotRecognizedError, match=r"retention.ms is 'soon'"):
        kept(own("retention.ms", "soon"))
