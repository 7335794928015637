"""Each group of an audit in one row, by a case worked out by hand."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from analytics.questions.findings.audited_groups import audited_groups, group_counts
from analytics.questions.findings.findings_in_parts import counts_of
from analytics.questions.findings.findings_of import applied_rules
from schemas import table
from schemas.finding_rules import finding_rules
from schemas.gaps import Template
from tests.support.page_tables import finding, rows_of

EARLY, LATE = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
GROUPS = [
    {"group_id": "quiet", "group_type": "simple", "state": "Empty", "member_count": 0}
    | {"complete": False, "missing": "records were lost"},
    {"group_id": "busy", "group_type": "classic", "state": "Stable", "member_count": 2}
    | {"complete": True},
    {"group_id": "shared", "group_type": "share", "state": "Stable", "member_count": 1}
    | {"complete": True},
]
LAG = [
    {
        "group_id": "busy",
        "topic": "a",
        "partition": 0,
        "kind": "owned",
        "commits": 4,
        "lag": 10,
        "time_lag_ms": 7,
        "status": "OK",
        "verdict": "behind",
        "complete": True,
        "last_commit_at": EARLY,
    },
    {
        "group_id": "busy",
        "topic": "a",
        "partition": 1,
        "kind": "owned",
        "commits": 9,
        "lag": None,
        "time_lag_ms": 9,
        "status": "NOT_EVALUABLE",
        "verdict": "cannot_tell",
        "reason": "where the log starts is not known",
        "complete": True,
        "last_commit_at": LATE,
    },
    {
        # What nobody waits for counts in no sum.
        "group_id": "busy",
        "topic": "b",
        "partition": 0,
        "kind": "stale",
        "commits": 1,
        "lag": 500,
        "status": "STOP",
        "verdict": "stale",
    },
    {
        # Behind the end is nobody's gain.
        "group_id": "quiet",
        "topic": "a",
        "partition": 0,
        "kind": "unassigned",
        "commits": 1,
        "lag": -3,
        "status": "OK",
        "verdict": "beyond_end",
    },
]
BACKLOG = [
    {"group_id": "shared", "topic": "jobs", "partition": n, "lag": 6, "status": status}
    | {"complete": True}
    for n, status in enumerate(("behind", "blocked"))
]
FINDINGS = [
    finding("busy"),
    finding("quiet", "offsets_beyond_end", severity="critical"),
    finding("gone", "group_deleted", severity="info"),
    finding(None, "partitions_absent"),
]


def audited(lag: list[dict[str, object]] | None = None) -> pa.Table:
    return audited_groups(
        {
            "groups": rows_of("groups", GROUPS),
            "lag": rows_of("lag", lag or LAG),
            "share_backlog": rows_of("share_backlog", BACKLOG),
            "findings": rows_of("findings", FINDINGS),
            "group_churn": rows_of("group_churn", [{"group_id": "busy", "per_hour": 2.5}]),
        }
    )


def test_a_row_a_group_those_with_the_worst_findings_first() -> None:
    rows = audited().to_pylist()
    assert [row["group_id"] for row in rows] == ["quiet", "busy", "gone", "shared"]
    assert [(row["critical"], row["warning"], row["info"]) for row in rows] == [
        (1, 0, 0),
        (0, 1, 0),
        (0, 0, 1),
        (0, 0, 0),
    ]


def test_what_its_partitions_come_to() -> None:
    quiet, busy, gone, shared = audited().to_pylist()
    assert {name: busy[name] for name in ("topics", "partitions", "lag", "lag_not_told")} == {
        "topics": 2,
        "partitions": 3,
        "lag": 10,
        "lag_not_told": 1,
    }
    assert (busy["time_lag_ms"], busy["last_commit_at"]) == (9, LATE)
    assert (busy["busiest_topic"], busy["busiest_partition"]) == ("a", 1)
    assert busy["rebalances_per_hour"] == 2.5
    assert busy["lag_bound"] == "at_least"
    # An offset beyond the end says nothing of what is left to read.
    assert (quiet["lag"], quiet["lag_bound"], quiet["lag_not_told"]) == (None, None, 1)
    assert quiet["verdict"] == "beyond_end"
    assert (shared["lag"], shared["verdict"], shared["status"]) == (12, "blocked", None)
    assert (gone["group_type"], gone["lag"], gone["lag_not_told"]) == (None, None, 0)


@pytest.mark.parametrize(
    ("bounds", "bound"),
    [
        (("exact", "exact", "exact"), "exact"),
        (("exact", "at_least", "exact"), "at_least"),
        (("unknown", "exact", "exact"), "at_least"),
    ],
)
def test_the_largest_age_is_exact_where_that_of_every_partition_is(
    bounds: tuple[str, ...], bound: str
) -> None:
    lag = [{**row, "time_lag_bound": each} for row, each in zip(LAG, bounds, strict=False)]
    rows = {row["group_id"]: row for row in audited(lag).to_pylist()}
    assert (rows["busy"]["time_lag_ms"], rows["busy"]["time_lag_bound"]) == (9, bound)
    assert rows["quiet"]["time_lag_bound"] is None


def test_what_cannot_be_told_has_its_reason() -> None:
    quiet, busy, gone, shared = audited().to_pylist()
    assert (quiet["complete"], quiet["missing"]) == (False, "records were lost")
    assert (busy["complete"], busy["missing"]) == (False, "where the log starts is not known")
    assert (shared["complete"], shared["missing"]) == (True, None)
    assert (gone["complete"], gone["missing"]) == (None, None)


def test_a_share_partition_that_cannot_be_told_says_what_is_missing() -> None:
    lost = {**BACKLOG[1], "status": "cannot_tell", "complete": False, "missing": "no copy of it"}
    tables = {
        "groups": rows_of("groups", GROUPS),
        "share_backlog": rows_of("share_backlog", [BACKLOG[0], lost]),
        "findings": rows_of("findings", []),
    }
    (shared,) = (row for row in audited_groups(tables).to_pylist() if row["group_id"] == "shared")
    assert (shared["complete"], shared["missing"]) == (False, "no copy of it")


def test_it_has_the_columns_of_its_contract() -> None:
    assert audited().column_names == [each.name for each in table("audited_groups").columns]


def test_groups_that_are_alike_are_counted() -> None:
    counts = {(row["property"], row["value"]): row["groups"] for row in counted()}
    assert counts["severity", "none"] == 1
    assert counts["group_type", "classic"] == counts["group_type", "not known"] == 1
    assert counts["state", "Stable"] == 2
    for name in ("severity", "group_type", "state", "verdict", "status"):
        assert sum(groups for (of, _), groups in counts.items() if of == name) == 4


def counted() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = group_counts(audited()).to_pylist()
    return rows


def test_rules_are_kept_as_they_were_applied() -> None:
    rules = [
        each.configured({"hours": 6}) if each.name == "offsets_expire_soon" else each
        for each in finding_rules()
    ]
    kept = applied_rules(rules, counts_of(rows_of("findings", FINDINGS)), {"lag"}).to_pylist()
    by_name = {row["rule"]: row for row in kept}
    assert by_name["offsets_expire_soon"]["thresholds"] == "hours 6 (hours)"
    assert not by_name["offsets_expire_soon"]["was_applied"]
    assert by_name["lag_growing"]["was_applied"]
    assert by_name["lag_growing"]["findings"] == 1
    assert len(kept) == len(rules)


def test_every_headline_is_written_for_one_and_for_many() -> None:
    for rule in finding_rules():
        counts = [each for each in Template(rule.headline).values if each.name == "count"]
        assert counts, rule.name
        assert all(each.forms is not None for each in counts), rule.name
        one, many = (Template(rule.headline).filled({"count": number}) for number in (1, 2000))
        assert ("1 " in one, "2,000 " in many) == (True, True), rule.name
