"""Every reason an offset is not given back for, one case each, and those that are."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import polars as pl
import pytest

from analytics.questions.diff.changes import INCOMPLETE_GROUPS
from analytics.questions.restore.plan import (
    UNCLEAN,
    DataLog,
    State,
    restore_plan,
    share_plan,
)

COMMITTED_AT = datetime(2026, 11, 21, 9, tzinfo=UTC)
LATER = datetime(2026, 11, 21, 10, tzinfo=UTC)
COMMITTED: Final = pl.Schema(
    {
        "group_id": pl.String(),
        "topic": pl.String(),
        "partition": pl.Int32(),
        "committed_offset": pl.Int64(),
        "committed_leader_epoch": pl.Int32(),
        "commit_timestamp": pl.Datetime("us", "UTC"),
        "via": pl.String(),
        "missing": pl.String(),
    }
)
PENDING: Final = pl.Schema(
    {
        "group_id": pl.String(),
        "topic": pl.String(),
        "partition": pl.Int32(),
        "transactional_id": pl.String(),
        "missing": pl.String(),
    }
)
TOPICS: Final = pl.Schema(
    {
        "topic": pl.String(),
        "topic_id": pl.String(),
        "partitions": pl.Int32(),
        "has_several_ids": pl.Boolean(),
        "is_only_named": pl.Boolean(),
    }
)
UNFIT: Final = pl.Schema({"group_id": pl.String(), "unfit": pl.String()})
A, T = "A" * 22, ("g", "t", 0)


def offsets(*rows: tuple[str, str, int, int], epoch: int | None = None) -> pl.DataFrame:
    named = [
        dict(zip(COMMITTED, (*row, epoch, COMMITTED_AT, "plain", None), strict=True))
        for row in rows
    ]
    return pl.DataFrame(named, COMMITTED)


def topics(topic_id: str | None, partitions: int, *, several: bool = False) -> pl.DataFrame:
    row = {"topic": "t", "topic_id": topic_id, "partitions": partitions, "has_several_ids": several}
    return pl.DataFrame([row], TOPICS)


def state(committed: pl.DataFrame, **others: Any) -> State:
    return State(
        committed=committed,
        pending=PENDING.to_frame(),
        topics=topics(A, 3),
        incomplete_groups=INCOMPLETE_GROUPS.to_frame(),
        **others,
    )


THEN = state(offsets((*T, 50)))
NOW = state(offsets((*T, 20)), knows_topics=True)


def judged(
    then: State = THEN,
    now: State = NOW,
    unfit: pl.DataFrame | None = None,
    unclean: pl.DataFrame | None = None,
    *,
    include_live: bool = False,
) -> list[dict[str, Any]]:
    plan = restore_plan(
        then,
        now,
        UNFIT.to_frame() if unfit is None else unfit,
        UNCLEAN.to_frame() if unclean is None else unclean,
        include_live=include_live,
    )
    return plan.to_dicts()


def pending(owner: str, missing: str | None = None) -> pl.DataFrame:
    return pl.DataFrame([dict(zip(PENDING, (*T, owner, missing), strict=True))], PENDING)


def incomplete(reason: str) -> pl.DataFrame:
    return pl.DataFrame({"group_id": ["g"], "reason": [reason]}, INCOMPLETE_GROUPS)


def log(start: int | None, end: int, *epochs: tuple[int, int]) -> dict[tuple[str, int], DataLog]:
    return {("t", 0): DataLog(start, end, epochs)}


def unclean(*elections: tuple[datetime | None, datetime]) -> pl.DataFrame:
    rows = [
        {"topic": "t", "partition": 0, "in_sync_until": until, "unclean_at": at}
        for until, at in elections
    ]
    return pl.DataFrame(rows, UNCLEAN)


UNCLEAN_T0 = unclean((None, LATER))


def test_an_offset_that_went_back_or_vanished_is_given_back() -> None:
    now = replace(NOW, committed=offsets((*T, 20)))
    then = replace(THEN, committed=offsets((*T, 50), ("g", "t", 1, 7), ("h", "t", 2, 0)))
    assert [(row["verdict"], row["difference"]) for row in judged(then, now)] == [
        ("restore", 30),
        ("restore", None),
        ("restore", None),
    ]


def test_an_offset_that_a_lost_record_may_have_changed_is_refused() -> None:
    def lacking(committed: pl.DataFrame) -> pl.DataFrame:
        return committed.with_columns(missing=pl.lit("a segment is missing"))

    (row,) = judged(replace(THEN, committed=lacking(offsets((*T, 50)))))
    assert (row["verdict"], row["reason"]) == ("refused", "incomplete")
    assert row["detail"] == "cannot tell what it was: a segment is missing"
    (row,) = judged(now=replace(NOW, committed=lacking(offsets((*T, 50)))))
    assert (row["verdict"], row["reason"]) == ("refused", "present_unknown")


def test_an_offset_that_is_there_already_is_left_alone() -> None:
    now = replace(NOW, committed=offsets((*T, 50)), logs=log(0, 10))
    (row,) = judged(THEN, now)
    assert (row["verdict"], row["reason"]) == ("unchanged", None)


REFUSALS = {
    "moved_on": (THEN, replace(NOW, committed=offsets((*T, 60)))),
    "incomplete": (replace(THEN, incomplete_groups=incomplete("records are missing")), NOW),
    "present_unknown": (THEN, replace(NOW, incomplete_groups=incomplete("no copy of it"))),
    "pending_transaction": (replace(THEN, pending=pending("tx-1")), NOW),
    "topic_id_changed": (THEN, replace(NOW, topics=topics("B" * 22, 3))),
    "topic_gone": (THEN, replace(NOW, topics=TOPICS.to_frame())),
    "below_log_start": (THEN, replace(NOW, logs=log(51, 90))),
    "above_log_end": (THEN, replace(NOW, logs=log(0, 49))),
    # Epoch 1 ends at 40 in the present log: 40 to 49 were read from another one.
    "data_diverged": (
        replace(THEN, committed=offsets((*T, 50), epoch=1)),
        replace(NOW, logs=log(0, 90, (1, 0), (3, 40))),
    ),
}


@pytest.mark.parametrize("reason", REFUSALS)
def test_each_reason_alone_refuses_with_its_word_and_a_sentence(reason: str) -> None:
    (row,) = judged(*REFUSALS[reason])
    assert (row["verdict"], row["reason"]) == ("refused", reason)
    assert row["detail"]


@pytest.mark.parametrize("knows_topics", [False, True])
def test_a_topic_of_which_nothing_tells_the_id_it_has_now_is_not_trusted(
    knows_topics: bool,
) -> None:
    now = replace(NOW, topics=topics(None, 3, several=True), knows_topics=knows_topics)
    (row,) = judged(THEN, now)
    assert (row["verdict"], row["reason"]) == ("refused", "topic_id_changed")
    assert row["detail"] == "the topic was created again: cannot tell which of its ids it has now"


def test_what_the_sentences_name() -> None:
    details = {reason: judged(*sides)[0]["detail"] for reason, sides in REFUSALS.items()}
    assert details["moved_on"] == (
        "the group has since committed 60 (2026-11-21T09:00:00.000Z): this would rewind it"
    )
    assert details["pending_transaction"] == "a transaction is pending on it then (tx-1)"
    assert details["above_log_end"] == "the log ends at offset 49"
    assert details["data_diverged"] == (
        "leader epoch 1 ends at offset 40 of the present log: the records before 50 are others now"
    )


@pytest.mark.parametrize(("offset", "verdict"), [(40, "restore"), (41, "refused"), (90, "refused")])
def test_without_a_committed_epoch_the_two_lines_of_the_data_are_compared(
    offset: int, verdict: str
) -> None:
    then = replace(THEN, committed=offsets((*T, offset)), logs=log(0, 95, (1, 0), (2, 40)))
    now = replace(NOW, logs=log(0, 100, (1, 0), (3, 40)))
    (row,) = judged(then, now)
    assert row["verdict"] == verdict
    assert row["reason"] == (None if verdict == "restore" else "data_diverged")


def test_an_unclean_election_that_nothing_explains_is_no_ground_to_trust_the_log() -> None:
    (row,) = judged(unclean=UNCLEAN_T0)
    assert row["reason"] == "data_uncertain"
    (row,) = judged(
        replace(THEN, committed=offsets((*T, 50), epoch=1)),
        replace(NOW, logs=log(0, 100, (1, 0), (2, 60))),
        unclean=UNCLEAN_T0,
    )
    assert row["verdict"] == "restore"


SOON = COMMITTED_AT + timedelta(seconds=5)
EARLIER = COMMITTED_AT - timedelta(hours=1)
ELECTIONS: dict[str, tuple[tuple[tuple[datetime | None, datetime], ...], str]] = {
    "the elected broker was in sync when it was committed": (((SOON, LATER),), "restore"),
    "it had left before": (((EARLIER, LATER),), "refused"),
    "it left within what clocks may differ by": (
        ((COMMITTED_AT + timedelta(milliseconds=500), LATER),),
        "refused",
    ),
    "nothing vouches for it": (((None, LATER),), "refused"),
    "the election was before": (((None, EARLIER),), "restore"),
    "one of two later ones had left before": (
        ((SOON, LATER), (EARLIER, LATER + timedelta(hours=1))),
        "refused",
    ),
}


@pytest.mark.parametrize("name", ELECTIONS)
def test_what_was_committed_while_the_elected_broker_was_in_sync_is_on_its_disk(name: str) -> None:
    elections, verdict = ELECTIONS[name]
    (row,) = judged(unclean=unclean(*elections))
    reason = None if verdict == "restore" else "data_uncertain"
    assert (row["verdict"], row["reason"]) == (verdict, reason)


def test_nothing_lies_before_offset_0() -> None:
    (row,) = judged(
        replace(THEN, committed=offsets((*T, 0))), unclean=UNCLEAN_T0, include_live=True
    )
    assert row["verdict"] == "restore"


def test_a_present_that_cannot_be_told_is_not_said() -> None:
    now = replace(NOW, committed=offsets((*T, 60)), incomplete_groups=incomplete("a log is absent"))
    (row,) = judged(now=now)
    assert (row["reason"], row["present_offset"], row["difference"]) == (
        *("present_unknown", None, None),
    )


def test_include_live_rewinds_but_does_nothing_else() -> None:
    for reason, sides in REFUSALS.items():
        (row,) = judged(*sides, include_live=True)
        is_lifted = reason in {"moved_on", "present_unknown"}
        assert row["verdict"] == ("restore" if is_lifted else "refused"), reason


def test_several_reasons_stand_beside_each_other() -> None:
    now = replace(NOW, committed=offsets((*T, 60)), logs=log(0, 49), pending=pending("tx-1"))
    unfit = pl.DataFrame({"group_id": ["g"], "unfit": ["it is a share group now"]}, UNFIT)
    (row,) = judged(now=now, unfit=unfit)
    assert row["reason"] == "moved_on; pending_transaction; unfit_group; above_log_end"
    assert row["detail"].count("; ") == 3


def test_what_cannot_be_told_is_refused_even_where_the_offsets_are_equal() -> None:
    now = replace(NOW, committed=offsets((*T, 50)))
    (row,) = judged(replace(THEN, incomplete_groups=incomplete("records are missing")), now)
    assert (row["verdict"], row["reason"]) == ("refused", "incomplete")


def test_an_offset_that_was_pending_alone_is_refused_too() -> None:
    then = replace(THEN, committed=offsets(("g", "t", 1, 5)), pending=pending("tx-1"))
    rows = {row["partition"]: row for row in judged(then)}
    assert (rows[0]["reason"], rows[0]["committed_offset"]) == ("pending_transaction", None)
    assert rows[0]["present_offset"] == 20
    assert rows[1]["verdict"] == "restore"


def test_a_pending_offset_that_a_lost_marker_may_have_committed_cannot_be_told() -> None:
    then = replace(THEN, committed=offsets(("g", "t", 1, 5)), pending=pending("tx-1", "a marker"))
    (row,) = (each for each in judged(then) if each["partition"] == 0)
    assert row["reason"] == "incomplete; pending_transaction"
    assert row["detail"].startswith("cannot tell what it was: a marker; ")
    now = replace(NOW, pending=pending("tx-1", "a marker"))
    (row,) = (
        each
        for each in judged(replace(then, pending=pending("tx-1")), now)
        if each["partition"] == 0
    )
    assert row["reason"] == "present_unknown; pending_transaction"


def test_a_name_that_no_topic_can_have_does_not_reach_a_file() -> None:
    (row,) = judged(replace(THEN, committed=offsets(("g", 'a,0,1\n"b', 0, 5))))
    assert "unfit_name" in row["reason"]


def test_share_groups_are_refused_partition_by_partition() -> None:
    schema = pl.Schema(
        {
            "group_id": pl.String(),
            "topic": pl.String(),
            "partition": pl.Int32(),
            "start_offset": pl.Int64(),
        }
    )
    shares = pl.DataFrame(
        [{"group_id": "s", "topic": "t", "partition": 0, "start_offset": 7}], schema
    )
    (row,) = share_plan(shares, schema.to_frame()).to_dicts()
    assert (row["verdict"], row["reason"], row["committed_offset"]) == ("refused", "share_group", 7)


def test_no_offsets_make_an_empty_plan() -> None:
    empty = replace(THEN, committed=COMMITTED.to_frame())
    assert judged(empty) == []
    assert len(judged(THEN, replace(NOW, committed=COMMITTED.to_frame()))) == 1
