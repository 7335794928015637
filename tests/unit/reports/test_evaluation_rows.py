"""Tables about balance and rebalances as people and programs get them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from reports.answers.balance import balance_section
from reports.answers.expiration_rows import offset_section, with_owners
from reports.answers.rebalances import section, with_causes
from reports.layout.section import heads_of
from reports.row_formats import render
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
    "array<struct<member_id:string,client_id:string,client_host:string>>": pa.list_(
        pa.struct(dict.fromkeys(("member_id", "client_id", "client_host"), pa.string()))
    ),
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
    shown = heads_of("assignment_balance")
    assert [*shown][:5] == [*[*shown][:3], "from_timestamp", "to_timestamp"]
    assert list(only.heads) == [*[*shown][:3], *[*shown][5:]]
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
    owner |= {"client_id": "c", "lag": None}
    born_again = rows_of("offset_expiration", **place, log_end_offset=3, skipped_if_latest=0)
    described = pa.Table.from_pylist([owner | {"lag": -243}])
    only = offset_section(with_owners(born_again, described), for_people=True)
    assert only.rows.select(["lag", "consumer_id"]).to_pylist() == [
        {"lag": -243, "consumer_id": "m"}
    ]
    unknown = rows_of("offset_expiration", **place)
    assert offset_section(
        with_owners(unknown, pa.Table.from_pylist([owner])), for_people=True
    ).rows["lag"].to_pylist() == [None]


def epoch(**row: Any) -> pa.Table:
    whole = {"group_id": "g", "epoch": 3, "missing_is_compacted": False, "left": [], **row}
    return rows_of("rebalances", **whole)


def told(rows: pa.Table) -> dict[str, Any]:
    found: list[dict[str, Any]] = section(rows, "rebalances").rows.to_pylist()
    (row,) = found
    return row


def test_what_compaction_took_is_said_and_no_number() -> None:
    assert told(epoch(missing_is_compacted=True))["missing_before"] == "compacted"
    row = told(epoch(missing_before=2, since_previous_ms=1500))
    assert (row["missing_before"], row["since_previous_ms"]) == ("2", "1.500 s")


def test_who_came_and_went_is_one_sentence_and_long_lists_are_cut_short() -> None:
    row = told(epoch(joined=["a", "b", "c", "d"], left=["e"]))
    assert row["changes"] == "joined: a, b and 2 more; left or timed out: e"
    assert told(epoch())["changes"] is None


def test_where_records_are_lost_counts_are_bounds() -> None:
    row = told(epoch(joined=["a"], complete=False, missing="offsets 5 to 7 are lost"))
    assert row["changes"] == "joined: a; there may have been more: offsets 5 to 7 are lost"
    churn = rows_of("group_churn", group_id="g", epochs=3, joined=2, incomplete_because="some")
    (only,) = section(churn, "group_churn").rows.to_pylist()
    assert (only["epochs"], only["joined"]) == (">= 3", ">= 2")


def test_epochs_fit_into_120_columns() -> None:
    only = section(epoch(joined=["m" * 60] * 9, at=NOON), "rebalances")
    lines = render([only], "text", {}).splitlines()
    assert max(map(len, lines)) <= 120
    assert any(line.startswith("g ") and "12:00:00.000Z" in line for line in lines)


def test_what_led_to_an_epoch_stands_in_its_line_and_doubts_are_marked() -> None:
    rows = epoch(from_offset=7, coordinator_partition=3)
    place = {name: rows[name][0].as_py() for name in ("coordinator_partition", "group_id")}
    place |= {name: rows[name][0].as_py() for name in ("from_offset", "epoch")}
    causes = pa.Table.from_pylist(
        [
            {**place, "cause": "leader_lost", "is_told": True},
            {**place, "cause": "topic_grew", "is_told": False},
            # Who came and went stands in another column.
            {**place, "cause": "members_changed", "is_told": True},
            {**place, "from_offset": 8, "cause": "protocol_switch", "is_told": True},
        ]
    )
    only = section(with_causes(rows, causes), "rebalances")
    assert only.rows["causes"].to_pylist() == ["leader_lost, topic_grew?"]


def test_nothing_to_show_is_a_table_without_rows() -> None:
    nothing = section(epoch().slice(0, 0), "rebalances")
    assert nothing.rows.num_rows == 0
    assert render([nothing], "csv", {}).startswith("group_id,")


def test_what_somebody_may_want_to_act_on_is_a_problem() -> None:
    for verdict, is_problem in {"doubled": True, "cannot_tell": True, "even": False}.items():
        balance = rows_of("assignment_balance", group_id="g", verdict=verdict)
        only = balance_section(balance, for_people=True, with_times=False)
        assert only.rows["is_problem"].to_pylist() == [is_problem]
        assert only.rows["verdict"].to_pylist() == [verdict.replace("_", " ")]


def test_who_has_most_and_fewest_is_named() -> None:
    balance = rows_of(
        "assignment_balance",
        group_id="g",
        member_with_most="k",
        max_partitions=9,
        member_with_fewest="l",
        min_partitions=2,
        cause="4 to 7 each",
    )
    only = balance_section(balance, for_people=True, with_times=False)
    assert only.rows["cause"].to_pylist() == ["k has 9, l 2; 4 to 7 each"]
    exact = balance_section(balance, for_people=False, with_times=False)
    assert exact.rows["cause"].to_pylist() == ["4 to 7 each"]


@pytest.mark.parametrize("with_times", [False, True])
def test_balance_is_a_table_of_120_columns(*, with_times: bool) -> None:
    balance = rows_of(
        "assignment_balance",
        group_id="g" * 90,
        group_type="classic",
        verdict="avoidable",
        protocol="cooperative-sticky",
        cause="c" * 300,
        counted_by="metadata_log",
        partition_count=1000,
        from_timestamp=NOON,
        to_timestamp=NOON,
        epoch=1234,
        score=12.345,
        mean_partitions=12.345,
        stddev_partitions=1.23,
    )
    only = balance_section(balance, for_people=True, with_times=with_times)
    lines = render([only], "text", {}).split("left out to fit")[0].splitlines()
    assert max(map(len, lines)) <= 120
    assert lines[0].split()[:2] == ["GROUP", "EPOCH"]
