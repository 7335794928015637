"""Share partitions and their batches, replayed from decoded tables at an instant."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.contracts import contract_schema
from analytics.dump.inspection.found_losses import Loss
from analytics.replay.log.log_times import AsOf, cut_all
from analytics.replay.log.losses import WHOLE, Coverage
from analytics.replay.share_fold import share_states
from analytics.replay.share_partitions import claims_of, share_batches, share_partitions
from schemas import table
from tests.support.broker_state import BrokerState, CutBatch, CutSharePartition
from tests.support.cuts import Cut, cuts_of, read_state
from tests.support.decoded_frames import frames_of, frames_of_dump, without_log_start
from tests.support.share_histories import TOPIC, decoded_rows, expected_states, random_history

STATE_TABLES = ("share_snapshot", "share_update")
GROUP_TABLES = ("share_group_state_partition_metadata", "share_group_metadata")
ROOT = Path(__file__).parents[4]
DUMPS = ROOT / "tests" / "data" / "dumps"
EXAMPLE = ROOT / "examples" / "kafka-4.3.1-failover"

Key = tuple[str, str, int]
Rows = Mapping[str, Iterable[Mapping[str, Any]]]


# --- against the slow coordinator ----------------------------------------------------------------


def check_histories(seed: int, histories: int) -> None:
    """Replay many histories, each its own internal partition and as of an end of its own."""
    chance = random.Random(seed)
    records, ends = [], {}
    for partition in range(histories):
        history = random_history(chance, partition)
        records.extend(history)
        if chance.randrange(5):
            last = history[-1].offset if history else 0
            ends[partition] = chance.randrange(last + 2)
    expected = expected_states(records, ends)
    chance.shuffle(records)
    decoded = frames_of(decoded_rows(records), STATE_TABLES)
    as_of = AsOf({(TOPIC, partition): end for partition, end in ends.items()})
    found = {}
    for row in share_states(cut_all(decoded, as_of)).iter_rows(named=True):
        key = row["group_id"], row["topic_id"], row["partition"]
        row["batches"] = tuple(CutBatch(**each) for each in row["batches"])
        for name in ("create_timestamp", "write_timestamp"):
            row[name] = milliseconds(row[name])
        found[row["coordinator_partition"], key] = row
    assert found.keys() == expected.keys()
    for place, told in expected.items():
        assert {name: found[place][name] for name in told} == told, place


def milliseconds(at: datetime | None) -> int | None:
    return None if at is None else round(at.astimezone(UTC).timestamp() * 1000)


@settings(max_examples=2)
@given(seed=st.integers(0, 1 << 32))
def test_random_histories_at_random_instants_equal_the_reference(seed: int) -> None:
    check_histories(seed, 300)


@pytest.mark.long
@settings(max_examples=10)
@given(seed=st.integers(0, 1 << 32))
def test_ten_thousand_random_histories_equal_the_reference(seed: int) -> None:
    check_histories(seed, 1000)


# --- against real brokers ------------------------------------------------------------------------

BYTES = {
    "kafka-4.2.1-share": DUMPS / "kafka-4.2.1-share",
    "kafka-4.3.1-failover": EXAMPLE,
    "kafka-4.0.2-share": DUMPS / "kafka-4.0.2-share",
    "kafka-4.1.2-share-streams": DUMPS / "kafka-4.1.2-share-streams",
    "kafka-4.3.1-story": DUMPS / "kafka-4.3.1-story",
}
QUICK = {"kafka-4.2.1-share", "kafka-4.3.1-failover"}


def marked(*case: str) -> Any:
    """A case on a dump; the quick tests make do with two dumps."""
    return pytest.param(*case, marks=[] if case[0] in QUICK else [pytest.mark.long])


@pytest.mark.parametrize("name", [marked(name) for name in BYTES])
def test_at_every_cut_the_state_is_that_of_the_broker_that_loaded_it(
    name: str, tmp_path: Path
) -> None:
    cuts = cuts_of(DUMPS / name)
    assert cuts
    for copy in sorted({cut.copy for cut in cuts}):
        log_dir = without_log_start(BYTES[name] / copy, TOPIC, tmp_path)
        decoded = frames_of_dump(log_dir, TOPIC, STATE_TABLES)
        of_copy = [cut for cut in cuts if cut.copy == copy]
        found = states_at(decoded, of_copy)
        for number, cut in enumerate(of_copy):
            here = {key: row for (at, key), row in found.items() if at == number}
            assert told_of(here, cut.state) == cut.state.share_partitions, cut


FAR_APART = 1000


def states_at(decoded: Mapping[str, pl.DataFrame], cuts: list[Cut]) -> dict[tuple[int, Key], Any]:
    """Replay all cuts in one go, moving the internal partitions of each out of the others' way."""
    frames = []
    for number, cut in enumerate(cuts):
        at_cut = cut_all(decoded, AsOf({(TOPIC, each): 0 for each in range(50)} | cut.end_offsets))
        moved = pl.col("partition") + number * FAR_APART
        frames.append({each: at_cut[each].with_columns(moved) for each in at_cut})
    together = {each: pl.concat(frame[each] for frame in frames) for each in decoded}
    return {
        (
            row["coordinator_partition"] // FAR_APART,
            (row["group_id"], row["topic_id"], row["partition"]),
        ): row
        for row in share_states(together).to_dicts()
    }


