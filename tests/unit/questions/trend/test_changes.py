"""What became of findings, groups, lags and retention, held against plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import strategies as st

from analytics.engine.part_runs import PartRunner
from analytics.questions.question import Answer
from analytics.questions.trend import changes
from analytics.questions.trend.question import TrendSettings, trend
from reports.answers.trend import lines_of
from tests.support.examples import examples
from tests.support.held_runs import FIRST_DAY, Audit

Row = Mapping[str, Any]
RULE = "offsets_expired"
LAG_RULE = "lag_growing"
REBALANCE_RULE = "rebalances_frequent"


def rows(found: Answer, name: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = found.rows(name).whole().to_pylist()
    return listed


def both(before: Mapping[str, Any], now: Mapping[str, Any], **given_now: Any) -> Answer:
    """Two runs a day apart."""
    audits = Audit(1, tables=before), Audit(2, tables=now, given=given_now)
    return trend([each.run() for each in audits], TrendSettings())


def finding(name: str, rule: str = RULE, group: str | None = None) -> Row:
    return {
        "finding_id": name,
        "rule": rule,
        "severity": "warning",
        "group_id": group,
        "message": f"found {name}",
    }


def applied(found: int = 0, rule: str = RULE, **changed: Any) -> Row:
    return {
        "rule": rule,
        "severity": "warning",
        "is_on": True,
        "was_applied": True,
        "thresholds": "",
        "findings": found,
        **changed,
    }


def of_findings(*names: str, **changed: Any) -> dict[str, Any]:
    return {
        "findings": [finding(each) for each in names],
        "applied_rules": [applied(len(names), **changed)],
    }


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [
        ("", "a", "new"),
        ("a", "", "gone"),
        ("a", "ab", "worse"),
        ("ab", "a", "better"),
        ("ab", "ab", "as_before"),
        ("ab", "cd", "as_before"),
        ("ab", "bcd", "worse"),
    ],
)
def test_a_rule_is_new_worse_better_or_gone(before: str, now: str, change: str) -> None:
    found = both(of_findings(*before), of_findings(*now))
    row = rows(found, "trend_rules")[-1]
    assert row["change"] == change
    assert (row["new"], row["gone"]) == (len(set(now) - set(before)), len(set(before) - set(now)))
    assert row["still_there"] == len(set(now) & set(before))
    assert row["reason"] is None
    changed = {each["finding_id"]: each["change"] for each in rows(found, "trend_findings")}
    assert changed == {
        **dict.fromkeys(set(now) - set(before), "new"),
        **dict.fromkeys(set(before) - set(now), "gone"),
    }


UNLIKE_RULES = {
    "switched off": ({"is_on": False}, "did not apply"),
    "without its table": ({"was_applied": False}, "did not apply"),
    "other thresholds": ({"thresholds": "minutes 5"}, "other thresholds"),
}


@pytest.mark.parametrize("unlike", UNLIKE_RULES)
@pytest.mark.parametrize("turned", [False, True], ids=["then", "now"])
def test_what_a_rule_found_otherwise_is_neither_new_nor_gone(unlike: str, turned: bool) -> None:
    changed, why = UNLIKE_RULES[unlike]
    names = "" if unlike != "other thresholds" else "b"
    there, otherwise = of_findings("a"), of_findings(*names, **changed)
    found = both(there, otherwise) if turned else both(otherwise, there)
    row = rows(found, "trend_rules")[-1]
    assert row["change"] == "cannot_tell"
    assert why in row["reason"]
    assert {each["change"] for each in rows(found, "trend_findings")} == {"cannot_tell"}


@pytest.mark.parametrize(
    ("rule", "then", "now", "change"),
    [
        (RULE, None, None, "new"),
        (RULE, "a", "a", "new"),
        (RULE, "a", None, "cannot_tell"),
        (RULE, None, "a", "cannot_tell"),
        (RULE, "a", "b", "cannot_tell"),
        (REBALANCE_RULE, "a", "b", "new"),
    ],
)
def test_what_other_settings_of_brokers_make_of_a_dump_is_neither_new_nor_gone(
    rule: str, then: str | None, now: str | None, change: str
) -> None:
    less = {"applied_rules": [applied(rule=rule)]}
    more = {"applied_rules": [applied(1, rule=rule)], "findings": [finding("a", rule)]}
    for tables, expected in (
        ((less, more), change),
        ((more, less), "gone" if change == "new" else change),
    ):
        audits = (
            Audit(day, tables=each, given={"settings": settings})
            for day, each, settings in zip((1, 2), tables, (then, now), strict=True)
        )
        found = trend([each.run() for each in audits], TrendSettings())
        (row,) = rows(found, "trend_findings")
        assert row["change"] == expected
        if expected == "cannot_tell":
            assert row["reason"] == "both runs were given other settings of brokers"


def test_a_suppressed_finding_is_not_gone() -> None:
    accepted = {"entry": 1, "rule": "offsets_*", "suppressed": 1}
    found = both(of_findings("a"), {**of_findings(), "suppressions": [accepted]})
    (row,) = rows(found, "trend_findings")
    assert (row["change"], row["reason"]) == (
        "cannot_tell",
        "this run suppressed findings of the rule",
    )


def audited(group: str = "g", *, complete: bool = True, unknown: int = 0) -> Row:
    return {"group_id": group, "complete": complete, "lag_not_told": unknown, "lag": 0}


@pytest.mark.parametrize(
    ("rule", "then", "change"),
    [
        (RULE, audited(), "new"),
        (RULE, audited(complete=False), "cannot_tell"),
        (RULE, audited(unknown=1), "new"),
        (LAG_RULE, audited(), "new"),
        (LAG_RULE, audited(unknown=1), "cannot_tell"),
    ],
)
def test_a_finding_about_a_group_that_was_not_shown_whole_may_not_be_new(
    rule: str, then: Row, change: str
) -> None:
    before = {"applied_rules": [applied(rule=rule)], "audited_groups": [then]}
    now = {
        "findings": [finding("a", rule, "g")],
        "applied_rules": [applied(1, rule=rule)],
        "audited_groups": [audited()],
    }
    for found, expected in (
        (both(before, now), change),
        (both(now, before), "gone" if change == "new" else change),
    ):
        (row,) = rows(found, "trend_findings")
        assert row["change"] == expected


@pytest.mark.parametrize(
    ("whole", "change"), [({0, 1}, "gone"), ({0}, "cannot_tell"), (None, "cannot_tell")]
)
def test_a_group_is_gone_only_where_all_groups_of_its_partition_are_shown(
    whole: set[int] | None, change: str
) -> None:
    group = {
        "group_id": "g",
        "group_type": "consumer",
        "state": "Stable",
        "coordinator_partition": 1,
        "complete": True,
    }
    before = {
        **of_findings(),
        "findings": [finding("a", group="g")],
        "groups": [group],
        "audited_groups": [audited()],
    }
    found = both(before, of_findings(), whole_partitions=whole and frozenset(whole))
    (row,) = rows(found, "trend_changed_groups")
    assert (row["change"], row["group_type"]) == (change, "consumer")
    (gone,) = rows(found, "trend_findings")
    assert gone["change"] == change


NAMES = st.sampled_from("abcdefgh")
LAGS = st.dictionaries(
    NAMES, st.tuples(st.none() | st.integers(0, 9), st.integers(0, 1)), max_size=8
)


@examples(20, 100, then=LAGS, now=LAGS, days=st.integers(1, 5))
def test_lags_are_those_of_each_group_and_grow_where_both_are_known_whole(
    then: Mapping[str, Any], now: Mapping[str, Any], days: int
) -> None:
    audits = [
        Audit(
            day,
            tables={
                "audited_groups": [
                    {"group_id": each, "lag": lag, "lag_not_told": unknown, "complete": True}
                    for each, (lag, unknown) in lags.items()
                ]
            },
        )
        for day, lags in ((1, then), (1 + days, now))
    ]
    found = trend([each.run() for each in audits], TrendSettings())
    first, last = rows(found, "trend_runs")
    for row, lags in ((first, then), (last, now)):
        known = [lag for lag, _ in lags.values() if lag is not None]
        unknown = sum(each for _, each in lags.values())
        if known or not unknown:
            assert row["lag"] == sum(known)
            assert row["lag_bound"] == ("at_least" if unknown else "exact")
        else:
            assert row["lag"] is None
    is_known = not any(each for lags in (then, now) for _, each in lags.values())
    expected = (last["lag"] - first["lag"]) / days if is_known else None
    assert last["lag_per_day"] == expected
    for row in rows(found, "trend_lag"):
        if row["as_of"] != last["as_of"]:
            continue
        here, earlier = (lags.get(row["group_id"], (None, 1)) for lags in (now, then))
        is_whole = not (here[1] or earlier[1]) and None not in (here[0], earlier[0])
        assert row["grown"] == (here[0] - earlier[0] if is_whole else None)
        assert (row["reason"] is None) == is_whole


PARTITION = {"group_id": "g", "topic": "t", "partition": 0, "lag": 7}
HOUR = 3_600_000


def of_loss(hours: float | None, bound: str = "exact") -> dict[str, Any]:
    left = None if hours is None else round(hours * HOUR)
    return {"lag": [{**PARTITION, "loss_in_ms": left, "loss_in_bound": bound}]}


def test_retention_is_reached_when_the_time_that_is_left_has_shrunk_to_nothing() -> None:
    found = both({**of_loss(40), "groups": []}, of_loss(30, "estimated"))
    (row,) = rows(found, "trend_retention")
    # Ten hours less in a day: nothing is left in three.
    assert row["lost_at"] == FIRST_DAY + timedelta(days=2 + 3)
    assert (row["loss_in_ms"], row["earlier_loss_in_ms"]) == (30 * HOUR, 40 * HOUR)
    assert row["lost_bound"] == "estimated"


@pytest.mark.parametrize(
    ("then", "now", "bounded"),
    [
        (of_loss(30), of_loss(40), 0),
        (of_loss(30), of_loss(30), 0),
        (of_loss(40, "at_least"), of_loss(30), 1),
        (of_loss(40), of_loss(30, "at_most"), 1),
        (of_loss(None, "never"), of_loss(30), 0),
        (of_loss(40), of_loss(None, "nothing"), 0),
        (of_loss(40), of_loss(-1), 0),
    ],
)
def test_retention_that_comes_no_nearer_or_of_which_that_is_not_known_is_not_reached(
    then: dict[str, Any], now: dict[str, Any], bounded: int
) -> None:
    found = both(then, now)
    assert rows(found, "trend_retention") == []
    assert found.figures["prod"]["bounded"] == bounded


def test_retention_that_has_come_is_due_whatever_else_is_known() -> None:
    found = both(of_loss(40), of_loss(-1))
    assert found.figures["prod"]["due"] == 1
    (lines,) = lines_of(found.long_tables, found.figures)
    assert [each.text for each in lines.limits] == [
        "retention has reached 1 partition: the next record to read goes when brokers look next",
        "for no other partition is it known when retention reaches it",
    ]


def setting(name: str, value: str, kind: str = "topic", of: str = "t") -> Row:
    return {"resource_type": kind, "resource": of, "name": name, "value": value}


@pytest.mark.parametrize(
    ("then", "now", "is_told"),
    [
        ([setting("retention.ms", "9")], [setting("retention.ms", "9")], True),
        ([setting("retention.ms", "9")], [setting("retention.ms", "5")], False),
        ([], [setting("retention.bytes", "5")], False),
        ([setting("retention.ms", "9")], [], False),
        ([setting("retention.ms", "9", of="u")], [setting("retention.ms", "5", of="u")], True),
        ([setting("segment.ms", "9")], [setting("segment.ms", "5")], True),
        ([], [setting("log.retention.hours", "5", "broker", "")], False),
    ],
)
def test_retention_that_was_set_otherwise_comes_no_nearer_by_that(
    then: list[Row], now: list[Row], is_told: bool
) -> None:
    found = both({**of_loss(40), "configs": then}, {**of_loss(30), "configs": now})
    assert bool(rows(found, "trend_retention")) == is_told
    assert found.figures["prod"]["other_retention"] == (0 if is_told else 1)
    (lines,) = lines_of(found.long_tables, found.figures)
    words = "when retention reaches 1 partition: their topics have another retention"
    assert any(words in each.text for each in lines.cannot_tell) != is_told


def of_lag(lag: int, **changed: Any) -> dict[str, Any]:
    return {"audited_groups": [{**audited(), "lag": lag, **changed}]}


def test_a_run_without_a_table_of_groups_does_not_say_that_a_group_is_not_there() -> None:
    lags = rows(both({"audited_groups": None}, of_lag(5)), "trend_lag")
    why = "there is no table audited_groups"
    assert [each["reason"] for each in lags] == [why, f"in the run before {why}"]
    assert rows(both(of_lag(5), {"audited_groups": None}), "trend_lag") == []


def test_one_run_without_tables_of_groups_has_no_lag() -> None:
    found = trend(
        [Audit(1, tables={"groups": None, "audited_groups": None}).run()], TrendSettings()
    )
    assert rows(found, "trend_lag") == []
    assert rows(found, "trend_runs")[0]["lag"] is None


@pytest.mark.parametrize("turned", [False, True], ids=["then", "now"])
def test_what_rests_on_an_interpolated_end_is_estimated_in_every_number(turned: bool) -> None:
    sure = of_lag(5)
    unsure = {**of_lag(9), "lag": [{**PARTITION, "lag": 9, "log_end_bound": "interpolated"}]}
    found = both(unsure, sure) if turned else both(sure, unsure)
    last = rows(found, "trend_runs")[-1]
    assert last["lag_per_day_bound"] == "estimated"
    lag = rows(found, "trend_lag")[-1]
    bounds = lag["earlier_lag_bound"], lag["lag_bound"]
    assert bounds == (("estimated", "exact") if turned else ("exact", "estimated"))
    assert lag["grown_bound"] == "estimated"
    exact = both(sure, of_lag(9))
    assert rows(exact, "trend_runs")[-1]["lag_per_day_bound"] == "exact"
    assert rows(exact, "trend_lag")[-1]["grown_bound"] == "exact"
    if not turned:
        (lines,) = lines_of(found.long_tables, found.figures)
        assert {each.text for each in lines.worse} == {
            "lag of all groups: 5 before, ~ 9 now (~ +4 a day)",
            "lag of g: 5 before, ~ 9 now (~ +4 a day)",
        }


def test_a_sum_that_lacks_partitions_says_how_many() -> None:
    found = both({}, of_lag(5, lag_not_told=3))
    assert "lag: that of 3 partitions is not known" in rows(found, "trend_runs")[-1]["reason"]


def many(day: int, step: int) -> Audit:
    names = [f"group-{number}" for number in range(0, 60, step)]
    return Audit(
        day,
        tables={
            "groups": [
                {
                    "group_id": each,
                    "group_type": "classic",
                    "state": "Empty",
                    "coordinator_partition": 0,
                    "complete": True,
                }
                for each in names
            ],
            "audited_groups": [
                {"group_id": each, "lag": day * len(each), "lag_not_told": 0, "complete": True}
                for each in names
            ],
            "findings": [finding(f"of {each}", group=each) for each in names],
            "applied_rules": [applied(len(names))],
        },
    )


def test_an_answer_is_the_same_in_however_many_parts_it_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    runs = [each.run() for each in (many(1, 2), many(2, 3), many(3, 5))]
    whole = trend(runs, TrendSettings(most=5))
    monkeypatch.setattr(changes, "AT_ONCE", 20)
    parted = trend(runs, TrendSettings(most=5), PartRunner(str(tmp_path)))
    for name in whole.tables:
        assert rows(parted, name) == rows(whole, name), name
    assert parted.figures == whole.figures
    changed = Counter(each["change"] for each in rows(whole, "trend_changed_groups"))
    assert changed == {"new": 8, "gone": 16}


def test_events_are_a_lower_bound_where_compaction_took_some() -> None:
    at = FIRST_DAY + timedelta(days=1, hours=1)
    late: datetime = FIRST_DAY + timedelta(days=9)
    tables = {
        "rebalances": [
            {"at": at, "missing_before": 2, "complete": True},
            {"at": FIRST_DAY, "missing_before": 0, "complete": True},
            {"at": late, "missing_before": 0, "complete": True},
        ],
        "offset_removals": [
            {"cause": "expiration", "removed_at": at},
            {"cause": "group_deleted", "removed_at": at},
            {"cause": "expiration", "removed_at": FIRST_DAY},
        ],
    }
    for is_whole, bound in ((True, "exact"), (False, "at_least")):
        last = rows(both({}, tables, shows_history=is_whole), "trend_runs")[-1]
        assert (last["rebalances"], last["rebalances_bound"]) == (3, bound)
        assert (last["expired_offsets"], last["expired_bound"]) == (1, bound)
    unknown = {"offset_removals": [{"cause": "unknown", "removed_at": at}]}
    last = rows(both({}, unknown), "trend_runs")[-1]
    assert (last["expired_offsets"], last["expired_bound"]) == (0, "at_least")
