"""Findings: one for each object, with an id that stays, words, a safe command, and its records."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from analytics.questions.findings.configured_rules import Suppression, suppressed
from analytics.questions.findings.found import findings, with_changes
from schemas.finding_rules import FindingRule, rule_of
from schemas.model import SchemaError

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ASKED_OF = {"input": "/dumps/broker-1", "dump": "/dumps/broker-1"}
DOCUMENT: dict[str, Any] = {
    "subject": "lag",
    "severity": "warning",
    "question": "Who is behind?",
    "why": "It reads too slowly.",
    "table": "lag",
    "where": [{"column": "lag", "at_least": "records"}],
    "per": ["group_id"],
    "object_type": "group",
    "values": {
        "partitions": {"take": "count"},
        "lag": {"take": "sum", "column": "lag"},
        "topics": {"take": "names", "column": "topic"},
    },
    "thresholds": {"records": {"value": 10, "unit": "records", "about": "So many."}},
    "since": {"take": "min", "column": "at"},
    "message": "{group_id} is {lag:record} behind on {partitions:partition} ({topics})",
    "suggestion": "describe --group {group_id}",
    "record": {"topic": "__consumer_offsets", "partition": "home", "offset": "offset"},
}
LAG = pa.schema(
    [
        *((name, pa.string()) for name in ("group_id", "topic")),
        *((name, pa.int64()) for name in ("lag", "home", "offset")),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


def rule(**more: Any) -> FindingRule:
    return rule_of("behind", DOCUMENT | more)


def row(
    group: str = "billing", lag: int | None = 10, topic: str = "orders", minute: int = 0
) -> Any:
    at = NOON + timedelta(minutes=minute)
    return {"group_id": group, "topic": topic, "lag": lag, "home": 7, "offset": minute, "at": at}


def found(*rows: Any, of: FindingRule | None = None) -> list[dict[str, Any]]:
    table = pa.Table.from_pylist(list(rows), LAG)
    told: list[dict[str, Any]] = findings(
        [of or rule()], {"lag": table}, NOON, {}, ASKED_OF
    ).to_pylist()
    return told


def test_an_object_has_one_finding_however_many_rows_show_it() -> None:
    (one,) = found(
        row(minute=3), row(topic="bills", minute=1), row(lag=9, topic="c"), row(lag=None)
    )
    assert one["message"] == "billing is 20 records behind on 2 partitions (orders, bills)"
    assert one["since"] == NOON + timedelta(minutes=1)
    assert (one["group_id"], one["topic"], one["severity"]) == ("billing", None, "warning")


def test_its_records_can_be_looked_up() -> None:
    (one,) = found(*(row(minute=number) for number in range(5)))
    places = [(each["topic"], each["partition"], each["offset"]) for each in one["evidence"]]
    assert places == [("__consumer_offsets", 7, number) for number in range(3)]


def test_its_id_is_the_same_in_every_run_and_another_ones_of_another_object() -> None:
    first, second = (found(row(lag=lag))[0]["finding_id"] for lag in (10, 99))
    assert first == second
    assert found(row("shipping"))[0]["finding_id"] != first


def test_no_name_can_do_more_in_a_command_than_be_an_argument() -> None:
    (one,) = found(row("x; rm -rf ~ $(id) '"))
    assert one["suggestion"] == "describe --group 'x; rm -rf ~ $(id) '\"'\"''"
    (one,) = found(row("{lag} {0.__class__}"))
    assert one["message"].startswith("{lag} {0.__class__} is 10 records")


def test_a_team_sets_severity_and_thresholds() -> None:
    own = rule().configured({"severity": "critical", "records": 11})
    assert found(row(), of=own) == []
    assert found(row(lag=11), of=own)[0]["severity"] == "critical"
    assert found(row(), of=rule().configured({"enabled": False})) == []


@pytest.mark.parametrize(
    "said", [{"record": 3}, {"severity": "dire"}, {"records": "many"}, {"records": True}]
)
def test_what_is_no_threshold_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match="behind"):
        rule().configured(said)


@pytest.mark.parametrize(
    "wrong",
    [
        {"severity": "dire"},
        {"where": [{"column": "lag"}]},
        {"where": [{"column": "lag", "roughly": 3}]},
        {"values": {"lag": {"take": "median", "column": "lag"}}},
        {"colour": "red"},
    ],
)
def test_a_file_that_is_no_rule_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match="behind"):
        rule(**wrong)


def test_what_is_accepted_is_counted_until_it_ends() -> None:
    table = findings(
        [rule()],
        {"lag": pa.Table.from_pylist([row("a-1"), row("a-2"), row("b")], LAG)},
        NOON,
        {},
        ASKED_OF,
    )
    mine = Suppression("beh*", "known", "me", NOON + timedelta(hours=1), group_id="a-*")
    left, counted = suppressed(table, [mine], NOON)
    assert left["group_id"].to_pylist() == ["b"]
    assert counted["suppressed"].to_pylist() == [2]
    left, counted = suppressed(table, [mine], NOON + timedelta(hours=1))
    assert (left.num_rows, counted["suppressed"].to_pylist()) == (3, [0])


def test_findings_of_two_audits_are_new_still_there_or_gone() -> None:
    def table(*groups: str) -> pa.Table:
        rows = pa.Table.from_pylist([row(each) for each in groups], LAG)
        return findings([rule()], {"lag": rows}, NOON, {}, ASKED_OF)

    told = with_changes(table("a", "b"), table("b", "c"))
    pairs = zip(told["group_id"].to_pylist(), told["change"].to_pylist(), strict=True)
    assert list(pairs) == [("a", "new"), ("b", "still_there"), ("c", "gone")]
