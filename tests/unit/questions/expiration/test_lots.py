"""The tables are the same whatever groups are looked at together."""

from __future__ import annotations

from collections import Counter, defaultdict
from copy import copy
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from analytics.contracts import polars_rows
from analytics.engine.part_runs import GroupPart, PartRunner
from analytics.questions.expiration.offset_log import GroupRecords, instants_of
from analytics.questions.expiration.offset_removals import Cluster
from analytics.questions.expiration.retention_settings import OPTION, Retention, Setting
from analytics.questions.expiration.tables import (
    ENDINGS,
    FATES,
    NOTES,
    ExpirationQuestion,
    GroupLot,
    ReplayedFacts,
    expiration_tables,
)
from analytics.replay.history.partition_history import STARTS
from analytics.replay.log.rules import replay_rules
from analytics.replay.topics import METADATA_LOG
from schemas.expiration_rules import OFFSET_STATUSES, audit_rules, expiration_eras
from tests.support.expiration_logs import NO_LOG, committed_in, log_of, state_of
from tests.support.reference_expiration import Coordinator

if TYPE_CHECKING:
    from collections.abc import Iterable

START, MINUTE = 1_700_000_000_000, 60_000
AS_OF = START + 90 * MINUTE
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
def known_and_lot() -> tuple[ReplayedFacts, GroupLot]:
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for number in range(PARTITIONS):
        for name, records in coordinator(number).rows.items():
            rows[name] += [{**record, "partition": number} for record in records]
    log = log_of(rows, "4.3", "current")
    deleted = log.removed_offsets.filter(pl.col("topic") == "b")["at"].min()
    topics = [{"topic": "b", "topic_id": "b-1", "source": METADATA_LOG, "deleted_at": deleted}]
    cluster = Cluster(state_of("topics", topics), NO_LOG)
    rules = replay_rules("4.3")
    times = log.records.commits.select("coordinator_partition", pl.col("committed_at").alias("at"))
    instants = instants_of(times.filter(pl.col("coordinator_partition") == 3), AS_OF)
    known = ReplayedFacts(cluster, STARTS.to_frame(), rules, instants)
    groups = [{"group_id": f"g{number}-0", "group_type": "classic"} for number in range(PARTITIONS)]
    pending = state_of("pending_offsets", ())
    return known, GroupLot(log.records, committed_in(log), state_of("groups", groups), pending)


def answered(
    known: ReplayedFacts,
    lots: Iterable[GroupLot],
    most: int | None = None,
    folder: Path | None = None,
) -> dict[str, pl.DataFrame]:
    asked = ExpirationQuestion(
        era=expiration_eras()["current"],
        before=None,
        retention=Retention(Setting(5 * MINUTE, OPTION, MINUTE)),
        minutes=[1, 4, 60],
        audit=audit_rules(),
        as_of_ms=AS_OF,
        cut_partitions=frozenset({3}),
    )
    parts = [GroupPart(partial(copy, each.rows)) for each in lots]
    runner = PartRunner(None if folder is None else str(folder))
    found = expiration_tables(asked, known, parts, runner, most=most)
    tables = {name: polars_rows(each.whole()) for name, each in found.tables.items()}
    return {**tables, NOTES: found.notes}


def of_groups(lot: GroupLot, part: int, parts: int) -> GroupLot:
    """The groups whose name falls into one of some parts, of all partitions."""

    def kept(rows: pl.DataFrame, group: pl.Expr) -> pl.DataFrame:
        return rows.filter(group.hash(7) % parts == part)

    records, group = lot.records, pl.col("group_id")
    decoded = {
        name: kept(rows, pl.col("key").struct.field("group" if "group" in keys else "group_id"))
        for name, rows in records.decoded.items()
        if (keys := [each.name for each in rows.schema["key"].fields])  # type: ignore[attr-defined]
    }
    found = GroupRecords(kept(records.commits, group), records.markers, decoded)
    state = (kept(rows, group) for rows in (lot.committed, lot.groups, lot.pending))
    return GroupLot(found, *state)


@pytest.mark.parametrize("parts", [2, 5, pytest.param(40, marks=pytest.mark.long)])
def test_tables_are_the_same_whatever_groups_are_looked_at_together(
    known_and_lot: tuple[ReplayedFacts, GroupLot], parts: int, tmp_path: Path
) -> None:
    known, every = known_and_lot
    whole = answered(known, [every])
    few = {name: rows.height for name, rows in whole.items() if rows.height < 10}
    assert set(few) <= {NOTES, ENDINGS}
    assert all(few.values())
    assert "topic_deleted" in whole["offset_removals"]["cause"]
    # The last of them has no group at all.
    lots = [of_groups(every, part, parts) for part in range(parts + 1)]
    for found in (answered(known, lots), answered(known, lots, folder=tmp_path)):
        for name, rows in whole.items():
            assert_frame_equal(found[name], rows)


@pytest.mark.parametrize("most", [1, 7, 1_000])
def test_the_worst_offsets_are_those_of_all_and_the_others_are_counted(
    known_and_lot: tuple[ReplayedFacts, GroupLot], most: int
) -> None:
    known, all_groups = known_and_lot
    whole = answered(known, [all_groups])
    short = answered(known, [of_groups(all_groups, part, 5) for part in range(5)], most=most)
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
