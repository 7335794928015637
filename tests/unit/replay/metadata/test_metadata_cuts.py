"""Topics, settings and leaders between the two cuts of a metadata log whose times go back.

Held against every cut in between: a row that is certain is the same in all of them.
"""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest

from analytics.replay.between_cuts import (
    marked_configs,
    marked_leaders,
    marked_topics,
    metadata_cuts,
)
from analytics.replay.log.log_times import Frame
from analytics.replay.log.losses import Coverage
from analytics.replay.metadata_log import (
    MetadataLog,
    configs,
    metadata_log,
    partition_leaders,
)
from analytics.replay.topics import named_in_records, topics
from schemas import table
from tests.support.decoded_frames import frames_of
from tests.support.metadata_records import NEW, OLD, TABLES, change, partition, topic

PLACE = {"topic": "__cluster_metadata", "partition": 0}
SEGMENT = "__cluster_metadata-0/00000000000000000000.log"
Said = tuple[str, dict[str, Any] | None]
FIRST: Said = ("feature_level_record", {"name": "metadata.version", "feature_level": 30})


def retention(value: str | None, name: str = "t") -> Said:
    said = {"resource_type": 2, "resource_name": name, "name": "retention.ms", "value": value}
    return "config_record", said


def log_of(records: list[Said]) -> MetadataLog:
    rows: dict[str, list[dict[str, Any]]] = {}
    for offset, (name, value) in enumerate(records):
        rows.setdefault(name, []).append(
            {**PLACE, "offset": offset, "segment": SEGMENT, "value": value}
        )
    return metadata_log(frames_of(rows, TABLES))


def tables_of(log: MetadataLog) -> dict[str, pl.DataFrame]:
    return {
        "topics": topics(log, (), named_in_records(log.decoded)),
        "configs": configs(log),
        "partition_leaders": partition_leaders(log),
    }


def marked(records: list[Said], certain_end: int) -> dict[str, pl.DataFrame]:
    later = log_of(records)
    frame = Frame(certain_end, len(records), 2000, 1000)
    cuts = metadata_cuts(later, Coverage(frames={("__cluster_metadata", 0): frame}))
    assert cuts is not None
    rows = tables_of(later)
    earlier = topics(cuts.earlier, (), named_in_records(later.decoded))
    return {
        "topics": marked_topics(rows["topics"], earlier, cuts),
        "configs": marked_configs(rows["configs"], cuts),
        "partition_leaders": marked_leaders(rows["partition_leaders"], cuts),
    }


def words(frame: pl.DataFrame, *columns: str) -> dict[Any, bool]:
    return {row[:-1]: row[-1] for row in frame.select(*columns, "complete").iter_rows()}


BEFORE = [FIRST, topic("t", OLD), partition(OLD, 0, 1), partition(OLD, 1, 1), retention("1")]
BEFORE += [topic("u", NEW), partition(NEW, 0, 2), retention("5", "u")]


def test_what_records_between_the_cuts_are_about_is_not_certain() -> None:
    found = marked([*BEFORE, change(OLD, leader=2), retention("2"), retention("1")], len(BEFORE))
    # A setting that is as it was may have been otherwise in between.
    assert words(found["configs"], "resource", "value") == {("t", "1"): False, ("u", "5"): True}
    leaders = words(found["partition_leaders"], "topic", "partition")
    assert leaders == {("t", 0): False, ("t", 1): True, ("u", 0): True}
    assert words(found["topics"], "topic") == {("t",): True, ("u",): True}
    why = found["configs"].filter(~pl.col("complete"))["missing"].item()
    assert why.startswith("the times of __cluster_metadata-0 go back: offset 8 says ")


def test_what_was_deleted_between_the_cuts_may_be_there() -> None:
    found = marked([*BEFORE, ("remove_topic_record", {"topic_id": OLD})], len(BEFORE))
    assert words(found["topics"], "topic") == {("t",): False, ("u",): True}
    assert words(found["configs"], "resource", "value") == {("t", "1"): False, ("u", "5"): True}
    leaders = words(found["partition_leaders"], "topic", "partition")
    assert leaders == {("t", 0): False, ("t", 1): False, ("u", 0): True}


def test_what_a_transaction_between_the_cuts_makes_visible_is_not_certain() -> None:
    records: list[Said] = [
        *BEFORE[:5],
        ("begin_transaction_record", {}),
        topic("u", NEW),
        partition(NEW, 0, 2),
        ("end_transaction_record", {}),
    ]
    found = marked(records, len(records) - 1)
    assert words(found["topics"], "topic") == {("t",): True, ("u",): False}
    leaders = words(found["partition_leaders"], "topic", "partition")
    assert leaders == {("t", 0): True, ("t", 1): True, ("u", 0): False}


@pytest.mark.parametrize("seed", range(12))
def test_a_row_that_is_certain_is_the_same_in_every_cut_between(seed: int) -> None:
    draw = random.Random(seed)
    later = [
        draw.choice(
            [
                change(draw.choice([OLD, NEW]), leader=draw.choice([1, 2, 3])),
                retention(draw.choice(["1", "2", None]), draw.choice(["t", "u"])),
                partition(OLD, 2, 1),
            ]
        )
        for _ in range(draw.randrange(1, 5))
    ]
    records = [*BEFORE, *later]
    found = marked(records, len(BEFORE))
    for end in range(len(BEFORE), len(records) + 1):
        for name, rows in tables_of(log_of(records[:end])).items():
            key = list(table(name).key)
            certain = found[name].filter("complete").sort(key)
            same = rows.join(certain.select(key), on=key, how="semi").sort(key)
            assert certain.to_dicts() == same.to_dicts(), (name, end)
