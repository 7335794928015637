"""A log that ends at an offset, and the whole log as of that offset, are replayed alike.

Small logs of real brokers, at every offset there is: the copies that stand for all these instants
lie beside each other, each as an internal partition of its own, and are replayed in one go.
"""

from __future__ import annotations

import shutil
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from analytics.replay.log.log_times import AsOf, cut_all
from analytics.replay.log.rules import replay_rules
from tests.support.decoded_frames import frames_of, frames_of_dump
from tests.support.group_histories import TABLES, TOPIC
from tests.support.reference_group_coordinator import Tables, tables_of
from tests.support.reference_offsets import GroupRecord
from tests.support.replayed_cuts import laid_apart
from tests.support.replayed_tables import Found, replayed_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
SURVIVOR = ROOT / "examples" / "kafka-4.3.1-failover" / "broker-2"
OLD_BROKER = ROOT / "tests" / "data" / "dumps" / "kafka-3.9.2-classic" / "broker-1"
LOGS = (
    SURVIVOR / f"{TOPIC}-2",  # a share group, a classic one
    SURVIVOR / f"{TOPIC}-6",  # a streams group
    OLD_BROKER / f"{TOPIC}-29",  # transactions, tombstones
)
SEGMENT = f"{0:020d}.log"
APART = 1000


@dataclass(frozen=True)
class Copy:
    """One copy of a log: taken as of an offset, or, where it `is_short`, ending there."""

    log: int
    end: int
    is_short: bool


def ends_of_batches(log: bytes) -> dict[int, int]:
    """Where a log of batches of format 2 may end: size in bytes by end offset."""
    ends, at = {0: 0}, 0
    while at < len(log):
        first, length = struct.unpack_from(">qi", log, at)
        (last,) = struct.unpack_from(">i", log, at + 23)
        at += 12 + length
        ends[first + last + 1] = at
    return ends


@dataclass(frozen=True)
class Laid:
    """Copies by their internal partition, and the tables of all of them."""

    copies: dict[int, Copy]
    tables: dict[str, pl.DataFrame]


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> Laid:
    """All copies; names of groups begin with the number of the copy.

    Logs that end early are cut as bytes; a whole one is decoded once, and its rows are repeated.
    """
    log_dir = tmp_path_factory.mktemp("as-of") / "broker-1"
    contents = [(log / SEGMENT).read_bytes() for log in LOGS]
    ends = [ends_of_batches(content) for content in contents]
    cut_short = [
        (Copy(number, end, is_short=True), contents[number][:size])
        for number in range(len(LOGS))
        for end, size in ends[number].items()
        if size
    ]
    for partition, content in enumerate([*contents, *(content for _, content in cut_short)]):
        folder = log_dir / f"{TOPIC}-{partition}"
        folder.mkdir(parents=True)
        (folder / SEGMENT).write_bytes(content)
    shutil.copy(LOGS[0].parent / "meta.properties", log_dir)

    copies = {len(LOGS) + at: copy for at, (copy, _) in enumerate(cut_short)}
    instants = [
        Copy(number, end, is_short=False)
        for number in range(len(LOGS))
        for end in range(max(ends[number]) + 1)
    ]
    copies |= {APART + at: copy for at, copy in enumerate(instants)}
    places = [(copy.log if at >= APART else at, at) for at, copy in copies.items()]
    schema = {"partition": pl.Int32, "laid_as": pl.Int32}
    numbered = pl.DataFrame(places, schema, orient="row")
    frames = frames_of_dump(log_dir, TOPIC, TABLES)
    tables = {
        name: laid_apart(frame.join(numbered, "partition"), pl.col("laid_as")).select(frame.columns)
        for name, frame in frames.items()
    }
    return Laid(copies, tables | frames_of({}, ("transaction_log",)))


@pytest.fixture(scope="module")
def found(laid: Laid) -> Found:
    """All copies replayed, those that are whole as of their offset."""
    instants = {
        (TOPIC, number): copy.end for number, copy in laid.copies.items() if not copy.is_short
    }
    no_names = pl.DataFrame(schema={"topic": pl.String, "topic_id": pl.String})
    return replayed_tables(cut_all(laid.tables, AsOf(instants)), no_names, replay_rules("4.3"))


def of_copy(found: Found, number: int) -> dict[str, list[dict[str, Any]]]:
    """The rows of a copy without what tells it from others, in an order."""
    own = f"{number}|"
    return {
        name: sorted(
            (
                row | {"group_id": row["group_id"].removeprefix(own), "coordinator_partition": 0}
                for row in rows.values()
                if row["group_id"].startswith(own)
            ),
            key=str,
        )
        for name, rows in found.items()
    }


def test_a_log_that_ends_there_is_the_whole_log_as_of_there(found: Found, laid: Laid) -> None:
    rows = {each: of_copy(found, number) for number, each in laid.copies.items()}
    short = [each for each in laid.copies.values() if each.is_short]
    assert len(short) > len(LOGS)
    for each in short:
        assert rows[each] == rows[Copy(each.log, each.end, is_short=False)], each
    assert all(rows[each]["groups"] for each in short)


def test_at_every_offset_it_is_what_the_slow_coordinator_knows(found: Found, laid: Laid) -> None:
    records = sorted(records_of(laid.tables), key=lambda each: each.offset)
    ends = {number: each.end for number, each in laid.copies.items()}
    expected: Tables = tables_of(records, ends, "4.3", {})
    for name, told in vars(expected).items():
        assert found[name].keys() == told.keys(), name
        for key, row in told.items():
            assert {field: found[name][key][field] for field in row} == row, name


def records_of(decoded: dict[str, pl.DataFrame]) -> Iterator[GroupRecord]:
    """The decoded rows as the reference takes them."""
    for table in TABLES:
        for row in decoded[table].iter_rows(named=True):
            yield GroupRecord(
                row["partition"],
                row["offset"],
                table,
                row.get("key") or {},
                row.get("value"),
                row.get("control_type"),
                row["producer_id"],
                row["producer_epoch"],
                row["is_transactional"],
                row["leader_epoch"],
            )
