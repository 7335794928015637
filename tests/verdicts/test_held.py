"""What holds commands against the truth finds what is wrong, and takes no excuse for it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.verdicts.changes import hold_diff, hold_restore
from tests.verdicts.findings import hold_findings
from tests.verdicts.happened import EXPIRED, LOST, Happening
from tests.verdicts.held import CANNOT_TELL, RIGHT, WRONG, Told, hold_timeline
from tests.verdicts.states import hold_list, hold_offsets, hold_removals
from tests.verdicts.truth import Truth

KEY = ("orders-app", "orders", 0)
OTHER = ("orders-app", "orders", 1)
SECOND = 1_795_252_000_000
AT = "2026-11-21T09:06:40.000Z"
LATER = "2026-11-21T09:07:40.000Z"
NOTHING: dict[str, Any] = {
    "staged": [],
    "ever": [],
    "deleted_records": [],
    "groups_lost": [],
    "groups_deleted": {},
}


def _truth(*happenings: Happening) -> Truth:
    told = {**NOTHING, "dump": "made up", "witnessed": [KEY[0]], "end": [[*OTHER, 7]]}
    return Truth("made up", told).with_happenings(list(happenings))


def _row(verdict: str, **more: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("at", "was", "became", "confidence"))
    return {"group_id": KEY[0], "topic": KEY[1], "partition": KEY[2], "verdict": verdict} | (
        nothing | more
    )


LOSS = Happening(KEY, LOST, (SECOND, SECOND), frozenset({180}), frozenset({0}))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (_row("lost_by_election", at=AT, was=180, became=0), {RIGHT: 2}),
        (_row("lost_by_election", at=AT, was=180, became=0, cost=180), {RIGHT: 2}),
        (_row("lost_by_election", at=AT, was=180, became=0, cost=175), {WRONG: 2}),
        (_row("lost_by_election", at=AT, was=180, became=5), {WRONG: 2}),
        (_row("lost_by_election", at=AT, was=175, became=0), {WRONG: 2}),
        (_row("lost_by_election", at=LATER, was=180, became=0), {WRONG: 2}),
        (_row("expired", at=AT, was=180), {WRONG: 2}),
        (_row("no_loss_found"), {WRONG: 2}),
        (_row("no_loss_found", since=LATER), {CANNOT_TELL: 1, RIGHT: 1}),
        (_row("cannot_tell"), {CANNOT_TELL: 2}),
        (_row("never went back"), {WRONG: 2}),
    ],
    ids=lambda value: value["verdict"][:14] if "verdict" in value else "",
)
def test_a_loss_is_told_or_is_not_known(row: dict[str, Any], words: dict[str, int]) -> None:
    held = hold_timeline(_truth(LOSS), Told([row]))
    assert {word: held.count(word) for word in (RIGHT, CANNOT_TELL, WRONG)} == {
        RIGHT: 0,
        CANNOT_TELL: 0,
        WRONG: 0,
    } | words


def test_silence_is_wrong_unless_the_command_says_that_it_cannot_tell() -> None:
    assert hold_timeline(_truth(LOSS), Told([])).count(WRONG) == 1
    assert hold_timeline(_truth(LOSS), Told([], is_untold=True)).count(CANNOT_TELL) == 1
    # Of a group of which other things are said, it has to be named.
    beside = [_row("no_loss_found", partition=1)]
    assert hold_timeline(_truth(LOSS), Told(beside, is_untold=True)).count(WRONG) == 1
    said = "cannot tell: orders-app"
    assert hold_timeline(_truth(LOSS), Told(beside, True, said)).count(WRONG) == 0


def test_offsets_that_differ_or_are_left_out_are_wrong() -> None:
    truth = {KEY: frozenset({5, None}), OTHER: frozenset({7})}

    def words(*rows: dict[str, Any], is_untold: bool = False) -> tuple[int, int, int]:
        held = hold_offsets(truth, rows, is_untold=is_untold)
        return held.count(RIGHT), held.count(CANNOT_TELL), held.count(WRONG)

    here = {"group_id": KEY[0], "topic": KEY[1]}
    assert words({**here, "partition": 1, "committed_offset": 7}) == (1, 0, 0)
    assert words({**here, "partition": 1, "committed_offset": 8}) == (0, 0, 1)
    assert words({**here, "partition": 1, "committed_offset": None}) == (0, 0, 1)
    untold = {**here, "partition": 1, "committed_offset": None, "complete": False}
    assert words(untold) == (0, 1, 0)
    assert words() == (0, 0, 1)
    assert words(is_untold=True) == (0, 1, 0)


def test_groups_left_out_of_a_list_are_wrong() -> None:
    assert hold_list(_truth(), [], is_untold=False).count(WRONG) == 1
    assert hold_list(_truth(), [{"group_id": KEY[0]}], is_untold=False).count(RIGHT) == 1


def test_a_removal_by_another_cause_is_wrong() -> None:
    expired = Happening(KEY, EXPIRED, (SECOND, SECOND), frozenset({5}), frozenset({None}))
    row = _row("") | {"removed_at": AT, "confidence": "high"}
    for cause, word in (("expiration", RIGHT), ("unknown", CANNOT_TELL), ("group_deleted", WRONG)):
        held = hold_removals(_truth(expired), [{**row, "cause": cause}], is_untold=False)
        assert held.count(word) == 1
    assert hold_removals(_truth(expired), [], is_untold=False).count(WRONG) == 1
    assert hold_removals(_truth(), [{**row, "cause": "expiration"}], is_untold=False).count(WRONG)


def _place(**more: Any) -> dict[str, Any]:
    return dict(zip(("group_id", "topic", "partition"), KEY, strict=True)) | more


THEN: dict[tuple[str, str, int], Any] = {KEY: frozenset({180}), OTHER: frozenset({7})}
END: dict[tuple[str, str, int], Any] = {KEY: frozenset({0, 5}), OTHER: frozenset({7})}


@pytest.mark.parametrize(
    ("said", "word"),
    [
        (("went_back", 180, 5, "lost_by_election"), RIGHT),
        (("went_back", 180, 0, "lost_by_election"), RIGHT),
        (("went_back", 180, 5, None), WRONG),
        (("went_back", 180, 6, "lost_by_election"), WRONG),
        (("went_back", 175, 5, "lost_by_election"), WRONG),
        (("vanished", 180, None, "lost_by_election"), WRONG),
        (("cannot_tell", 180, None, None), CANNOT_TELL),
        (("cannot_tell", None, 5, None), CANNOT_TELL),
        (("cannot_tell", None, 6, None), WRONG),
    ],
)
def test_a_change_is_right_where_both_of_its_sides_and_its_cause_are(
    said: tuple[str, int | None, int | None, str | None], word: str
) -> None:
    change, before, after, cause = said
    row = _place(
        change=change, from_committed_offset=before, to_committed_offset=after, cause=cause
    )
    held = hold_diff(_truth(LOSS), THEN, END, [row], is_untold=False)
    assert (held.count(word), sum(held.by_group.values())) == (1, 1)


def test_a_change_that_is_left_out_is_wrong_and_one_by_an_election_that_was_none() -> None:
    assert hold_diff(_truth(LOSS), THEN, END, [], is_untold=False).count(WRONG) == 1
    assert hold_diff(_truth(LOSS), THEN, END, [], is_untold=True).count(CANNOT_TELL) == 1
    row = _place(
        change="went_back",
        from_committed_offset=180,
        to_committed_offset=5,
        cause="lost_by_election",
    )
    assert hold_diff(_truth(), THEN, END, [row], is_untold=False).count(WRONG) == 1


@pytest.mark.parametrize(
    ("said", "word"),
    [
        (("restore", 180, 5, None), RIGHT),
        (("refused", 180, 0, "moved_on; topic_gone"), RIGHT),
        (("refused", None, 5, "incomplete"), CANNOT_TELL),
        (("restore", 175, 5, None), WRONG),
        (("restore", 180, 6, None), WRONG),
        (("restore", 180, None, None), WRONG),
    ],
)
def test_what_is_given_back_has_to_have_been_in_force(
    said: tuple[str, int | None, int | None, str | None], word: str
) -> None:
    verdict, offset, present, reason = said
    row = _place(verdict=verdict, committed_offset=offset, present_offset=present, reason=reason)
    held = hold_restore({KEY: THEN[KEY]}, END, [row], is_untold=False)
    assert (held.count(word), sum(held.by_group.values())) == (1, 1)


def test_an_offset_that_is_not_planned_for_is_wrong() -> None:
    assert hold_restore({KEY: THEN[KEY]}, END, [], is_untold=False).count(WRONG) == 1
    assert hold_restore({KEY: THEN[KEY]}, END, [], is_untold=True).count(CANNOT_TELL) == 1


def _finding(rule: str, group: str = KEY[0]) -> dict[str, Any]:
    return {"rule": rule, "group_id": group, "message": rule}


@pytest.mark.parametrize(
    ("found", "word"),
    [
        ([_finding("offsets_lost_by_election")], RIGHT),
        ([], WRONG),
        ([_finding("history_not_told")], CANNOT_TELL),
        ([_finding("offsets_lost_by_election"), _finding("offsets_expired")], WRONG),
        ([_finding("offsets_lost_by_election"), _finding("offsets_expired", "who")], CANNOT_TELL),
    ],
)
def test_findings_are_held_both_ways(found: list[dict[str, Any]], word: str) -> None:
    held = hold_findings(_truth(LOSS), found)
    assert held.count(word) > 0
    assert held.count(WRONG) == (1 if word == WRONG else 0)