def told_of(found: Mapping[Key, Any], state: BrokerState) -> tuple[CutSharePartition, ...]:
    """What was replayed, in the words and for the keys that the broker answered.

    It was asked for the partitions of topics and groups that were there; a lag cannot be told from
    the log, and names are not what is compared here.
    """
    told = []
    for asked in state.share_partitions:
        row = found.get(asked.key)
        told.append(
            CutSharePartition(
                *asked.key[:2],
                asked.topic,
                asked.partition,
                exists=row is not None,
                state_epoch=asked.state_epoch if row is None else row["state_epoch"],
                start_offset=asked.start_offset if row is None else row["start_offset"],
                leader_epoch=(
                    asked.leader_epoch
                    if row is None or asked.leader_epoch is None
                    else row["leader_epoch"]
                ),
                lag=asked.lag,
                batches=() if row is None else tuple(CutBatch(**each) for each in row["batches"]),
            )
        )
    return tuple(told)


@pytest.mark.parametrize(
    ("name", "copy", "state"),
    [
        marked("kafka-4.0.2-share", "broker-1", "state"),
        marked("kafka-4.1.2-share-streams", "broker-1", "state"),
        marked("kafka-4.2.1-share", "broker-1", "state"),
        marked("kafka-4.3.1-story", "broker-1", "state"),
        marked("kafka-4.3.1-failover", "broker-1", "state-before"),
        marked("kafka-4.3.1-failover", "broker-2", "state"),
        marked("kafka-4.3.1-failover", "broker-3", "state"),
    ],
)
def test_at_the_end_the_state_is_what_the_running_broker_said_last(
    name: str, copy: str, state: str
) -> None:
    decoded = frames_of_dump(BYTES[name] / copy, TOPIC, STATE_TABLES)
    said = read_state(DUMPS / name / "tools" / f"{state}.json.gz")
    rows = share_states(decoded).to_dicts()
    found = {(row["group_id"], row["topic_id"], row["partition"]): row for row in rows}
    assert told_of(found, said) == said.share_partitions
    assert not [
        row for row in rows if row["fault"] or row["epoch_mismatches"] or not row["has_snapshot"]
    ]


