"""What took an offset away or back is told whatever the group committed afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.questions.timeline.history import TWO_WRITERS, WHOSE_OF
from analytics.questions.timeline.history import happenings as happenings_in
from analytics.questions.timeline.words import OF_CAUSE
from tests.support.offset_changes import HOME, change, history, minute

OLD, NEW = "CR5CrWzdSPKR1lSAstXFdw", "vIB_tJT3R_6WKBINnepBgQ"


def happenings(*changes: dict[str, Any]) -> list[dict[str, Any]]:
    return happenings_in(history(*changes)).to_dicts()


def only(*changes: dict[str, Any]) -> dict[str, Any]:
    (row,) = happenings(*changes)
    return row


def deletion(at: int, cause: str, previous: int = 500) -> dict[str, Any]:
    return change(at, None, previous=previous, cause=cause, confidence="high")


@pytest.mark.parametrize(("cause", "verdict"), OF_CAUSE.items())
def test_a_deletion_is_named_by_its_cause_with_its_record(cause: str, verdict: str) -> None:
    row = only(deletion(7, cause))
    assert (row["verdict"], row["at"], row["confidence"]) == (verdict, minute(7), "high")
    assert row["record"] == f"__consumer_offsets-{HOME}@7"
    assert (row["was"], row["became"], row["cost"]) == (500, None, None)


def test_a_group_that_began_anew_reads_again_what_lies_between() -> None:
    row = only(deletion(7, "expiration"), change(9, 20))
    assert (row["verdict"], row["was"], row["became"], row["cost"]) == ("expired", 500, None, 480)
    assert row["reason"] == "then 20 was committed"


def test_a_group_that_went_on_further_on_has_perhaps_skipped_nothing() -> None:
    row = only(deletion(7, "offsets_deleted"), change(9, 600))
    assert (row["was"], row["became"], row["cost"]) == (500, None, None)
    assert row["reason"] == "then 600 was committed"


def test_after_the_deletion_of_a_topic_the_records_are_others() -> None:
    row = only(deletion(7, "topic_deleted"), change(9, 20))
    assert (row["became"], row["cost"]) == (None, None)


def test_every_one_of_several_is_told() -> None:
    rows = happenings(
        change(1, 500),
        deletion(2, "expiration"),
        change(3, 80),
        change(4, 30, previous=80, cause="rewound_by_member", confidence="high"),
        change(5, 900, previous=30),
    )
    told = {(row["verdict"], row["was"], row["became"], row["cost"]) for row in rows}
    assert told == {("expired", 500, None, 420), ("rewound_by_member", 80, 30, 50)}


def test_a_step_back_whose_cause_is_not_known_cannot_be_told() -> None:
    row = only(change(4, 30, previous=80, cause="unknown", confidence="low"))
    assert (row["verdict"], row["cost"]) == ("cannot_tell", 50)
    assert "does not show who" in row["reason"]


def test_a_change_whose_predecessor_is_not_known_is_no_step_back() -> None:
    assert happenings(change(4, 30, complete=False, missing="records are lost")) == []


def test_an_aborted_transaction_changed_nothing() -> None:
    aborted = change(4, 30, event="transaction_abort", previous=80)
    assert happenings(change(1, 80), aborted) == []


def test_a_commit_for_a_topic_created_again_is_told_though_it_is_further_on() -> None:
    row = only(change(1, 50, topic_id=OLD), change(2, 70, previous=50, topic_id=NEW))
    assert row["verdict"] == "topic_recreated"
    assert (row["was"], row["became"], row["cost"]) == (50, 70, None)
    assert row["reason"] == f"id {OLD} became {NEW}"


def test_ids_that_are_not_named_say_nothing() -> None:
    rows = [change(1, 50, topic_id=OLD), change(2, 70, previous=50), change(3, 70, topic_id=OLD)]
    assert happenings(*rows) == []


def steps_back(*offsets: int, members: int | None) -> list[dict[str, Any]]:
    """Return commits in this order, as a group of so many members makes them."""
    changes, previous = [], None
    for at, offset in enumerate(offsets):
        more: dict[str, Any] = {"group_members": members, "previous": previous}
        if previous is not None and offset < previous:
            more |= {"cause": "rewound_by_member", "confidence": "medium"}
        changes.append(change(at, offset, **more))
        previous = offset
    return changes


def reasons(changes: list[dict[str, Any]]) -> set[str | None]:
    return {each["reason"] for each in happenings(*changes)}


def test_steps_back_to_one_offset_while_others_go_on_are_those_of_two_writers() -> None:
    (reason,) = reasons(steps_back(105, 100, 110, 100, 115, 100, members=2))
    assert reason == TWO_WRITERS.format(3, 100)


def test_who_of_several_members_committed_is_not_known() -> None:
    for offsets in ((105, 100, 110), (105, 100, 110, 101, 111)):
        assert reasons(steps_back(*offsets, members=3)) == {WHOSE_OF.format(3)}
    # Going over the same records again is no second writer.
    assert reasons(steps_back(105, 100, 105, 100, members=2)) == {WHOSE_OF.format(2)}


def test_a_group_of_one_member_has_one_writer() -> None:
    assert reasons(steps_back(105, 100, 110, 100, members=1)) == {None}


def test_what_a_deletion_removed_took_effect_when_the_change_before_it_did() -> None:
    # One marker put two commits of a transaction in force; the later of the records counts.
    pending = {"event": "transaction_commit", "effective_offset": 5}
    changes = [change(3, 80, **pending), change(4, 90, previous=80, **pending)]
    row = only(*changes, deletion(7, "expiration", previous=90))
    assert row["committed_at"] == minute(4)
    row = only(*changes, deletion(7, "expiration", previous=50))
    assert row["committed_at"] is None


def test_a_commit_below_zero_leaves_none() -> None:
    row = only(change(4, None, event="commit", previous=80, stored_offset=-1))
    assert (row["verdict"], row["was"], row["became"]) == (*("offset_below_zero", 80, None),)
    assert row["reason"].startswith("-1 is no offset to Kafka's clients")


def test_what_another_partition_committed_next_is_not_the_next_of_this_one() -> None:
    row = only(deletion(7, "expiration"), change(9, 20, partition=1))
    assert (row["partition"], row["cost"], row["reason"]) == (0, None, None)
