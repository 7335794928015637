"""Whether a topic was gone when its offsets went, of which the metadata log may not tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from analytics.contracts import TIME, contract_schema
from analytics.replay.log.losses import Coverage
from analytics.replay.removals.removed_offsets import with_topic_absence
from tests.support.told_removals import beginning_of, told_removals

BEFORE, START, AFTER = (datetime(2026, 11, 21, hour, tzinfo=UTC) for hour in (9, 10, 11))
OLD, NEW, ZERO = "gtb2stGYRk-vWZ2zAozmoA", "EYAGe3ybSjSvj5d44sPkEw", "AAAAAAAAAAAAAAAAAAAAAA"
SNAPSHOT = "__cluster_metadata-0/00000000000000000700-0000000002.checkpoint"
FIRST_FILE = "__cluster_metadata-0/00000000000000000000.log"

REMOVED = [
    ("before, another life of the name", "lives", BEFORE, OLD),
    ("before, the life that is there", "lives", BEFORE, NEW),
    ("before, of a life not named", "lives", BEFORE, ZERO),
    ("before, a name nobody has", "gone", BEFORE, None),
    ("before, a name that came later", "newcomer", BEFORE, None),
    ("after", "gone", AFTER, None),
]


def absences(
    segment: str | None, directories: list[str] | None = None, *, beside: bool = False
) -> dict[str, bool | None]:
    """Return what is said of each case where the metadata log begins in a file, or is not there."""
    first = {"topic": "__cluster_metadata", "offset": 0, "timestamp": START, "segment": segment}
    log = beginning_of({"feature_level_record": [first] if segment else []})
    topics = [
        {"topic": "lives", "topic_id": NEW, "source": "metadata_log"},
        {"topic": "newcomer", "topic_id": OLD, "source": "metadata_log", "created_at": AFTER},
    ]
    if beside:
        topics = [{"topic": "lives", "topic_id": NEW, "source": "partition_metadata"}]
    elif not segment:
        topics = []
    columns = {"case": pl.String, "topic": pl.String, "at": TIME, "removed_topic_id": pl.String}
    removed = pl.DataFrame(REMOVED, columns, orient="row")
    told = pl.DataFrame(topics, contract_schema("topics"))
    rows = with_topic_absence(removed, told, log, directories)
    return dict(rows.select("case", "topic_absent").rows())


def test_of_the_time_before_its_first_snapshot_the_log_tells_what_outlived_it() -> None:
    assert absences(SNAPSHOT) == {
        "before, another life of the name": True,
        "before, the life that is there": False,
        "before, of a life not named": None,
        "before, a name nobody has": True,
        "before, a name that came later": True,
        "after": False,
    }


def test_a_log_from_its_start_tells_of_every_deletion() -> None:
    assert set(absences(FIRST_FILE).values()) == {False}


@pytest.mark.parametrize(("directories", "gone"), [(None, None), (["lives"], True)])
def test_without_a_log_a_directory_may_be_of_a_topic_that_was_created_again(
    directories: list[str] | None, gone: bool | None
) -> None:
    found = absences(None, directories)
    assert found["before, another life of the name"] is None
    assert found["before, a name nobody has"] is gone
    assert found["after"] is gone


def test_the_id_in_a_directory_tells_which_topic_it_is_of() -> None:
    found = absences(None, ["lives"], beside=True)
    assert found["before, another life of the name"] is True
    assert found["before, the life that is there"] is False
    assert found["before, of a life not named"] is None


@pytest.mark.parametrize(
    ("directories", "cause", "confidence"),
    [
        (frozenset({"lives"}), "unknown", "low"),
        (frozenset({"lives", "gone"}), "unknown", "low"),
        (None, "unknown", "low"),
    ],
)
def test_history_looks_at_the_directories_too(
    directories: frozenset[str] | None, cause: str, confidence: str
) -> None:
    """Where ZooKeeper had the metadata: a group of 3.9.2 ended with its last topic."""
    place = {"topic": "__consumer_offsets", "partition": 3, "producer_id": -1, "leader_epoch": 0}
    soon = START + timedelta(seconds=1)
    committed = {"offset": 15, "commit_timestamp": round(START.timestamp() * 1000)}
    offset = {"group": "watchers", "topic": "gone", "partition": 0}
    empty = {"protocol_type": "consumer", "generation": 2, "members": []}

    def row(number: int, at: datetime, key: dict[str, Any], value: Any) -> dict[str, Any]:
        told = {"offset": number, "batch_offset": number, "timestamp": at, "key": key}
        return place | told | {"value": value, "is_tombstone": value is None}

    group = {"group": "watchers"}
    rows = {
        "offset_commit": [row(0, START, offset, committed), row(2, soon, offset, None)],
        "group_metadata": [row(1, START, group, empty), row(3, soon, group, None)],
    }
    coverage = Coverage(data_topics=directories)
    assert told_removals(rows, "3.9", coverage=coverage) == {2: (cause, confidence)}
