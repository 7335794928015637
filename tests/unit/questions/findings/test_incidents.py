"""What an audit comes to: findings of one cause are one incident, what costs most comes first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st

from analytics.questions.findings.ended_lines import OF_LINES, elections_of
from analytics.questions.findings.found import in_order
from analytics.questions.findings.incidents import incident_sums, incidents_of
from reports.verdict import AuditIncident, as_values, incidents_in
from schemas.finding_rules import COPY, GROUP, LINE, TOPIC, finding_rules, incident_causes
from schemas.gaps import Template
from tests.support.examples import examples
from tests.support.page_tables import AT, finding, rows_of

GROUPS_TOPIC = "__consumer_offsets"


def lines(*rows: dict[str, Any]) -> pa.Table:
    """Lines that elections ended, of `broker-1` at `AT` where a row says nothing else."""
    said = {"topic": GROUPS_TOPIC, "copy": "broker-1", "diverges_at": 5, "lost_records": 7}
    return rows_of("divergences", [{**said, "elected_at": AT, **row} for row in rows])


def lost(group: str, partition: int = 0, *, offset: int = 9, **said: Any) -> dict[str, Any]:
    """A finding that an election took offsets of a group, by a record of the lost line."""
    record = {"topic": GROUPS_TOPIC, "partition": partition, "offset": offset}
    return finding(
        group,
        "offsets_lost_by_election",
        severity="critical",
        **{"since": AT, "evidence": [record], **said},
    )


def lost_line(partition: int, copy: str = "broker-1", **said: Any) -> dict[str, Any]:
    record = {"topic": GROUPS_TOPIC, "partition": partition, "offset": 5, "copy": copy}
    made = finding(None, "line_lost_by_election", severity="critical", since=AT, **said)
    return {**made, "topic": GROUPS_TOPIC, "partition": partition, "evidence": [record]}


def incidents(
    found: Sequence[dict[str, Any]], ended: pa.Table | None = None, parts: int = 1
) -> tuple[AuditIncident, ...]:
    """The incidents of findings, counted in so many parts: those of a group in one."""
    elections = elections_of((lines() if ended is None else ended).select(list(OF_LINES)))
    in_parts: list[list[dict[str, Any]]] = [[] for _ in range(parts)]
    for each in found:
        in_parts[len(each["group_id"] or "") and ord(each["group_id"][0]) % parts].append(each)
    sums = [incident_sums(in_order(rows_of("findings", each)), elections) for each in in_parts]
    return incidents_in(*incidents_of(sums, elections))


def said(found: Sequence[AuditIncident]) -> list[tuple[str, dict[str, int]]]:
    return [(each.cause, {part.rule: part.findings for part in each.parts}) for each in found]


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_all_that_one_failure_of_a_broker_did_is_one_incident(parts: int) -> None:
    ended = lines({"partition": 0}, {"partition": 1, "elected_at": AT + timedelta(seconds=2)})
    found = [lost_line(0), lost_line(1), lost("a"), lost("b", 1), lost("a", 1)]
    (incident,) = incidents(found, ended, parts)
    assert said([incident]) == [
        ("election", {"offsets_lost_by_election": 3, "line_lost_by_election": 2})
    ]
    assert incident.message == (
        "unclean election: 14 records of 2 internal partitions are only on broker-1"
    )
    assert (incident.groups, incident.findings, incident.since) == (2, 5, AT)


def test_failures_that_lie_apart_are_two_incidents() -> None:
    later = AT + timedelta(hours=3)
    ended = lines({"partition": 0}, {"partition": 1, "elected_at": later})
    found = [lost("a"), lost("b"), lost("c", 1, since=later), lost("d", 1, since=later)]
    first, second = incidents(found, ended)
    assert [each.groups for each in (first, second)] == [2, 2]
    assert {first.since, second.since} == {AT, later}


def test_an_election_that_ended_lines_of_two_copies_is_one_incident() -> None:
    ended = lines({"partition": 0}, {"partition": 0, "copy": "broker-3", "lost_records": 9})
    (incident,) = incidents([lost_line(0), lost_line(0, "broker-3"), lost("a")], ended)
    assert incident.message == (
        "unclean election: at least 9 records of 1 internal partition are only on "
        "broker-1, broker-3"
    )


def test_lines_of_two_brokers_that_no_election_shares_are_two_incidents() -> None:
    ended = lines({"partition": 0}, {"partition": 1, "copy": "broker-2"})
    found = [lost("a"), lost("b"), lost("c", 1), lost("d", 1)]
    assert [each.groups for each in incidents(found, ended)] == [2, 2]


def test_a_record_before_the_lines_part_is_of_no_election() -> None:
    found = [lost("a", offset=4), lost("b", offset=4)]
    assert said(incidents(found, lines({"partition": 0}))) == [
        ("", {"offsets_lost_by_election": 2})
    ]


def test_where_records_are_on_several_lines_the_time_tells_or_nothing_does() -> None:
    later = AT + timedelta(hours=3)
    ended = lines({"partition": 0}, {"partition": 0, "copy": "broker-2", "elected_at": later})
    told = incidents([lost("a", since=later), lost("b", since=later)], ended)
    assert said(told) == [("election", {"offsets_lost_by_election": 2})]
    not_told = [lost(each, since=AT + timedelta(minutes=1)) for each in ("a", "b")]
    assert said(incidents(not_told, ended)) == [("", {"offsets_lost_by_election": 2})]


def test_a_finding_that_shares_its_cause_with_none_stays_with_those_of_its_rule() -> None:
    ended = lines({"partition": 0}, {"partition": 1, "copy": "broker-2"})
    (one,) = incidents([lost("a"), lost("b", 1, message="b went back")], ended)
    assert (one.cause, one.message) == ("", "2 groups lost offsets by an unclean election")
    (alone,) = incidents([lost("a", message="a went back")], ended)
    assert (alone.cause, alone.message) == ("", "a went back")


def test_the_command_is_the_one_that_serves_most_of_the_rule_to_begin_with() -> None:
    ended = lines({"partition": 0})
    found = [
        lost_line(0, suggestion="kafka-topics --describe"),
        lost("a", suggestion="groupscope timeline dump --group a"),
        *(lost(each, suggestion="groupscope restore dump") for each in ("b", "c")),
    ]
    (incident,) = incidents(found, ended)
    assert incident.command == "groupscope restore dump"
    assert (incident.served, incident.of) == (2, 3)


def test_one_retention_is_one_cause_for_all_groups() -> None:
    found = [
        *(finding(each, "offsets_expired") for each in ("a", "b")),
        *(finding(each, "offsets_due", severity="critical") for each in ("b", "c")),
    ]
    (incident,) = incidents(found)
    assert incident.message == "offsets.retention.minutes removes committed offsets of 3 groups"
    assert incident.severity == "critical"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("offsets_expired", "offsets.retention.minutes removed committed offsets of 2 groups"),
        ("offsets_beyond_end", "committed offsets of 2 groups are beyond the end of orders"),
        (
            "offsets_of_another_topic",
            "committed offsets of 2 groups belong to another topic named orders",
        ),
        (
            "records_deleted_soon",
            "retention of orders soon deletes records that 2 groups have not read",
        ),
    ],
)
def test_where_one_rule_alone_found_something_the_title_says_what(rule: str, message: str) -> None:
    (incident,) = incidents([finding(each, rule, topic="orders") for each in ("a", "b")])
    assert incident.message == message
    both = [*(finding(each, "offsets_beyond_end", topic="orders") for each in ("a", "b"))]
    (other,) = incidents([*both, finding("b", "offsets_of_another_topic", topic="orders")])
    assert other.message == "committed offsets of 2 groups do not fit the log of orders"


def test_an_incident_began_with_what_is_wrong_and_not_with_what_is_worth_knowing() -> None:
    before = AT - timedelta(days=6)
    found = [
        finding("a", "offsets_expire_soon", severity="info", since=before),
        finding("b", "offsets_expired", since=AT),
        finding("c", "offsets_due", severity="critical", since=AT + timedelta(minutes=1)),
    ]
    assert [each.since for each in incidents(found)] == [AT]


def test_findings_about_one_topic_or_on_one_broker_are_together_and_others_are_not() -> None:
    found = [
        *(
            finding(each, "records_lost_unread", severity="critical", topic=topic)
            for each, topic in (("a", "orders"), ("b", "orders"), ("c", "clicks"))
        ),
        *(
            {
                **finding(None, rule, severity=severity, topic=GROUPS_TOPIC, partition=n),
                "evidence": [
                    {"copy": copy, "topic": GROUPS_TOPIC, "partition": n, "offset": 1},
                ],
            }
            for rule, severity, n, copy in (
                ("cleaner_dead", "critical", 0, "broker-1"),
                ("cleaner_dead", "critical", 1, "broker-1"),
                ("tombstones_overdue", "info", 0, "broker-1"),
                ("tombstones_overdue", "info", 2, "broker-2"),
            )
        ),
    ]
    assert [(each.cause, each.message) for each in incidents(found)] == [
        ("topic_retention", "retention of orders deleted records that 2 groups had not read"),
        ("", found[2]["message"]),
        ("cleaner", "the cleaner of broker-1 does not clean 2 partitions"),
    ]


def unstable(group: str, *rules: str) -> list[dict[str, Any]]:
    rules = rules or ("rebalance_storm", "client_flapping")
    return [finding(group, each, suggestion=f"look at {each}") for each in rules]


@pytest.mark.parametrize("parts", [1, 3])
def test_a_cause_that_each_group_has_for_itself_makes_an_incident_of_each(parts: int) -> None:
    found = [*unstable("a"), *unstable("b"), *unstable("c", "rebalance_storm")]
    first, second, third = incidents(found, parts=parts)
    assert [each.message for each in (first, second)] == [
        "a rebalances over and over",
        "b rebalances over and over",
    ]
    assert said([first]) == [("rebalances", {"client_flapping": 1, "rebalance_storm": 1})]
    # The client is what to begin with; the storm is what it does.
    assert (first.command, first.groups) == ("look at client_flapping", 1)
    assert said([third]) == [("", {"rebalance_storm": 1})]


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_where_many_groups_have_it_the_rules_say_it_sooner(parts: int) -> None:
    most = incident_causes().groups_at_most.groups
    names = [chr(ord("a") + number) for number in range(most + 1)]
    found = [each for name in names for each in unstable(name)]
    few = [each for each in found if each["group_id"] != names[-1]]
    assert {each.cause for each in incidents(few, parts=parts)} == {"rebalances"}
    many = incidents(found, parts=parts)
    assert said(many) == [("", {"client_flapping": 11}), ("", {"rebalance_storm": 11})]
    assert [each.groups for each in many] == [11, 11]
    (part,) = many[0].parts
    assert part.names == ("a", "b", "c")


def test_what_is_severe_comes_first_then_what_concerns_most_groups() -> None:
    found = [
        finding("a", "lag_growing"),
        *(finding(each, "lag_old") for each in ("a", "b")),
        finding("c", "offsets_beyond_end", severity="critical"),
        finding("d", "members_idle", severity="info"),
    ]
    assert [each.parts[0].rule for each in incidents(found)] == [
        *("offsets_beyond_end", "lag_old", "lag_growing"),
    ]


def test_what_takes_offsets_away_comes_before_what_concerns_more_groups_and_does_not() -> None:
    found = [
        *(finding(each, "offsets_beyond_end", severity="critical") for each in ("a", "b", "c")),
        finding("d", "offsets_due", severity="critical"),
        *(finding(each, "lag_old") for each in ("a", "b")),
        finding("e", "removal_unexplained"),
    ]
    assert [each.parts[0].rule for each in incidents(found)] == [
        *("offsets_due", "offsets_beyond_end", "removal_unexplained", "lag_old"),
    ]


def test_what_waits_at_a_cost_comes_before_what_cost_more_until_a_team_says_otherwise() -> None:
    beyond = [finding(each, "offsets_beyond_end", severity="critical") for each in "ab"]
    rule = next(each for each in finding_rules() if each.name == "removal_unexplained")
    order = []
    for settings in ({}, {"severity": "critical"}):
        severity = rule.configured(settings).severity
        removed = [finding(each, rule.name, severity=severity) for each in "cdefghijk"]
        order.append([each.parts[0].rule for each in incidents([*removed, *beyond])])
    assert order == [
        ["offsets_beyond_end", "removal_unexplained"],
        ["removal_unexplained", "offsets_beyond_end"],
    ]


def test_a_part_that_is_less_severe_than_its_incident_brings_it_no_further() -> None:
    beyond = [
        finding(each, "offsets_beyond_end", topic="orders", severity="critical")
        for each in ("a", "b", "c")
    ]
    losing = [
        finding("d", "records_deleted_soon", severity="critical"),
        finding("e", "offsets_expired"),
    ]
    assert [each.severity for each in incidents([*losing, *beyond])] == [
        *("critical", "critical", "warning"),
    ]


def test_nothing_found_is_no_incident() -> None:
    assert incidents([]) == ()


def test_a_summary_has_them_as_values() -> None:
    found = [lost("a", suggestion="do"), lost("b", suggestion="do"), finding("c", message="slow")]
    first, second = as_values(incidents(found, lines({"partition": 0})))
    assert first == {
        "cause": "election",
        "severity": "critical",
        "message": "2 groups lost offsets by an unclean election",
        "since": "2026-11-21T09:20:00.000Z",
        "findings": 2,
        "groups": 2,
        "by_rule": {"offsets_lost_by_election": 2},
        "command": "do",
        "command_serves": {"findings": 2, "of": 2},
    }
    assert (second["cause"], second["since"], second["message"]) == (None, None, "slow")


@pytest.mark.parametrize("name", incident_causes().causes)
def test_a_title_says_what_is_there_to_say(name: str) -> None:
    cause = incident_causes().causes[name]
    of_line = {"records", "partitions", "copies", "at_least"}
    there = {"groups", *cause.needs, *({cause.shared} & {TOPIC, COPY, GROUP})}
    titles = (cause.title, *cause.titles.values())
    used = {value.name for each in titles for value in Template(each).values}
    assert used <= there | (of_line if cause.shared == LINE else set())
    assert set(cause.rules) <= {each.name for each in finding_rules()}


# Random findings, against a plain model.

RULES = {
    "records_lost_unread": "topic_retention",
    "records_deleted_soon": "topic_retention",
    "offsets_expired": "offsets_retention",
    "rebalance_storm": "rebalances",
    "client_flapping": "rebalances",
    "lag_old": "",
    "lag_growing": "",
}


@st.composite
def random_findings(draw: st.DrawFn) -> list[dict[str, Any]]:
    each = st.tuples(
        st.sampled_from(["a", "b", "c", "d", "e"]),
        st.sampled_from(sorted(RULES)),
        st.sampled_from(["orders", "clicks", "views"]),
        st.integers(0, 2),
        st.sampled_from(["", "do", "try"]),
    )
    found = draw(st.lists(each, max_size=12, unique_by=lambda row: row[:4]))
    return [
        finding(
            group, rule, topic=topic, partition=partition, suggestion=command or None, message="m",
            since=AT + timedelta(minutes=partition),
            finding_id=f"{rule}-{group}-{topic}-{partition}",
        )
        for group, rule, topic, partition, command in found
    ]  # fmt: skip


def plainly(found: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What incidents have, counted one finding after the other."""

    def cause_of(each: dict[str, Any]) -> tuple[str, str]:
        cause = RULES[each["rule"]]
        of = {"topic_retention": "topic", "rebalances": "group_id"}.get(cause)
        return cause, each[of] if of else ""

    shared = Counter(cause_of(each) for each in found)
    incidents: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for each in found:
        cause, topic = cause_of(each)
        is_of_rule = not cause or shared[cause, topic] == 1
        name = ("", "", each["rule"]) if is_of_rule else (cause, topic, "")
        incidents.setdefault(name, []).append(each)
    return sorted(
        (
            name[0],
            len(these),
            len({each["group_id"] for each in these}),
            min(each["since"] for each in these),
            tuple(sorted(Counter(each["rule"] for each in these).items())),
        )
        for name, these in incidents.items()
    )


@examples(20, 100, found=random_findings(), parts=st.integers(2, 4))
def test_incidents_are_the_same_in_any_parts_and_as_a_plain_count_has_them(
    found: list[dict[str, Any]], parts: int
) -> None:
    whole = incidents(found)
    assert incidents(found, parts=parts) == whole
    assert plainly(found) == sorted(
        (
            each.cause,
            each.findings,
            each.groups,
            each.since,
            tuple(sorted((part.rule, part.findings) for part in each.parts)),
        )
        for each in whole
    )
