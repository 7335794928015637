"""The records that findings rest on: of the rule's own table, else joined from those that know."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from analytics.contracts import polars_rows
from analytics.questions.findings.evidence import HeldRecords, KnownRecords, Records, columns_read
from analytics.questions.findings.found import findings
from schemas import table, tables
from schemas.finding_rules import (
    LOCATION,
    FindingRule,
    RecordSource,
    finding_rules,
    record_sources,
    rule_of,
)
from schemas.model import SchemaError
from schemas.reading import read_as
from tests.support.written_workspace import schema_of

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
PLACE = {"group_id": "billing", "topic": "orders"}
OFFSETS = "__consumer_offsets"


def rule(**more: Any) -> FindingRule:
    document = {
        "subject": "lag",
        "severity": "warning",
        "question": "Who is behind?",
        "why": "It reads too slowly.",
        "table": "lag",
        "where": [],
        "per": ["group_id"],
        "object_type": "group",
        "message": "{group_id} is behind",
        "suggestion": "describe",
        "since": {"take": "min", "column": "record_at"},
        "record": {"of": ["commit", "assignment"]},
    }
    return rule_of("behind", document | more)


def minute(number: int) -> datetime:
    return NOON + timedelta(minutes=number)


def known(**rows: list[dict[str, Any]]) -> KnownRecords:
    held = {name: pa.Table.from_pylist(each, schema_of(name)) for name, each in rows.items()}

    def read(name: str, columns: Sequence[str], where: pc.Expression) -> pa.Table:
        return held[name].filter(where).select(list(columns))

    return KnownRecords(frozenset(held), read)


def held(**rows: list[dict[str, Any]]) -> HeldRecords:
    tables = {name: pa.Table.from_pylist(each, schema_of(name)) for name, each in rows.items()}
    return HeldRecords({name: polars_rows(each) for name, each in tables.items()})


def commit(partition: int, offset: int, at: int) -> dict[str, Any]:
    place = {**PLACE, "partition": partition, "coordinator_partition": 7, "record_offset": offset}
    return {**place, "commit_timestamp": minute(at)}


def located(record: dict[str, Any], copy: str = "broker-1") -> dict[str, Any]:
    return {**record, "copy": copy, "segment": "0.log", "batch_position": 61}


def found(records: Records | None, *partitions: int, of: FindingRule | None = None) -> Any:
    rows = [{**PLACE, "partition": each} for each in partitions]
    asked = {"lag": pa.Table.from_pylist(rows, schema_of("lag"))}
    (one,) = findings([of or rule()], asked, NOON, {}, {}, records).to_pylist()
    return one


def record(offset: int | None, **more: Any) -> dict[str, Any]:
    base = {"copy": None, "topic": OFFSETS, "partition": 7, "offset": offset}
    return {**base, "segment": None, "batch_position": None, **more}


def test_the_commit_that_counts_is_the_evidence_and_its_time_the_beginning() -> None:
    commits = [commit(0, 5, at=3), commit(1, 4, at=2), commit(2, 9, at=1)]
    records = known(
        committed_offsets=commits,
        offset_history=[located({**commits[0], "effective_timestamp": minute(3)})],
    )
    one = found(records, 0, 1)
    where = {"copy": "broker-1", "segment": "0.log", "batch_position": 61}
    assert one["evidence"] == [record(5, **where), record(4)]
    assert one["since"] == minute(2), "the earliest of all rows of the finding, and of no other"


def test_tables_that_are_held_tell_every_rule_what_those_that_are_read_tell_it() -> None:
    other = {"group_id": "another group"}
    commits = [commit(0, 5, at=3), commit(1, 4, at=2), {**commit(0, 6, at=1), **other}]
    taken = {**PLACE, "partition": 3, "coordinator_partition": 7}
    rows = {
        "committed_offsets": commits,
        "offset_history": [
            located({**commits[0], "effective_timestamp": minute(3)}),
            located({**commits[2], "effective_timestamp": minute(1)}, "broker-2"),
        ],
        "assignment_history": [
            {**taken, "from_offset": 8, "from_timestamp": minute(1)},
            {**taken, "from_offset": 12, "from_timestamp": minute(4)},
        ],
        "group_events": [
            located({**taken, "record_offset": 12, "log": "__share_group_state"}, "another log"),
            located({**taken, "record_offset": 12, "log": OFFSETS}),
        ],
    }
    here = held(**rows)
    for partitions in ([0, 1], [3], [1], [9], [0, 3, 9]):
        assert found(here, *partitions) == found(known(**rows), *partitions)


def test_since_is_of_all_rows_also_of_those_beyond_the_records_that_are_named() -> None:
    records = known(committed_offsets=[commit(each, each, at=10 - each) for each in range(6)])
    one = found(records, *range(6))
    assert [each["offset"] for each in one["evidence"]] == [0, 1, 2]
    assert one["since"] == minute(5)


def test_where_nothing_was_committed_the_assignment_is_the_evidence() -> None:
    taken = {**PLACE, "partition": 3, "coordinator_partition": 7}
    events = {**PLACE, "coordinator_partition": 7, "record_offset": 12}
    records = known(
        committed_offsets=[commit(0, 5, at=3)],
        assignment_history=[
            {**taken, "from_offset": 8, "from_timestamp": minute(1)},
            {**taken, "from_offset": 12, "from_timestamp": minute(4)},
        ],
        group_events=[
            located({**events, "log": "__share_group_state"}, "another log"),
            located({**events, "log": OFFSETS}),
        ],
    )
    one = found(records, 3)
    where = {"copy": "broker-1", "segment": "0.log", "batch_position": 61}
    assert (one["evidence"], one["since"]) == ([record(12, **where)], minute(4))


def test_what_the_table_has_itself_counts_before_what_is_joined() -> None:
    own = {"topic": OFFSETS, "partition": "partition", "offset": "committed_offset"}
    asked = rule(record={**own, "of": "commit"})
    rows = [{**PLACE, "partition": 7, "committed_offset": 3}]
    tables_of = {"lag": pa.Table.from_pylist(rows, schema_of("lag"))}
    records = known(committed_offsets=[commit(7, 5, at=3)])
    (one,) = findings([asked], tables_of, NOON, {}, {}, records).to_pylist()
    assert one["evidence"] == [record(3)]
    assert one["since"] is None, "the commit at 5 is another record"


@pytest.mark.parametrize("records", [None, known(), known(committed_offsets=[commit(9, 5, at=3)])])
def test_a_record_that_is_not_known_is_none(records: KnownRecords | None) -> None:
    one = found(records, 0)
    assert (one["evidence"], one["since"]) == ([], None)


def test_every_rule_has_a_record_and_a_beginning_or_says_why_not() -> None:
    for each in finding_rules():
        assert bool(each.record or each.record_of) is not bool(each.no_record), each.name
        assert (each.since is None) is bool(each.no_since), each.name
        if each.table in tables():
            columns = {column.name for column in table(each.table).columns}
            assert each.columns() <= columns, each.name


def test_sources_read_columns_that_their_tables_have() -> None:
    for each in record_sources().values():
        assert set(columns_read(each)) <= {column.name for column in table(each.table).columns}
        if each.located_by is not None:
            columns = {column.name for column in table(each.located_by).columns}
            assert {"coordinator_partition", "record_offset", *LOCATION} <= columns


@pytest.mark.parametrize(
    "broken",
    [
        {"since": {}},
        {"since": {"take": "min"}},
        {"record": {}},
        {"record": {"of": "nothing"}},
        {"record": {"of": "commit", "none": "and yet"}},
    ],
)
def test_a_rule_without_evidence_says_why(broken: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        rule(**broken)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            {"about": "", "table": "t", "on": {}, "log": "l", "take": "some"},
            "commit.take: .*'some'",
        ),
        ({"about": "", "table": "t"}, "commit: .*missing"),
    ],
)
def test_a_source_that_is_none_is_refused(source: dict[str, Any], reason: str) -> None:
    with pytest.raises(SchemaError, match=rf"^records\.json: {reason}"):
        read_as(dict[str, RecordSource], {"commit": source}, "records.json")