def test_a_cut_amid_pruned_records_is_replayed_but_said_to_be_incomplete(tmp_path: Path) -> None:
    """Below the log start lie updates whose snapshots are gone with their segments."""
    log_dir = without_log_start(BYTES["kafka-4.2.1-share"] / "broker-1", TOPIC, tmp_path)
    decoded = frames_of_dump(log_dir, TOPIC, STATE_TABLES) | frames_of({}, GROUP_TABLES)
    (cut,) = (each for each in cuts_of(DUMPS / "kafka-4.2.1-share") if each.name == "broker-1-03")
    at_cut = cut_all(decoded, AsOf(cut.end_offsets))
    rows = share_partitions(share_states(at_cut), claims_of(at_cut), topics_of()).to_dicts()
    without = [row for row in rows if not row["complete"]]
    assert without
    assert {row["missing"] for row in without} == {
        "the snapshot that its updates build on is not in the dump"
    }
    assert {row["state_epoch"] for row in without} == {0}
    assert all(row["create_timestamp"] is None for row in without)


# --- the tables ----------------------------------------------------------------------------------

GROUPS_TOPIC = "__consumer_offsets"
SECOND = datetime(2026, 1, 1, tzinfo=UTC)


def topics_of(**names: str) -> pl.DataFrame:
    """The table of topics: ids by name."""
    columns = contract_schema("topics")
    rows = [
        {**dict.fromkeys(columns), "topic": name, "topic_id": id_} for name, id_ in names.items()
    ]
    return pl.DataFrame(rows, columns)


def record(topic: str, offset: int, key: Mapping[str, Any], value: Any, **other: Any) -> Any:
    return {
        "topic": topic,
        "partition": 0,
        "offset": offset,
        "is_tombstone": value is None,
        "key": dict(key),
        "value": value,
    } | other


def snapshot(offset: int, key: Key, *batches: tuple[int, ...], **other: Any) -> Any:
    """A share snapshot as decoded."""
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    value = {
        "snapshot_epoch": 3,
        "state_epoch": 2,
        "leader_epoch": 1,
        "start_offset": 10,
        "delivery_complete_count": 4,
        "create_timestamp": 1_700_000_000_000,
        "write_timestamp": 1_700_000_001_000,
        "state_batches": [dict(zip(names, each, strict=True)) for each in batches],
    }
    named = dict(zip(("group_id", "topic_id", "partition"), key, strict=True))
    return record(TOPIC, offset, named, value, **other)


def update(offset: int, key: Key, **fields: Any) -> Any:
    """A share update without ranges, as decoded."""
    value = {
        "snapshot_epoch": 3,
        "leader_epoch": -1,
        "start_offset": -1,
        "delivery_complete_count": 4,
        "state_batches": [],
    } | fields
    named = dict(zip(("group_id", "topic_id", "partition"), key, strict=True))
    return record(TOPIC, offset, named, value)


def picture(offset: int, group: str, **claims: Mapping[str, list[int]]) -> Any:
    """What a group claims: partitions by topic id under initialized, initializing, deleting."""
    value = {
        f"{claim}_topics": [
            {"topic_id": topic_id, "topic_name": "?", "partitions": partitions}
            for topic_id, partitions in claims.get(claim, {}).items()
        ]
        for claim in ("initializing", "initialized", "deleting")
    }
    return record(GROUPS_TOPIC, offset, {"group_id": group}, value)


def replayed(
    rows: Rows,
    coverage: Coverage = WHOLE,
    topics: Mapping[str, str] | None = None,
) -> dict[Key, Any]:
    """The table of share partitions by key."""
    decoded = frames_of(rows, (*STATE_TABLES, *GROUP_TABLES))
    found = share_partitions(
        share_states(decoded), claims_of(decoded), topics_of(**(topics or {})), coverage
    )
    assert found.columns == [column.name for column in table("share_partitions").columns]
    rows_found = found.to_dicts()
    by_key = {(row["group_id"], row["topic_id"], row["partition"]): row for row in rows_found}
    assert len(by_key) == len(rows_found), "one row a key"
    return by_key


ORDERS = ("shop", "orders-id", 0)
RANGES = ((10, 10, 2, 1), (11, 13, 0, 2), (14, 20, 4, 5), (22, 22, 3, 5))


