"""Since when share partitions are being initialised, and topics deleted."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any

import polars as pl
import pyarrow as pa
from hypothesis import strategies as st

from analytics.contracts import arrow_rows, polars_rows
from analytics.decode.tables import decoded_schema
from analytics.questions.share.faults import FAULTS, faults_in_order, stuck_phases
from analytics.questions.share.group_pictures import COLUMNS, phases
from analytics.questions.share.question import ORDERS
from analytics.tables.parted_table import PartedTable
from schemas import record_types
from schemas.share_rules import share_rules
from tests.support.examples import examples
from tests.unit.questions.share.backlog import time_of

TABLE = "share_group_state_partition_metadata"
KINDS = {kind.table: kind for kind in record_types("__consumer_offsets").values()}
SCHEMA = decoded_schema(KINDS[TABLE])
Picture = tuple[frozenset[tuple[str, int]], frozenset[str]]
"""What a record names: share partitions that are initialised, and topics that are deleted."""


def pictures(records: list[tuple[int, str, Picture | None]]) -> pl.DataFrame:
    """Records in order: internal partition, group, picture; their place is their offset."""
    rows = []
    for offset, (home, group, picture) in enumerate(records):
        value = None
        if picture is not None:
            initializing, deleting = picture
            topics = sorted({topic for topic, _ in initializing})
            value = {
                "initializing_topics": [
                    {
                        "topic_id": topic,
                        "topic_name": f"name of {topic}",
                        "partitions": sorted(p for t, p in initializing if t == topic),
                    }
                    for topic in topics
                ],
                "initialized_topics": [],
                "deleting_topics": [
                    {"topic_id": each, "topic_name": None} for each in sorted(deleting)
                ],
            }
        rows.append(
            {
                "partition": home,
                "offset": offset,
                "timestamp": time_of(offset),
                "is_tombstone": value is None,
                "key": {"group_id": group},
                "value": value,
            }
        )
    fields = pa.schema([SCHEMA.field(name) for name in COLUMNS])
    return polars_rows(pa.Table.from_pylist(rows, fields))


def told(records: list[tuple[int, str, Picture | None]]) -> dict[tuple[Any, ...], Any]:
    found = phases(pictures(records)).to_dicts()
    keys = ("group_id", "topic_id", "partition", "phase")
    by_key = {tuple(each[name] for name in keys): each for each in found}
    assert len(by_key) == len(found)
    return {
        key: (each["record_offset"], each["phase_since"], each["is_exact"])
        for key, each in by_key.items()
    }


def picture(*initializing: tuple[str, int], deleting: str = "") -> Picture:
    return frozenset(initializing), frozenset(deleting)


def test_a_phase_lasts_since_the_first_of_the_records_that_all_name_it() -> None:
    records = [
        (0, "g", picture(("a", 0))),
        (0, "g", picture(("a", 0), ("a", 1))),
        (0, "other", picture(("a", 0))),
        (0, "g", picture(("a", 1), deleting="b")),
        (0, "g", picture(("a", 0), ("a", 1), deleting="b")),
    ]
    assert told(records) == {
        ("g", "a", 0, "initializing"): (4, time_of(4), True),
        ("g", "a", 1, "initializing"): (1, time_of(1), True),
        ("g", "b", None, "deleting"): (3, time_of(3), True),
        ("other", "a", 0, "initializing"): (2, time_of(2), False),
    }


def test_a_deleted_group_has_no_phases() -> None:
    assert told([(0, "g", picture(("a", 0), deleting="b")), (0, "g", None)]) == {}


def test_no_records_tell_nothing() -> None:
    assert told([]) == {}


def stuck(records: list[tuple[int, str, Picture | None]]) -> pl.DataFrame:
    return stuck_phases(phases(pictures(records)), share_rules(), time_of(0) + timedelta(days=1))


def test_stuck_phases_are_in_order_of_what_they_are_and_of_their_groups() -> None:
    """Behind faults of state, which are in the order of its log; whichever groups are together."""
    records = [(0, group, picture(("b", 0), ("a", 1), deleting="b")) for group in "hgi"]
    of_state = pl.DataFrame(
        [
            {"group_id": group, "fault": fault, "coordinator_partition": 1, "record_offset": offset}
            for group, fault, offset in (
                ("z", "snapshot_skipped", 3),
                ("z", "leader_epoch_back", 7),
                ("a", "other_snapshot", 5),
            )
        ],
        FAULTS,
    )
    every = pl.concat([stuck(records), of_state]).sample(fraction=1, shuffle=True, seed=1)
    rows = faults_in_order(every)
    assert rows.select("fault", "group_id", "topic").rows() == [
        ("snapshot_skipped", "z", None),
        ("other_snapshot", "a", None),
        ("leader_epoch_back", "z", None),
        *(("stuck_initializing", group, f"name of {topic}") for group in "ghi" for topic in "ab"),
        *(("stuck_deleting", group, "b") for group in "ghi"),
    ]
    for groups, others in pairwise((["a", "g"], ["h", "i", "z"], ["a", "g"])):
        parts = [rows.filter(pl.col("group_id").is_in(each)) for each in (groups, others)]
        order = ORDERS["share_faults"]
        table = PartedTable.of_contract("share_faults", [*map(arrow_rows, parts)], order)
        assert table.whole().to_pylist() == rows.to_dicts()


def random_records(random: Random) -> list[tuple[int, str, Picture | None]]:
    records: list[tuple[int, str, Picture | None]] = []
    for _ in range(random.randrange(25)):
        group = random.choice("gh")
        named = {(random.choice("ab"), random.randrange(3)) for _ in range(random.randrange(4))}
        gone = {random.choice("cd") for _ in range(random.randrange(3))}
        value = None if random.randrange(8) == 0 else (frozenset(named), frozenset(gone))
        records.append(("gh".index(group), group, value))
    return records


@examples(12, 60, seed=st.integers(0, 2**32))
def test_random_pictures_are_told_as_a_dictionary_tells_them(seed: int) -> None:
    records = random_records(Random(seed))
    since: dict[tuple[Any, ...], int] = {}
    for offset, (_, group, value) in enumerate(records):
        initializing, deleting = value or (frozenset(), frozenset())
        named = {(group, topic, number, "initializing") for topic, number in initializing}
        named |= {(group, topic, None, "deleting") for topic in deleting}
        kept = {key: at for key, at in since.items() if key[0] != group or key in named}
        since = {**dict.fromkeys(named, offset), **kept}
    assert {key: at for key, (at, _, _) in told(records).items()} == since
