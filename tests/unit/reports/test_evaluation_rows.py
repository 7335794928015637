"""Tables about balance and rebalances as people and programs get them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from reports.balance.rows import BALANCE_HEADS, balance_section
from reports.expiration.rows import offset_section
from reports.rebalances.rows import REBALANCE_HEADS, section
from reports.row_formats import shown
from schemas import table

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<string>": pa.list_(pa.string()),
}


def rows_of(name: str, **row: Any) -> pa.Table:
    schema = pa.schema([(each.name, TYPES[each.type]) for each in table(name).columns])
    return pa.Table.from_pylist([row], schema=schema)


def test_a_bound_has_its_sign_and_numbers_are_rounded() -> None:
    balance = rows_of(
        "assignment_balance",
        group_id="g",
        partition_count=6,
        unassigned_partitions=0,
        mean_partitions=10 / 3,
        score=200 / 3,
        counted_by="seen",
    )
    only = balance_section(balance, for_people=True, with_times=False)
    (row,) = only.rows.to_pylist()
    assert (row["partition_count"], row["unassigned_partitions"]) == (">= 6", ">= 0")
    assert (row["mean_partitions"], row["score"]) == ("3.33", "66.67")
    assert list(only.heads) == list(BALANCE_HEADS)
    exact = balance_section(balance, for_people=False, with_times=False).rows.to_pylist()[0]
    assert (exact["partition_count"], exact["score"]) == (6, 200 / 3)


def test_history_shows_from_when_to_when() -> None:
    balance = rows_of("assignment_balance", group_id="g", from_timestamp=NOON)
    only = balance_section(balance, for_people=True, with_times=True)
    assert list(only.heads)[3:5] == ["from_timestamp", "to_timestamp"]
    assert only.rows["from_timestamp"].to_pylist() == ["2026-11-21T12:00:00.000Z"]


def test_the_lag_of_an_offset_is_that_of_describe_below_zero_too() -> None:
    place = {"group_id": "g", "topic": "t", "partition": 0, "committed_offset": 246}
    owner = {"group": "g", "topic": "t", "partition": 0, "consumer_id": "m", "host": "h"}
    born_again = rows_of("offset_expiration", **place, log_end_offset=3, skipped_if_latest=0)
    described = pa.Table.from_pylist([owner | {"lag": -243}])
    only = offset_section(born_again, described, for_people=True)
    assert only.rows.select(["lag", "consumer_id"]).to_pylist() == [
        {"lag": -243, "consumer_id": "m"}
    ]
    unknown = rows_of("offset_expiration", **place)
    assert offset_section(unknown, pa.Table.from_pylist([owner]), for_people=True).rows[
        "lag"
    ].to_pylist() == [None]


def epoch(**row: Any) -> pa.Table:
    whole = {"group_id": "g", "epoch": 3, "missing_is_compacted": False, "left": [], **row}
    return rows_of("rebalances", **whole)


def test_what_compaction_took_is_said_and_no_number() -> None:
    told = section(epoch(missing_is_compacted=True), REBALANCE_HEADS, for_people=True)
    assert told.rows["missing_before"].to_pylist() == ["compacted"]
    told = section(
        epoch(missing_before=2, since_previous_ms=1500), REBALANCE_HEADS, for_people=True
    )
    assert told.rows["missing_before"].to_pylist() == ["2"]
    assert told.rows["since_previous_ms"].to_pylist() == ["1.500 s"]


def test_long_lists_of_members_are_cut_short_for_people_only() -> None:
    rows = epoch(joined=["a", "b", "c", "d"])
    assert section(rows, REBALANCE_HEADS, for_people=True).rows["joined"].to_pylist() == [
        "a, b and 2 more"
    ]
    assert section(rows, REBALANCE_HEADS, for_people=False).rows["joined"].to_pylist() == [
        ["a", "b", "c", "d"]
    ]


def test_csv_has_lists_as_texts() -> None:
    only = section(
        epoch(joined=["a", "b"], at=NOON), {"joined": "JOINED", "at": "AT"}, for_people=False
    )
    assert shown([only], "csv", {}).splitlines()[1].startswith('"a,b",2026-11-21T12:00:00.000Z')


def test_nothing_to_show_is_a_table_without_rows() -> None:
    nothing = epoch().slice(0, 0)
    assert section(nothing, REBALANCE_HEADS, for_people=True).rows.num_rows == 0
    assert shown([section(nothing, REBALANCE_HEADS, for_people=False)], "csv", {}).startswith(
        "group_id,"
    )
