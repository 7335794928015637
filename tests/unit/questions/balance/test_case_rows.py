"""From rows of tables to the case that is judged."""

from __future__ import annotations

from typing import Any

from analytics.questions.balance.case import case_of


def member(name: str, wants: list[str] | None, **about: Any) -> dict[str, Any]:
    return {
        "member_id": name,
        "group_instance_id": None,
        "rack_id": None,
        "member_epoch": 4,
        "state": "STABLE",
        "unread": None,
        "wants": wants,
        "has": [],
        **about,
    }


def topic(
    name: str, partitions: int | None, by: str = "metadata_log", **about: Any
) -> dict[str, Any]:
    return {
        "topic": name,
        "topic_id": None,
        "partitions": partitions,
        "counted_by": by,
        "assignable": None,
        **about,
    }


def row(
    members: list[dict[str, Any]], topics: list[dict[str, Any]], **about: Any
) -> dict[str, Any]:
    return {
        "group_id": "g",
        "group_type": "consumer",
        "epoch": 4,
        "assignment_epoch": 4,
        "protocol_type": "consumer",
        "protocol": "uniform",
        "unread": None,
        "is_whole": True,
        "members": members,
        "topics": topics,
        **about,
    }


def test_the_weakest_source_of_a_wanted_count_is_named() -> None:
    topics = [topic("a", 3), topic("b", 2, "seen"), topic("c", 1, "unknown")]
    case = case_of(row([member("m", ["a", "b"])], topics))
    assert (case.counted_by, case.unknown) == ("seen", ())
    assert dict(case.group.topics) == {"a": 3, "b": 2, "c": 1}


def test_what_the_metadata_log_does_not_list_does_not_exist() -> None:
    case = case_of(row([member("m", ["a", "b"])], [topic("a", 3)]))
    assert (case.unknown, case.group.members[0].subscription) == ((), frozenset({"a"}))


def test_without_that_log_it_is_not_known() -> None:
    case = case_of(row([member("m", ["a", "b"])], [topic("a", 3, "side_file")], is_whole=False))
    assert (case.unknown, case.counted_by) == (("b",), "unknown")


def test_what_is_held_of_a_topic_nobody_counts_is_gone_only_where_the_log_would_tell() -> None:
    held = [{"topic": "id-of-a", "partitions": [0, 4]}]
    with_log = case_of(row([member("m", [], has=held)], []))
    without = case_of(row([member("m", [], has=held)], [], is_whole=False))
    assert (with_log.partitions_of_deleted(), without.partitions_of_deleted()) == (2, 0)
    assert (with_log.sizes(), without.sizes()) == ({"m": 0}, {"m": 2})


def test_an_epoch_without_an_assignment_is_told() -> None:
    case = case_of(row([member("m", ["a"])], [topic("a", 1)], epoch=6))
    assert case.unsettled == (
        "group epoch 6 is ahead of assignment epoch 4: nothing has been assigned since"
    )


def test_members_that_are_behind_are_counted() -> None:
    members = [
        member("m", ["a"]),
        member("n", ["a"], member_epoch=3),
        member("o", ["a"], state="UNREVOKED_PARTITIONS"),
    ]
    case = case_of(row(members, [topic("a", 1)]))
    assert case.unsettled == "2 members of 3 have yet to take up epoch 4"
    classic = case_of(row(members, [topic("a", 1)], group_type="classic", assignment_epoch=None))
    assert classic.unsettled is None


def test_members_of_other_protocols_and_subscriptions_that_are_lost_cannot_be_read() -> None:
    connect = case_of(row([member("m", None)], [], group_type="classic", protocol_type="connect"))
    assert connect.unreadable == (
        "not a consumer group (connect): what its members share is not known"
    )
    lost = case_of(row([member("m", None), member("n", [])], []))
    assert lost.unreadable == "what 1 member subscribed to cannot be read or is not in the dump"


def test_an_assignment_or_a_group_that_is_not_all_there_cannot_be_read() -> None:
    members = [member("m", ["a"], unread="9 bytes"), member("n", ["a"])]
    assert case_of(row(members, [topic("a", 1)])).unreadable == (
        "what 1 member has cannot be read: 9 bytes"
    )
    lost = case_of(row([member("m", ["a"])], [topic("a", 1)], unread="records are missing"))
    assert lost.unreadable == "records are missing"


def test_a_share_group_may_be_given_what_is_initialized() -> None:
    topics = [topic("a", 3, assignable=[0, 2]), topic("b", 1)]
    share = case_of(row([member("m", ["a", "b"])], topics, group_type="share"))
    assert share.group.assignable == {"a": {0, 2}, "b": frozenset()}
    assert (
        case_of(row([member("m", ["b"])], [topic("b", 1)], group_type="share")).group.assignable
        is None
    )


def test_topic_ids_are_the_two_halves_of_their_uuid() -> None:
    topics = [topic("a", 1, topic_id="AAAAAAAAAAAAAAAAAAAAAQ")]
    assert case_of(row([member("m", ["a"])], topics)).group.topic_ids == {"a": (0, 1)}
