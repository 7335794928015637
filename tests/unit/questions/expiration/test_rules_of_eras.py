"""When an offset expires, told as one group a case: Kafka's own tests, and KIP-211 row by row."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from analytics.questions.expiration.offset_expiration import offset_expiration
from analytics.questions.expiration.offset_log import offset_log
from analytics.questions.expiration.retention_settings import OPTION, Retention, Setting
from analytics.replay.log.rules import replay_rules
from schemas.expiration_rules import expiration_eras
from tests.support.expiration_logs import TABLES, committed_in, log_of, rows_of

if TYPE_CHECKING:
    from analytics.questions.expiration.offset_log import OffsetLog

ROOT = Path(__file__).parents[4]
ORACLE = ROOT / "tests" / "cases" / "expiration" / "oracle-expiration.json"
TOPIC = "__consumer_offsets"
RULES = ("pre-2.1", "2.1-2.3", "3.2-3.9", "current", "kip-211")
DAY = 86_400_000
WEEK = 7 * DAY


@dataclass(frozen=True)
class Case:
    """A group with offsets, and what the cleanup at `now` removes.

    ``group`` has type, protocolType, state, currentStateTimestamp, subscribedTopics (None: it
    cannot be parsed); an offset topic, partition, commitTimestamp, expireTimestamp and
    pendingProducerIds.
    """

    name: str
    rules: str
    group: dict[str, Any]
    offsets: list[dict[str, Any]]
    now: int
    retention: int
    expired: set[tuple[str, int]]
    rule: str | None = None


def oracle() -> list[Case]:
    told = json.loads(ORACLE.read_text("utf-8"))["cases"]
    return [
        Case(
            each["id"],
            each["rules"],
            each["group"],
            each["offsets"],
            each["now"],
            each["retentionMs"],
            {(topic, partition) for topic, partition in each["expect"]["expired"]},
        )
        for each in told
    ]


def offset(topic: str = "t", commit: int = 0, **more: Any) -> dict[str, Any]:
    return {"topic": topic, "partition": 0, "commitTimestamp": commit, **more}


def classic(state: str, protocol: str = "consumer", **more: Any) -> dict[str, Any]:
    return {"type": "classic", "protocolType": protocol, "state": state, **more}


def told(
    name: str,
    group: dict[str, Any],
    offsets: list[dict[str, Any]],
    now: int,
    gone: str,
    rule: str | None = None,
) -> tuple[str, dict[str, Any], list[dict[str, Any]], int, set[tuple[str, int]], str | None]:
    return name, group, offsets, now, {(topic, 0) for topic in gone}, rule


EMPTY_SINCE_A_DAY = classic("Empty", currentStateTimestamp=DAY)
STABLE = classic("Stable", subscribedTopics=["a"])
KIP_TABLE = [
    told("empty: a ms short", EMPTY_SINCE_A_DAY, [offset("a"), offset("b")], DAY + WEEK - 1, ""),
    told(
        "empty: all of it",
        EMPTY_SINCE_A_DAY,
        [offset("a"), offset("b")],
        DAY + WEEK,
        "ab",
        "empty_group",
    ),
    told("stable: subscribed", STABLE, [offset("a")], 10 * WEEK, "", "subscribed_topic"),
    told("stable: not subscribed", STABLE, [offset("b")], WEEK, "b", "unsubscribed_topic"),
    told("stable: not yet", STABLE, [offset("b")], WEEK - 1, "", "unsubscribed_topic"),
    told(
        "simple: from the commit",
        classic("Empty", ""),
        [offset("a", DAY)],
        DAY + WEEK,
        "a",
        "simple_consumer",
    ),
    told("simple: not yet", classic("Empty", ""), [offset("a", DAY)], DAY + WEEK - 1, ""),
]
"""The KIP's state table; shipped rules say the same, before 2.4 but for unsubscribed topics."""

