"""Balance of the groups of a real broker, at the end of its story and all the way there."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from schemas.evaluation_rules import balance_rules
from tests.support.balance_of_dumps import ByGroup, ReplayedDump, replayed
from tests.support.cuts import read_state

if TYPE_CHECKING:
    from tests.support.broker_state import BrokerState

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[4]
DUMPS = ROOT / "tests" / "data" / "dumps"
STORY = DUMPS / "kafka-4.3.1-story"
COMPARED = 18


class OtherDump(NamedTuple):
    """A dump, what its brokers answered, and how many groups and members are compared there."""

    name: str
    release: str
    groups: int
    members: int
    log_dirs: tuple[str, ...] = ("broker-1",)
    state: str = "state.json.gz"

    def __str__(self) -> str:
        return f"{self.name}-{self.log_dirs[0]}"


SURVIVORS, DEAD = ("broker-2", "controller-100"), ("broker-1", "controller-100")
OTHERS = (
    OtherDump("kafka-2.0.1-v1", "2.0.1", 8, 11),
    OtherDump("kafka-3.9.2-classic", "3.9.2", 3, 4),
    OtherDump("kafka-upgrade-2.0.1-to-3.9.2", "3.9.2", 2, 1),
    OtherDump("kafka-4.3.1-failover", "4.3.1", 11, 15, SURVIVORS),
    OtherDump("kafka-4.3.1-failover", "4.3.1", 10, 16, DEAD, "state-before.json.gz"),
)


@pytest.fixture(scope="module")
def story() -> ReplayedDump:
    return replayed([STORY / "broker-1"], "4.3.1")


@pytest.fixture(scope="module")
def now(story: ReplayedDump) -> tuple[ByGroup, ByGroup]:
    return story.now()


@pytest.fixture(scope="module")
def history(story: ReplayedDump) -> ByGroup:
    return story.ever()


def sizes_of(state: BrokerState) -> Mapping[str, list[int]]:
    """What each member of a group has, in numbers, in the broker's own words."""
    held = defaultdict(set)
    for each in state.assignments:
        if each.kind == "current" and each.role in (None, "active"):
            topic = each.subtopology_id or each.topic or each.topic_id
            held[each.group_id, each.member_id].add((topic, each.partition))
    sizes: dict[str, list[int]] = defaultdict(list)
    for member in state.members:
        sizes[member.group_id].append(len(held[member.group_id, member.member_id]))
    return sizes


def hold_against(state: BrokerState, balance: ByGroup) -> tuple[int, set[str]]:
    """Compare the latest rows; return how many members that are, and what changed since."""
    sizes = sizes_of(state)
    epochs = {group.group_id: group.epoch for group in state.groups}
    compared, changed_since = 0, set()
    for group, rows in balance.items():
        row, described = rows[-1], sizes[group]
        if row["verdict"] == "cannot_tell":
            continue
        if epochs[group] not in (None, row["epoch"]):
            changed_since.add(group)
            continue
        compared += len(described)
        figures = (
            row["member_count"],
            row["min_partitions"],
            row["max_partitions"],
            row["idle_members"],
        )
        assert figures == (
            len(described),
            min(described),
            max(described),
            described.count(0),
        ), group
        assert row["mean_partitions"] == pytest.approx(statistics.fmean(described))
        assert row["stddev_partitions"] == pytest.approx(statistics.pstdev(described))
    return compared, changed_since


def test_sizes_are_those_the_broker_described(now: tuple[ByGroup, ByGroup]) -> None:
    state = read_state(STORY / "tools" / "state.json.gz")
    assert hold_against(state, now[0]) == (COMPARED, {"order-workers"})


@pytest.mark.parametrize("dump", OTHERS, ids=str)
def test_sizes_in_other_releases_are_those_their_brokers_described(dump: OtherDump) -> None:
    """Old coordinators, a directory that was upgraded, both lines of a failover."""
    log_dirs = [DUMPS / dump.name / log_dir for log_dir in dump.log_dirs]
    rows, _ = replayed(log_dirs, dump.release).now()
    state = read_state(DUMPS / dump.name / "tools" / dump.state)
    there = {group.group_id for group in state.groups if group.member_count}
    assert rows.keys() <= there
    assert len(rows) == dump.groups
    assert hold_against(state, rows) == (dump.members, set())