def test_a_row_sums_up_the_ranges() -> None:
    row = replayed(
        {
            "share_snapshot": [snapshot(7, ORDERS, *RANGES)],
            "share_update": [update(9, ORDERS)],
            "share_group_state_partition_metadata": [
                picture(3, "shop", initialized={"orders-id": [0]})
            ],
        },
        topics={"orders": "orders-id"},
    )[ORDERS]
    assert row | {"create_timestamp": None, "write_timestamp": None} == {
        "group_id": "shop",
        "topic_id": "orders-id",
        "topic": "orders",
        "partition": 0,
        "phase": "initialized",
        "state_epoch": 2,
        "snapshot_epoch": 3,
        "leader_epoch": 1,
        "start_offset": 10,
        "delivery_complete_count": 4,
        "available_count": 3,
        "acknowledged_count": 1,
        "archiving_count": 1,
        "archived_count": 7,
        "max_delivery_count": 5,
        "updates_since_snapshot": 1,
        "create_timestamp": None,
        "write_timestamp": None,
        "record_offset": 9,
        "coordinator_partition": 0,
        "epoch_mismatches": 0,
        "fault": None,
        "complete": True,
        "missing": None,
    }
    assert milliseconds(row["create_timestamp"]) == 1_700_000_000_000
    assert milliseconds(row["write_timestamp"]) == 1_700_000_001_000


def test_batches_are_one_row_a_range_with_kafkas_words() -> None:
    decoded = frames_of(
        {"share_snapshot": [snapshot(7, ORDERS, *RANGES, (30, 31, 7, 1))]}, STATE_TABLES
    )
    states, topics = share_states(decoded), topics_of(orders="orders-id")
    partitions = pl.DataFrame(schema=contract_schema("share_partitions"))
    found = share_batches(states, topics, partitions)
    assert found.columns == [column.name for column in table("share_batches").columns]
    rows = found.sort("first_offset").to_dicts()
    assert {(row["group_id"], row["topic"], row["topic_id"], row["partition"]) for row in rows} == {
        ("shop", "orders", "orders-id", 0)
    }
    assert [
        (row["first_offset"], row["last_offset"], row["delivery_state"], row["delivery_count"])
        for row in rows
    ] == [*RANGES, (30, 31, 7, 1)]
    assert [row["delivery_state_name"] for row in rows] == [
        "ACKNOWLEDGED",
        "AVAILABLE",
        "ARCHIVED",
        "ARCHIVING",
        "UNKNOWN",
    ]


def test_the_phase_is_what_the_last_picture_of_the_group_says() -> None:
    found = replayed(
        {
            "share_snapshot": [
                snapshot(0, ("shop", "a", 0)),
                snapshot(1, ("shop", "a", 1)),
                snapshot(2, ("shop", "b", 0)),
                snapshot(3, ("gone", "a", 0)),
            ],
            "share_group_state_partition_metadata": [
                picture(0, "shop", initialized={"a": [1]}),
                picture(1, "gone", initialized={"a": [0]}),
                picture(
                    2, "shop", initialized={"a": [0]}, initializing={"a": [2]}, deleting={"b": []}
                ),
                record(GROUPS_TOPIC, 3, {"group_id": "gone"}, None),
            ],
        },
    )
    assert {key: (row["phase"], row["complete"]) for key, row in found.items()} == {
        ("shop", "a", 0): ("initialized", True),
        ("shop", "a", 1): ("orphan", True),
        ("shop", "a", 2): ("initializing", True),
        ("shop", "b", 0): ("deleting", True),
        ("gone", "a", 0): ("orphan", True),
    }


