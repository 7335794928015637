"""The client-side assignment proposal: "Other Interesting Cases", "Rolling Upgrades", and failures.

Each section's event as the records that a coordinator leaves of it, and what is said of them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from analytics.questions.rebalances.causes import causes
from analytics.replay.log.losses import Coverage
from schemas.evaluation_rules import coordinator_failures, rebalance_causes, rebalance_rules
from schemas.reading import words_of
from tests.support.contract_rows import rows_of

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
PLACE = {"coordinator_partition": 4, "group_id": "g", "life": 1, "group_type": "classic"}
NOBODY: dict[str, list[str]] = {
    name: [] for name in ("joined", "left", "restarted", "fenced", "subscription_changed")
}


def epoch(number: int, **more: Any) -> dict[str, Any]:
    """Return an epoch with the columns of `group_epochs` and of `rebalances`."""
    at = NOON + timedelta(minutes=number)
    said = {
        "epoch": number, "from_offset": number * 10, "at": at, "from_timestamp": at,
        "state": "Stable", "protocol_type": "consumer", "protocol": "range", "leader": "m1",
        "member_count": 2, "partitions_assigned": 4, "complete": True,
        "missing_is_compacted": False, "missing_before": 0, "stored_again": 0,
    }  # fmt: skip
    return {**PLACE, **NOBODY, **said, **more}


def owned(topic: str, partition: int, since: int, **more: Any) -> dict[str, Any]:
    said = {"kind": "current", "topic": topic, "partition": partition, "from_epoch": since}
    return {**PLACE, "member_id": "m1", "from_is_bound": False, **said, **more}


def told(
    *epochs: dict[str, Any], held: tuple[dict[str, Any], ...] = ()
) -> list[tuple[str, str | None, bool]]:
    """Return the causes of the last epoch."""
    rows = causes(
        rows_of("rebalances", epochs),
        rows_of("group_epochs", epochs),
        rows_of("assignment_history", held),
    ).to_dicts()
    assert {row["cause"] for row in rows} <= rebalance_causes().keys()
    last = epochs[-1]["from_offset"]
    return [
        (row["cause"], row["detail"], row["is_told"]) for row in rows if row["from_offset"] == last
    ]


def words(*epochs: dict[str, Any], **more: Any) -> list[str]:
    return [cause for cause, _, _ in told(*epochs, **more)]


def test_that_nothing_is_recorded_is_not_told_where_a_join_may_have_been_then() -> None:
    """`rebalances` leaves out who may have been there long before its first record."""
    epochs = (epoch(1), epoch(2), epoch(3))
    joined = {**PLACE, "epoch": 2, "member_id": "m2", "change": "joined"}
    rows = causes(
        rows_of("rebalances", epochs),
        rows_of("group_epochs", epochs),
        rows_of("assignment_history", ()),
        doubtful=rows_of("membership_changes", [{**joined, "before_is_compacted": True}]),
    ).to_dicts()
    assert {row["cause"] for row in rows} == {"none_recorded"}
    assert {row["epoch"]: row["is_told"] for row in rows} == {1: True, 2: False, 3: True}


class TestLeaderFailures:
    """A leader failure makes all members rejoin, which allows a new leader."""

    def test_the_leader_leaves_and_another_one_follows(self) -> None:
        found = told(epoch(1), epoch(2, left=["m1"], leader="m2", member_count=1))
        assert found == [
            ("leader_lost", "m1; the leader is m2 now", True),
            ("members_changed", "left or timed out: m1", True),
        ]

    def test_another_member_that_leaves_is_not_the_leader(self) -> None:
        assert words(epoch(1), epoch(2, left=["m2"])) == ["members_changed"]

    def test_a_static_leader_that_is_fenced_is_lost_and_one_that_restarts_is_not(self) -> None:
        assert "leader_lost" in words(epoch(1), epoch(2, fenced=["m1"], leader="m2"))
        assert words(epoch(1), epoch(2, restarted=["m9"], leader="m9")) == ["members_changed"]

    def test_the_last_member_is_no_leader_of_anybody(self) -> None:
        empty = epoch(2, left=["m1"], leader=None, state="Empty", member_count=0, protocol=None)
        assert words(epoch(1), empty) == ["members_changed"]

    def test_generations_without_record_may_have_had_other_leaders(self) -> None:
        for lacking in ({"missing_before": 1}, {"complete": False}, {"missing_is_compacted": True}):
            found = told(epoch(1), epoch(3, left=["m1"], leader="m2", **lacking))
            assert found[0][::2] == ("leader_lost", False)

    def test_another_life_has_its_own_leader(self) -> None:
        assert "leader_lost" not in words(epoch(1), epoch(2, left=["m1"], leader="m2", life=2))

    def test_consumer_groups_have_none(self) -> None:
        rows = [epoch(n, group_type="consumer", leader=None) for n in (1, 2)]
        assert words(rows[0], {**rows[1], "left": ["m1"]}) == ["members_changed"]


class TestRollingUpgrades:
    """The text: the coordinator takes the old strategy until all members have the new one."""

    def test_the_new_strategy_is_taken_with_the_last_member(self) -> None:
        upgrade = [
            epoch(1),
            epoch(2, left=["m1"], leader="m2"),
            epoch(3, joined=["m3"], leader="m2"),
            epoch(4, left=["m2"], leader="m3"),
            epoch(5, joined=["m4"], leader="m3", protocol="cooperative-sticky"),
        ]
        for end in range(2, 5):
            assert "protocol_switch" not in words(*upgrade[:end])
        assert told(*upgrade)[0] == ("protocol_switch", "range to cooperative-sticky", True)

    def test_an_empty_group_has_none_to_switch_from(self) -> None:
        empty = epoch(1, protocol=None, leader=None, state="Empty", member_count=0)
        assert words(empty, epoch(2, joined=["m1"])) == ["members_changed"]


class TestTopicMetadataChange:
    """The text: The leader is responsible for detecting topic metadata changes."""

    HELD = (owned("t", 0, 1), owned("t", 1, 1), owned("u", 0, 1))

    def test_partitions_beyond_all_others_are_new(self) -> None:
        held = (*self.HELD, owned("t", 2, 2), owned("t", 3, 2))
        assert told(epoch(1), epoch(2), held=held) == [
            ("topic_grew", "t has partitions 2, 3 now", True)
        ]

    def test_a_topic_that_is_new_to_the_group_did_not_grow(self) -> None:
        held = (*self.HELD, owned("w", 0, 2), owned("w", 1, 2))
        changed = epoch(2, subscription_changed=["m1"])
        assert words(epoch(1), changed, held=held) == ["subscription_changed"]

    def test_partitions_that_move_did_not_grow(self) -> None:
        held = (*self.HELD, owned("t", 1, 2, member_id="m2"), owned("t", 0, 2, member_id="m3"))
        assert words(epoch(1), epoch(2), held=held) == ["none_recorded"]

    def test_a_partition_below_others_was_only_not_assigned(self) -> None:
        held = (owned("t", 1, 1), owned("t", 0, 2))
        assert words(epoch(1), epoch(2), held=held) == ["none_recorded"]

    def test_what_may_have_been_there_before_did_not_surely_grow(self) -> None:
        held = (*self.HELD, owned("t", 2, 2, from_is_bound=True))
        # Nor that it did not.
        assert told(epoch(1), epoch(2), held=held) == [("none_recorded", None, False)]
        below = (*self.HELD, owned("t", 0, 2, from_is_bound=True))
        assert told(epoch(1), epoch(2), held=below) == [("none_recorded", None, True)]
        held = (*self.HELD, owned("t", 2, 2))
        found = told(epoch(1), epoch(2, missing_is_compacted=True), held=held)
        assert found == [("topic_grew", "t has partition 2 now", False)]

    def test_of_consumer_groups_targets_count_and_not_what_members_have_already(self) -> None:
        rows = [epoch(n, group_type="consumer", leader=None) for n in (1, 2)]
        held = [{**each, "group_type": "consumer", "kind": "target"} for each in self.HELD]
        late = {**owned("t", 2, 2), "group_type": "consumer"}
        assert words(*rows, held=(*held, late)) == ["none_recorded"]
        assert words(*rows, held=(*held, {**late, "kind": "target"})) == ["topic_grew"]


class TestAssignmentFailure:
    """The text forwards an assignment failure to the broker; what shipped stores nothing of it."""

    def test_generations_that_were_joined_and_not_synced_may_be_one(self) -> None:
        assert told(epoch(1), epoch(3, missing_before=1)) == [
            ("not_synced", "1 generations left no record", False)
        ]

    def test_so_may_an_assignment_of_nothing(self) -> None:
        assert told(epoch(1), epoch(2, partitions_assigned=0)) == [
            ("nothing_assigned", "2 members", False)
        ]
        for other in (
            {"partitions_assigned": None},
            {"partitions_assigned": 0, "protocol_type": "connect"},
            {"partitions_assigned": 0, "group_type": "consumer"},
        ):
            assert words(epoch(1), epoch(2, **other)) == ["none_recorded"]


class TestSubscriptionChange:
    """The text: a member that changes its subscription makes the group rejoin."""

    def test_who_changed_it_is_named(self) -> None:
        assert told(epoch(1), epoch(2, subscription_changed=["m1", "m2"])) == [
            ("subscription_changed", "m1, m2", True)
        ]


class TestHandlingCoordinatorFailures:
    """The four cases, by what had been persisted."""

    @pytest.mark.parametrize(
        ("change", "cases"),
        [
            # The next coordinator returns the members' state at once.
            ("synced", [4]),
            # What shipped does not store generations before their sync: 1 and 2 look alike.
            ("empty", [1, 2]),
            ("unsynced", [1, 2, 3]),
            ("stored_again", [3, 4]),
            ("kept", []),
        ],
    )
    def test_what_each_leaves(self, change: str, cases: list[int]) -> None:
        ((cause, detail, is_told),) = told(epoch(1), epoch(2, coordinator_change=change))
        assert cause == "coordinator_changed"
        assert detail == coordinator_failures()[change].leaves
        assert coordinator_failures()[change].cases == cases
        # Where several leave the same, nobody can tell which it was.
        assert is_told == (len(cases) <= 1)

    def test_every_word_for_a_change_of_the_coordinator_is_explained(self) -> None:
        explained = words_of(rebalance_rules().coordinator_changes)
        assert coordinator_failures().keys() == explained.keys()


def test_an_epoch_without_any_trace_of_a_cause_says_so() -> None:
    assert told(epoch(1), epoch(2)) == [("none_recorded", None, True)]
    assert told(epoch(1), epoch(2, complete=False)) == [("none_recorded", None, False)]


def test_after_the_cleaner_that_nothing_is_recorded_is_not_told() -> None:
    """What compaction took since the epoch before may have been the cause."""
    epochs = rows_of("group_epochs", [epoch(1), epoch(2), epoch(3)])
    rebalances = rows_of("rebalances", [epoch(1), epoch(2), epoch(3)])
    held = rows_of("assignment_history", ())

    def found(compacted: int) -> list[tuple[int, bool]]:
        coverage = Coverage(uncompacted_from={("__consumer_offsets", 4): compacted})
        rows = causes(rebalances, epochs, held, coverage)
        assert set(rows["cause"]) == {"none_recorded"}
        return rows.select("epoch", "is_told").rows()

    assert found(0) == [(1, True), (2, True), (3, True)]
    assert found(15) == [(1, False), (2, False), (3, True)]
    assert found(40) == [(1, False), (2, False), (3, False)]