def test_an_uneven_group_could_be_more_even(now: tuple[ByGroup, ByGroup]) -> None:
    (row,) = now[0]["ledger-rr"]
    assert (row["verdict"], row["forced"]) == ("avoidable", False)
    assert (row["min_partitions"], row["max_partitions"], row["partition_count"]) == (3, 11, 14)
    assert (row["best_min_partitions"], row["best_max_partitions"]) == (6, 8)
    assert row["cause"] == (
        "6 to 8 each would be possible: roundrobin deals partitions in turn, whatever a member "
        "has already; members want different topics: ledger-audit (8) by 1 of 2"
    )
    tried = {each["assignor"]: each for each in now[1]["ledger-rr"]}
    assert {
        name: (each["min_partitions"], each["max_partitions"], each["moved_partitions"])
        for name, each in tried.items()
    } == {
        "range": (3, 11, 2),
        "roundrobin": (3, 11, 0),
        "sticky": (6, 8, 3),
        "cooperative-sticky": (6, 8, 3),
    }
    assert [each["assignor"] for each in tried.values() if each["is_current"]] == ["roundrobin"]


def test_members_are_idle_by_force_until_their_topic_grows(history: ByGroup) -> None:
    told = [
        (
            row["epoch"],
            row["partition_count"],
            row["idle_members"],
            row["unassigned_partitions"],
            row["forced"],
        )
        for row in history["idle-members"]
    ]
    assert told == [(2, 2, 3, 0, True), (2, 5, 3, 3, False), (3, 5, 0, 0, False)]
    forced, unread, even = history["idle-members"]
    assert (forced["verdict"], forced["cause"]) == (
        "forced",
        "2 partitions for 5 members: 3 must be idle",
    )
    assert (unread["verdict"], unread["cause"]) == (
        "unread",
        "nobody has events-idle 2-4: maybe the topic grew after partitions were assigned",
    )
    assert (even["verdict"], even["cause"]) == ("even", None)
    assert forced["to_timestamp"] == unread["from_timestamp"]
    assert unread["to_timestamp"] == even["from_timestamp"]


def test_every_type_of_group_is_judged(now: tuple[ByGroup, ByGroup], history: ByGroup) -> None:
    assert {rows[0]["group_type"] for rows in now[0].values()} == {
        "classic",
        "consumer",
        "share",
        "streams",
    }
    (streams,) = now[0]["word-count"]
    assert (streams["partition_count"], streams["max_partitions"], streams["verdict"]) == (
        6,
        3,
        "even",
    )
    assert "word-count" not in now[1]
    (share,) = now[0]["order-workers"]
    assert (share["epoch"], share["unassigned_partitions"], share["verdict"]) == (6, 9, "unsettled")
    assert "group epoch 6 is ahead of assignment epoch 5" in share["cause"]
    (regex,) = now[0]["regex-watchers"]
    assert (regex["partition_count"], regex["topic_count"], regex["verdict"]) == (22, 3, "even")
    assert {row["verdict"] for row in history["connect-cluster"]} == {"cannot_tell"}


def test_a_topic_that_is_born_again_leaves_dead_partitions_behind(history: ByGroup) -> None:
    told = [
        (
            row["epoch"],
            row["partition_count"],
            row["max_partitions"],
            row["gone_partitions"],
            row["verdict"],
        )
        for row in history["clicks-modern"]
    ]
    assert told == [
        (2, 4, 4, 0, "even"),
        (2, 0, 0, 4, "forced"),
        (2, 2, 0, 4, "unread"),
        (3, 2, 2, 0, "even"),
    ]


def test_what_cooperative_sticky_hands_over_is_on_its_way(history: ByGroup) -> None:
    row = next(
        each for each in history["migrating-app"] if "between owners" in (each["cause"] or "")
    )
    assert (row["verdict"], row["unassigned_partitions"]) == ("unsettled", 2)


def test_rows_hold_together(history: ByGroup) -> None:
    for rows in history.values():
        for row in rows:
            assert row["verdict"] in balance_rules().verdicts
            if row["verdict"] == "cannot_tell":
                continue
            assert row["min_partitions"] <= row["mean_partitions"] <= row["max_partitions"]
            assert (row["score"] is None) == (row["verdict"] == "unsettled")
            assert row["score"] is None or 0 <= row["score"] <= 100
            assert not (row["forced"] and row["unassigned_partitions"])