STREAMS_KEEP = "streams: the topics of its topology"
EXPLICIT = offset("a", 0, expireTimestamp=DAY)
DIFFERENCES: dict[str, list[Any]] = {
    "kip-211": [
        told(
            "a given retention counts while subscribed",
            STABLE,
            [EXPLICIT],
            DAY,
            "a",
            "explicit_expire_timestamp",
        ),
        told(
            "kip: a KIP-848 group is empty too",
            {"type": "consumer", "state": "Empty"},
            [offset("a")],
            WEEK,
            "a",
        ),
    ],
    "current": [
        told(
            "a given retention waits for the group", STABLE, [EXPLICIT], DAY, "", "subscribed_topic"
        ),
        told(
            "a given retention goes before the empty clock",
            EMPTY_SINCE_A_DAY,
            [EXPLICIT],
            DAY,
            "a",
            "explicit_expire_timestamp",
        ),
        told(
            "a given retention longer than the brokers'",
            EMPTY_SINCE_A_DAY,
            [offset("a", 0, expireTimestamp=9 * WEEK)],
            8 * WEEK,
            "",
        ),
        told(
            "overflown retention: at once",
            EMPTY_SINCE_A_DAY,
            [offset("a", 0, expireTimestamp=-(2**62))],
            1,
            "a",
        ),
        told(
            "-1 is no expire time",
            EMPTY_SINCE_A_DAY,
            [offset("a", 0, expireTimestamp=-1)],
            WEEK,
            "",
        ),
        told(
            "empty without a time: from the commit",
            classic("Empty"),
            [offset("a")],
            WEEK,
            "a",
            "empty_group",
        ),
        told(
            "connect: nothing",
            classic("Stable", "connect"),
            [EXPLICIT],
            9 * WEEK,
            "",
            "other_protocol_type",
        ),
        told(
            STREAMS_KEEP,
            {"type": "streams", "state": "Stable", "subscribedTopics": ["a", "b"]},
            [offset("a"), offset("b", 1)],
            WEEK,
            "",
            "subscribed_topic",
        ),
        told(
            "unreadable: nothing",
            classic("Stable", subscribedTopics=None),
            [EXPLICIT],
            9 * WEEK,
            "",
            "unparseable_subscription",
        ),
    ],
    "3.2-3.9": [
        told(
            "pending does not keep it",
            classic("Empty", ""),
            [offset("a", 0, pendingProducerIds=[7])],
            WEEK,
            "a",
        ),
    ],
    "2.1-2.3": [
        told(
            "connect: nothing",
            classic("Stable", "connect"),
            [EXPLICIT],
            9 * WEEK,
            "",
            "active_group",
        ),
        told(
            "-1 is no expire time",
            classic("Empty", ""),
            [offset("a", 0, expireTimestamp=-1)],
            WEEK - 1,
            "",
        ),
    ],
    "pre-2.1": [
        told(
            "at exactly its time it stays",
            classic("Empty", ""),
            [EXPLICIT],
            DAY,
            "",
            "per_offset_expiry",
        ),
        told("a ms later it goes", classic("Empty", ""), [EXPLICIT], DAY + 1, "a"),
        told("active, subscribed: goes too", STABLE, [EXPLICIT], DAY + 1, "a", "per_offset_expiry"),
        told(
            "-1: commit and retention", STABLE, [offset("a", 0, expireTimestamp=-1)], WEEK + 1, "a"
        ),
        told("-1: a ms before", STABLE, [offset("a", 0, expireTimestamp=-1)], WEEK, ""),
    ],
}


def cases(rules: str) -> list[Case]:
    rows = list(DIFFERENCES[rules])
    if rules in {"current", "3.2-3.9", "kip-211"}:
        rows += KIP_TABLE
    made = [
        Case(name, rules, group, offsets, now, WEEK, gone, rule)
        for name, group, offsets, now, gone, rule in rows
    ]
    return [each for each in oracle() if each.rules == rules] + made


ALL = [case for rules in RULES for case in cases(rules)]


@pytest.fixture(scope="module")
def log() -> OffsetLog:
    """All cases in one log: every case is a partition of its own."""
    records: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for number, case in enumerate(ALL):
        for name, row in records_of(case):
            place = {"topic": TOPIC, "partition": number, "offset": len(records[name])}
            records[name].append({**place, "leader_epoch": 0, "producer_id": -1, **row})
    return log_of(records, "4.3", "current")


@pytest.fixture(scope="module")
def committed(log: OffsetLog) -> pl.DataFrame:
    return committed_in(log)


