"""The tables are the same whatever partitions and groups are looked at together."""

from __future__ import annotations

from collections import Counter, defaultdict
from random import Random
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from analytics.evaluate.expiration import tables
from analytics.evaluate.expiration.offset_log import GroupRecords
from analytics.evaluate.expiration.offset_removals import Cluster
from analytics.evaluate.expiration.retention import OPTION, Retention, Setting
from analytics.evaluate.expiration.tables import (
    FATES,
    NOTES,
    ExpirationQuestion,
    Known,
    expiration_tables,
)
from analytics.replay.log.rules import replay_rules
from analytics.replay.metadata.coordinator_starts import STARTS
from schemas.expiration_rules import OFFSET_STATUSES, audit_rules, expiration_eras
from tests.support.expiration_logs import NO_LOG, committed_in, log_of, state_of
from tests.support.reference_expiration import Coordinator

if TYPE_CHECKING:
    from collections.abc import Iterable

START, MINUTE = 1_700_000_000_000, 60_000
PARTITIONS = 6


def coordinator(number: int) -> Coordinator:
    """A partition of a few groups that commit, come, leave and lose their offsets."""
    chance = Random(number)
    made = Coordinator(number, "current", 5 * MINUTE, START)
    for _ in range(40):
        made.now += chance.randint(1, 2 * MINUTE)
        name = f"g{number}-{chance.randrange(5)}"
        match chance.choice(("commit", "commit", "join", "leave", "sweep", "pending", "end")):
            case "commit":
                made.commit((name, chance.choice("ab"), 0))
            case "join":
                made.join(name, "consumer", "m", chance.sample("ab", 1))
            case "leave" if name in made.groups and made.groups[name].members:
                made.leave(name, "m")
            case "sweep":
                made.sweep()
            case "pending":
                made.commit((name, "a", 0), producer=1)
            case "end":
                made.end_transaction(1, commit=chance.random() < 0.5)
    return made


@pytest.fixture(scope="module")
def known_and_records() -> tuple[Known, GroupRecords]:
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for number in range(PARTITIONS):
        for name, records in coordinator(number).rows.items():
            rows[name] += [{**record, "partition": number} for record in records]
    log = log_of(rows, "4.3", "current")
    cluster = Cluster(state_of("topics", ()), NO_LOG)
    rules = replay_rules("4.3")
    groups = state_of("groups", ())
    return Known(committed_in(log), groups, cluster, STARTS.to_frame(), rules), log.records


def answered(
    known: Known, records: Iterable[GroupRecords], most: int | None = None
) -> dict[str, pl.DataFrame]:
    asked = ExpirationQuestion(
        era=expiration_eras()["current"],
        before=None,
        retention=Retention(Setting(5 * MINUTE, OPTION, MINUTE)),
        minutes=[1, 4, 60],
        audit=audit_rules(),
        as_of_ms=START + 90 * MINUTE,
        cut_partitions=frozenset({3}),
    )
    return expiration_tables(asked, known, records, most)


def of_partition(records: GroupRecords, number: int) -> GroupRecords:
    home = pl.col("coordinator_partition") == number
    decoded = {
        name: rows.filter(pl.col("partition") == number) for name, rows in records.decoded.items()
    }
    return GroupRecords(records.commits.filter(home), records.markers.filter(home), decoded)


@pytest.mark.parametrize("at_once", [50, 1_000_000])
def test_tables_are_the_same_in_lots_and_slices(
    known_and_records: tuple[Known, GroupRecords], monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    known, records = known_and_records
    whole = answered(known, [records])
    least = {name: 1 if name == NOTES else 10 for name in whole}
    assert {name: rows.height >= least[name] for name, rows in whole.items()} == dict.fromkeys(
        whole, True
    )
    monkeypatch.setattr(tables, "AT_ONCE", at_once)
    lots = [of_partition(records, number) for number in range(PARTITIONS)]
    for found in (answered(known, [records]), answered(known, lots)):
        for name, rows in whole.items():
            assert_frame_equal(found[name], rows)


@pytest.mark.parametrize("most", [1, 7, 1_000])
def test_the_worst_offsets_are_those_of_all_and_the_others_are_counted(
    known_and_records: tuple[Known, GroupRecords], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    known, records = known_and_records
    whole = answered(known, [records])
    monkeypatch.setattr(tables, "AT_ONCE", 50)
    short = answered(
        known, [of_partition(records, number) for number in range(PARTITIONS)], most=most
    )
    every = whole["offset_expiration"].rows(named=True)
    key = ("group_id", "topic", "partition")

    def place(row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in key)

    worst = sorted(every, key=lambda row: (OFFSET_STATUSES.index(row["status"]), *place(row)))
    assert short["offset_expiration"].rows(named=True) == sorted(worst[:most], key=place)
    fares = Counter((row["group_id"], row["rule"], row["status"]) for row in every)
    assert {row[:3]: row[3] for row in short[FATES].iter_rows()} == fares
    noted = Counter(row["note"] for row in every if row["note"] is not None)
    assert short[NOTES].select("note", "offsets").rows() == list(noted.items())
    for name in ("offset_removals", "retention_what_if"):
        assert_frame_equal(short[name], whole[name])
