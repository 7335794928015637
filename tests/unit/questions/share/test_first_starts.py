"""What a share group has no delivery on record of, of a partition taken on later than its topic."""

from __future__ import annotations

from typing import Any

import pytest

from analytics.questions.share.backlog import evaluate_share
from analytics.questions.share.settings import DYNAMIC, OFFSET_RESET, Setting, ShareSettings
from analytics.questions.share.state_topic import StateCoverage
from tests.support.broker_state import CutBatch
from tests.support.reference_share_coordinator import ShareKey, ShareRecord, Snapshot, Update
from tests.unit.questions.share.backlog import BEGIN, SETTINGS, question

BEGIN_MS = round(BEGIN.timestamp() * 1000)
ENDS = {("orders", each): (3, 500) for each in range(2)}
OLD = ("g", "topic", 0)
NEW = ("g", "topic", 1)
Values = tuple[Snapshot | Update | None, ...]


def made(epoch: int, start: int = -1, number: int = 0) -> Snapshot:
    return Snapshot(number, epoch, 0, start, 0, 1, 1, ())


def first_update(start: int) -> Update:
    return Update(0, 4, start, 1, (CutBatch(start, start, 2, 1),))


def row(*of_new: Snapshot | Update | None, **asked: Any) -> dict[str, Any]:
    """Return the row of the partition that the group got after it had shared another."""
    values: list[tuple[ShareKey, Snapshot | Update | None]]
    values = [(OLD, made(2)), (OLD, first_update(0)), *((NEW, each) for each in of_new)]
    records = [ShareRecord(0, place, key, value) for place, (key, value) in enumerate(values)]
    rows = evaluate_share(question(records, **{"ends": ENDS, **asked})).rows.to_dicts()
    return next(each for each in rows if each["partition"] == 1)


def reset(value: str, since_ms: int = BEGIN_MS) -> ShareSettings:
    return ShareSettings(
        SETTINGS.otherwise, {"g": {OFFSET_RESET: Setting(value, DYNAMIC, since_ms)}}
    )


def test_what_lies_below_the_first_start_offset_is_told_with_the_setting() -> None:
    found = row(made(5), first_update(40), Update(0, 4, 90, 0, ()))

    assert (found["offsets_below_first"], found["is_later_partition"]) == (37, True)
    assert found["reason"].startswith("of offsets 3 to 39 it has no delivery on record")
    assert "share.auto.offset.reset is latest (Kafka's default, assumed)" in found["reason"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("latest", "share.auto.offset.reset is latest (from the metadata log)"),
        ("by_duration:pt1h", "share.auto.offset.reset is by_duration:pt1h (from the metadata log)"),
        ("earliest", "is earliest, so something else set its start, or that is newer"),
    ],
)
def test_the_setting_of_the_group_is_heeded(value: str, words: str) -> None:
    found = row(made(5), first_update(40), settings=reset(value))
    assert words in found["reason"]
    assert (found["offset_reset"], found["offset_reset_source"]) == (value, DYNAMIC)


def test_a_setting_that_is_newer_than_the_state_does_not_say_why() -> None:
    found = row(made(5), first_update(40), settings=reset("by_duration:pt1h", BEGIN_MS + 10**7))
    assert "was set later, and what it was then is not known" in found["reason"]


def test_state_that_is_made_with_a_start_offset_is_made_by_a_tool() -> None:
    assert "which tools do" in row(made(5, start=40))["reason"]


@pytest.mark.parametrize(
    "of_new",
    [
        pytest.param((made(2), first_update(40)), id="in the epoch of the others"),
        pytest.param((made(0), first_update(40)), id="of a release without epochs"),
        pytest.param((made(5), first_update(3)), id="from the log's start on"),
        pytest.param((made(5),), id="without a start offset"),
        pytest.param((made(5, start=40, number=7),), id="whose beginning was pruned"),
    ],
)
def test_nothing_is_said_of_a_share_partition(of_new: Values) -> None:
    assert "no delivery on record" not in (row(*of_new)["reason"] or "")


def test_state_that_a_tool_gave_its_first_start_offset_later_says_so() -> None:
    assert "which tools do" in row(made(5), made(6, start=40, number=1))["reason"]


def test_a_beginning_that_is_not_on_record_is_not_known() -> None:
    pruned = row(made(5, start=40, number=7))
    lacking = row(made(5), first_update(40), coverage=StateCoverage(1, {0: "records were lost"}))
    for found in (pruned, lacking):
        assert (found["offsets_below_first"], found["is_later_partition"]) == (None, None)


def test_state_that_was_deleted_begins_anew() -> None:
    found = row(made(3), first_update(9), None, made(5), first_update(40))
    assert found["offsets_below_first"] == 37


def test_a_reset_of_the_others_does_not_make_them_newer() -> None:
    records = [
        ShareRecord(0, 0, OLD, made(2)),
        ShareRecord(0, 1, NEW, made(5)),
        ShareRecord(0, 2, NEW, first_update(40)),
        ShareRecord(0, 3, OLD, made(9, start=0, number=1)),
    ]
    found = evaluate_share(question(records, ends=ENDS)).rows.to_dicts()
    assert [each["is_later_partition"] for each in found if each["partition"] == 1] == [True]