@pytest.mark.parametrize("rules", RULES)
def test_the_cleanup_removes_exactly_these(
    log: OffsetLog, committed: pl.DataFrame, rules: str
) -> None:
    numbers = [number for number, case in enumerate(ALL) if case.rules == rules]
    settings = {at: Setting(ALL[at].retention, OPTION, 600_000) for at in numbers}
    expiring = offset_expiration(
        committed.filter(pl.col("coordinator_partition").is_in(numbers)),
        offset_log(log.records, log.replay, expiration_eras()[rules]),
        Retention(settings[numbers[0]], settings),
        0,
        instants={at: ALL[at].now for at in numbers},
    )
    rows = rows_of("offset_expiration", expiring)
    for number in numbers:
        case = ALL[number]
        mine = [row for row in rows if row.coordinator_partition == number]
        gone = {(row.topic, row.partition) for row in mine if row.status in {"due", "overdue"}}
        assert gone == case.expired, case.name
        if case.rule is not None:
            assert {row.rule for row in mine} == {case.rule}, case.name
        for row in mine:
            assert (row.status == "protected") == (row.expires_at is None), case.name


def test_a_streams_group_of_4_1_keeps_what_is_due_only_if_it_was_heard_of_since_a_load(
    log: OffsetLog, committed: pl.DataFrame
) -> None:
    case = next(at for at, each in enumerate(ALL) if each.name == STREAMS_KEEP)
    ours = committed.filter(pl.col("coordinator_partition") == case)
    notes = {}
    for release in ("4.1", "4.2"):
        of_release = replace(log, replay=replay_rules(release))
        setting = Retention(Setting(WEEK, OPTION, 600_000))
        expiring = offset_expiration(ours, of_release, setting, WEEK)
        for row in rows_of("offset_expiration", expiring):
            assert row.status == ("protected" if row.note is None else "cannot_tell")
            notes[release, row.topic] = row.note
    assert notes.pop(("4.1", "a")).startswith("a streams group of 4.1")
    assert len(notes) == 3
    assert set(notes.values()) == {None}


def records_of(case: Case) -> list[tuple[str, dict[str, Any]]]:
    group = case.group
    found = [*classic_records(group)] if group["type"] == "classic" else [*modern_records(group)]
    for each in case.offsets:
        key = {"group": "g", "topic": each["topic"], "partition": each["partition"]}
        value = {
            "offset": 1,
            "commit_timestamp": each["commitTimestamp"],
            "expire_timestamp": each.get("expireTimestamp"),
        }
        commit = {"key": key, "value": value, "is_tombstone": False, "value_version": 1}
        found.append(("offset_commit", commit))
        found += [
            ("offset_commit", {**commit, "producer_id": producer, "is_transactional": True})
            for producer in each.get("pendingProducerIds", ())
        ]
    return found


def classic_records(group: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    if not group["protocolType"]:
        return []
    topics = group.get("subscribedTopics", [])
    subscription = None if topics is None else {"topics": topics}
    member = {"member_id": "m", "subscription": b"", "subscription_decoded": subscription}
    value = {
        "protocol_type": group["protocolType"],
        "generation": 1,
        "protocol": "range",
        "current_state_timestamp": group.get("currentStateTimestamp", -1),
        "members": [] if group["state"] == "Empty" else [member],
    }
    row = {"key": {"group": "g"}, "value": value, "is_tombstone": False, "value_version": 3}
    return [("group_metadata", row)]


def modern_records(group: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    kind, topics = group["type"], group.get("subscribedTopics", [])
    key = {"group_id": "g"}
    found = [(f"{kind}_group_metadata", {"key": key, "value": {"epoch": 1}, "is_tombstone": False})]
    if kind == "streams":
        value = {
            "epoch": 1,
            "subtopologies": [{"source_topics": topics, "repartition_source_topics": []}],
        }
        found.append(
            ("streams_group_topology", {"key": key, "value": value, "is_tombstone": False})
        )
    if group["state"] != "Empty":
        member = {"key": {**key, "member_id": "m"}, "is_tombstone": False}
        value = {"subscribed_topic_names": topics} if kind == "consumer" else {"client_id": "c"}
        found.append((f"{kind}_group_member_metadata", {**member, "value": value}))
    return found


def test_every_case_of_the_oracle_has_rules_that_are_tried() -> None:
    assert {each.rules for each in oracle()} <= set(RULES)
    assert len(oracle()) == 17