def test_a_share_partition_that_is_only_claimed_has_a_row_without_state() -> None:
    found = replayed(
        {
            "share_group_state_partition_metadata": [
                picture(2, "shop", initialized={"a": [0]}, initializing={"a": [1]})
            ],
        },
    )
    initialized, initializing = found["shop", "a", 0], found["shop", "a", 1]
    assert initialized["start_offset"] is None
    assert initialized["available_count"] is None
    assert initialized["record_offset"] is None
    assert initialized["missing"] == "no record of its state is in the dump"
    assert initializing["complete"]


def test_under_4_0_which_writes_no_pictures_a_living_group_claims_its_state() -> None:
    early = {"value_layout": "4.0"}
    group = {"epoch": 1, "metadata_hash": None}
    found = replayed(
        {
            "share_snapshot": [
                snapshot(0, ("lives", "a", 0), **early),
                snapshot(1, ("deleted", "a", 0), **early),
                snapshot(2, ("newer", "a", 0), value_layout="4.1+"),
            ],
            "share_group_metadata": [
                record(GROUPS_TOPIC, 0, {"group_id": "lives"}, group),
                record(GROUPS_TOPIC, 1, {"group_id": "deleted"}, group),
                record(GROUPS_TOPIC, 2, {"group_id": "deleted"}, None),
                record(GROUPS_TOPIC, 3, {"group_id": "newer"}, group),
            ],
        },
    )
    assert {key[0]: row["phase"] for key, row in found.items()} == {
        "lives": "initialized",
        "deleted": "orphan",
        "newer": "orphan",
    }


def test_what_the_dump_lacks_is_said() -> None:
    claimed = {"a": [0, 1, 2, 3]}
    found = replayed(
        {
            "share_snapshot": [snapshot(10, ("shop", "a", 0)), snapshot(30, ("shop", "a", 1))],
            "share_update": [
                update(40, ("shop", "a", 1), snapshot_epoch=9),
                update(41, ("shop", "a", 2)),
            ],
            "share_group_state_partition_metadata": [picture(1, "shop", initialized=claimed)],
        },
        Coverage({(TOPIC, 0): 20}, {TOPIC: 50}, {TOPIC: frozenset(range(1, 50))}),
    )
    assert {key[2]: row["missing"] for key, row in found.items()} == {
        0: "records between its snapshot and its last update are not in the dump",
        1: "updates of it build on a snapshot that is not in the dump",
        2: "the snapshot that its updates build on is not in the dump",
        3: "its state belongs to __share_group_state-18, of which this dump has no copy",
    }
    assert not any(row["complete"] for row in found.values())


HOME_OF_MINE = (GROUPS_TOPIC, 12)
ABSENT = Coverage({}, {GROUPS_TOPIC: 50}, {GROUPS_TOPIC: frozenset({12})})
LOSSES = {HOME_OF_MINE: [Loss(5, 8, "damaged")]}
DAMAGED = Coverage({HOME_OF_MINE: 8}, {GROUPS_TOPIC: 50}, losses=LOSSES)


@pytest.mark.parametrize(
    ("coverage", "missing"),
    [
        (ABSENT, "what the group claims belongs to __consumer_offsets-12, of which this dump has"),
        (DAMAGED, "who claims it: a lost record may have changed it: __consumer_offsets-12 lacks"),
    ],
)
def test_state_is_no_orphan_where_what_claims_it_may_be_lost(
    coverage: Coverage, missing: str
) -> None:
    snapshots = [snapshot(0, ("my-group", "a", 0)), snapshot(1, ("gruppe-ä", "a", 0))]
    found = replayed({"share_snapshot": snapshots}, coverage)
    mine, other = found["my-group", "a", 0], found["gruppe-ä", "a", 0]
    assert (mine["phase"], mine["complete"]) == ("unknown", False)
    assert mine["missing"].startswith(missing)
    assert (other["phase"], other["complete"]) == ("orphan", True)


def test_a_topic_without_a_known_name_has_none() -> None:
    found = replayed({"share_snapshot": [snapshot(0, ORDERS)]}, topics={"other": "x"})
    assert found[ORDERS]["topic"] is None
