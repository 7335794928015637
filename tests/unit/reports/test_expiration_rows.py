"""Tables about expiry as people get them: what is lost first, in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from random import Random

import pyarrow as pa

from analytics.tables.parted_table import PartedTable
from reports.answers.expiration import OwnedOffsets
from reports.answers.expiration_rows import (
    group_section,
    offset_section,
    what_if_section,
    with_owners,
)
from reports.row_formats import render
from schemas import table

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def rows_of(name: str, rows: list[dict[str, object]]) -> pa.Table:
    schema = pa.schema([(each.name, TYPES[each.type]) for each in table(name).columns])
    return pa.Table.from_pylist(rows, schema=schema)


def what_if(group: str, verdict: str, **row: object) -> dict[str, object]:
    whole = {"retention_minutes": 1440, "group_id": group, "offsets": 1, "lost_now": 0}
    period = {"observed_from": NOON, "observed_to": NOON + timedelta(minutes=10)}
    return {**whole, "lost_once": 0, "verdict": verdict, **period, **row}


def test_a_what_if_names_the_period_it_speaks_for_and_begins_with_what_is_lost() -> None:
    rows = rows_of(
        "retention_what_if",
        [
            what_if("a", "safe"),
            what_if("b", "not_lost_in_period", reason="nothing keeps its offsets"),
            what_if("c", "would_lose_now", lost_now=1),
        ],
    )
    section = what_if_section(rows)
    assert section.rows["verdict"].to_pylist() == [
        "would lose now",
        "not lost in the 10 min observed",
        "safe",
    ]
    assert section.rows["is_problem"].to_pylist() == [True, False, False]
    assert "not lost in the 10 min observed" in render([section], "text", {})


def offset(group: str, status: str, note: str | None = None) -> dict[str, object]:
    place = {"topic": "t", "partition": 0, "committed_offset": 1, "rule": "empty_group"}
    return {"group_id": group, **place, "status": status, "note": note}


def fates_of(rows: list[dict[str, object]]) -> pa.Table:
    """Of offsets that each fare in another way."""
    fate = rows_of("offset_expiration", rows).select(["group_id", "rule", "status", "expires_at"])
    return fate.append_column("offsets", pa.array([1] * len(rows)))


def test_what_is_due_comes_first_and_a_doubt_stands_in_its_line() -> None:
    offsets = [
        offset("a", "protected"),
        offset("b", "cannot_tell", "a record is lost"),
        offset("c", "overdue"),
    ]
    rows = rows_of("offset_expiration", offsets)
    nobody = pa.Table.from_pylist([], pa.schema([]))
    section = offset_section(with_owners(rows, nobody), for_people=True, has_notes=True)
    assert section.rows["group_id"].to_pylist() == ["c", "b", "a"]
    assert "cannot tell: a record is lost" in render([section], "text", {})
    groups = group_section(fates_of(offsets), for_people=True)
    assert groups.rows["group_id"].to_pylist() == ["c", "b", "a"]
    sure = offset_section(with_owners(rows.slice(0, 1), nobody), for_people=True)
    assert "note" not in sure.heads


def test_programs_get_the_words_of_the_contract() -> None:
    rows = rows_of("offset_expiration", [offset("a", "protected"), offset("c", "overdue")])
    section = offset_section(
        with_owners(rows, pa.Table.from_pylist([], pa.schema([]))), for_people=False
    )
    assert section.rows["group_id"].to_pylist() == ["a", "c"]
    assert "is_problem" not in section.names


def test_groups_that_a_tool_named_are_told_apart_and_stand_last() -> None:
    tool = "console-consumer-41234"
    offsets = fates_of([offset(tool, "due"), offset("orders", "due")])
    section = group_section(offsets, for_people=True)
    assert section.rows["group_id"].to_pylist() == ["orders", tool]
    assert section.rows["named_by"].to_pylist() == [None, "kafka-console-consumer"]
    assert "NAMED-BY" in render([section], "text", {})
    tried = what_if_section(
        rows_of(
            "retention_what_if",
            [what_if(tool, "would_lose_now"), what_if("orders", "would_lose_now")],
        )
    )
    assert tried.rows["group_id"].to_pylist() == ["orders", tool]
    # Where no tool named any, nothing is said of it.
    alone = group_section(fates_of([offset("o", "due")]), for_people=True)
    assert "NAMED-BY" not in render([alone], "text", {})


def test_offsets_have_the_owners_they_have_in_whatever_pieces_both_are_read() -> None:
    chance = Random(7)
    groups = [f"g{number:02}" for number in range(12)]
    offsets = [{**offset(name, "due"), "partition": n} for name in groups for n in range(3)]
    expiration = rows_of("offset_expiration", chance.sample(offsets, 20)).sort_by(
        [("group_id", "ascending"), ("partition", "ascending")]
    )
    described = pa.Table.from_pylist(
        [
            {
                "group": name,
                "topic": "t",
                "partition": n,
                "lag": n,
                "consumer_id": f"{name}-{n}",
            }
            for name in ["a", *chance.sample(groups, 8), "z"]
            for n in (0, 2)
        ]
    ).sort_by([("group", "ascending"), ("partition", "ascending")])
    for name in ("host", "client_id"):
        described = described.append_column(name, pa.nulls(described.num_rows, pa.string()))
    whole = with_owners(expiration, described)
    owned = [row for row in whole.to_pylist() if row["consumer_id"] is not None]
    assert len(owned) in range(5, 20)
    for row in owned:
        assert row["consumer_id"] == f"{row['group_id']}-{row['partition']}"

    for sizes in product((1, 2, 5, 100), repeat=2):
        rows, owners = (
            replace(PartedTable.held(each), at_once=size)
            for each, size in zip((expiration, described), sizes, strict=True)
        )
        both = OwnedOffsets(rows, owners)
        assert both.whole() == whole
        assert both.num_rows == whole.num_rows
        assert both.first(7) == whole.slice(0, 7)
        assert both.first(0).schema == whole.schema
        lags = pa.concat_tables(both.pieces(["lag"]))
        assert lags == whole.select(["lag"])
