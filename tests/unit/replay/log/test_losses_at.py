"""What is lost of a partition of what counts at an instant, also where another line is followed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.dump.inspection.found_losses import DELETED, OPEN_END, Loss, loss_rows
from analytics.replay.dump.followed_lines import CANNOT_TELL, LED, FollowedLine
from analytics.replay.log.ends_at import Beside, Ends, first_later, losses_at, what_took_history
from analytics.workspace import Workspace

TOPIC = "__consumer_offsets"
KEY = (TOPIC, 3)
PARTS_AT = 50


def log(
    copy: str, *, is_leading: bool = True, cleaned: int = 0, losses: Any = ()
) -> dict[str, Any]:
    return {
        "topic": TOPIC,
        "partition": 3,
        "copy": copy,
        "is_leading": is_leading,
        "first_offset": 0,
        "log_start_offset": 0,
        "first_dirty_offset": cleaned,
        "losses": loss_rows(losses),
        "end_offset": 100,
    }


def manifest(*logs: dict[str, Any]) -> dict[str, Any]:
    return {"partitions": list(logs), "options": {}}


def line(at_that_time: str = LED) -> FollowedLine:
    elected = datetime(2026, 11, 21, 9, 20, tzinfo=UTC)
    return FollowedLine(*KEY, "broker-1", PARTS_AT, (), "broker-2", elected, at_that_time)


EARLIER = Ends(later={KEY: 70}, is_end=False)


def test_nothing_is_lost_of_whole_logs_and_of_the_line_that_led() -> None:
    both = manifest(log("broker-2"), log("broker-1", is_leading=False))
    assert losses_at(both, Ends()) == {}
    assert losses_at(both, EARLIER, [line()]) == {}


def test_where_nothing_shows_which_line_was_in_force_all_that_differs_may_be_lost() -> None:
    both = manifest(log("broker-2"), log("broker-1", is_leading=False))
    (loss,) = losses_at(both, EARLIER, [line(CANNOT_TELL)])[KEY]
    assert (loss.first, loss.end) == (PARTS_AT, OPEN_END)
    assert loss.why == (
        "nothing shows which line was in force, that of broker-1 or that of broker-2"
    )


def test_of_a_followed_line_its_own_losses_count_and_not_those_of_the_surviving_one() -> None:
    survivor = log("broker-2", losses=[Loss(10, 12, "a gap"), Loss(60, 65, "a gap")])
    own = log("broker-1", is_leading=False, losses=[Loss(80, 90, "damaged bytes")])
    found = losses_at(manifest(survivor, own), EARLIER, [line()])[KEY]
    # Offset 70 is where later records begin on the surviving line, and says nothing of this one.
    assert [(each.first, each.end) for each in found] == [(10, 12), (80, 90)]


@pytest.mark.parametrize(("cleaned", "lost"), [(PARTS_AT, []), (PARTS_AT + 1, [(0, PARTS_AT)])])
def test_what_the_surviving_line_had_compacted_past_the_parting_is_lost_to_the_other(
    cleaned: int, lost: list[tuple[int, int]]
) -> None:
    both = manifest(log("broker-2", cleaned=cleaned), log("broker-1", is_leading=False))
    found = losses_at(both, EARLIER, [line()]).get(KEY, [])
    assert [(each.first, each.end) for each in found] == lost


def test_what_a_followed_line_compacted_of_its_own_is_lost_at_an_earlier_instant() -> None:
    own = log("broker-1", is_leading=False, cleaned=90)
    (loss,) = losses_at(manifest(log("broker-2"), own), EARLIER, [line()])[KEY]
    assert (loss.first, loss.end) == (0, 90)


def test_at_an_earlier_instant_compaction_may_have_taken_what_was_in_force_then() -> None:
    one = manifest(log("broker-2", cleaned=80))
    (loss,) = losses_at(one, EARLIER)[KEY]
    assert (loss.first, loss.end) == (0, 70)
    assert losses_at(one, Ends()) == {}


@pytest.mark.parametrize(
    ("noted", "thinned", "lost"),
    [
        pytest.param(0, 80, [(0, 70)], id="no-checkpoint-of-the-pass"),
        pytest.param(30, 80, [(0, 70)], id="checkpoint-of-an-earlier-pass"),
        pytest.param(80, 30, [(0, 70)], id="checkpoint-says-more"),
        pytest.param(30, 40, [], id="all-was-cleaned-before-the-instant"),
        pytest.param(30, None, [], id="no-batch-lacks-records"),
    ],
)
def test_batches_that_lack_records_were_cleaned_whatever_the_checkpoint_says(
    noted: int, thinned: int | None, lost: list[tuple[int, int]]
) -> None:
    one = log("broker-2", cleaned=noted) | {"thinned_end": thinned}
    found = losses_at(manifest(one), EARLIER).get(KEY, [])
    assert [(each.first, each.end) for each in found] == lost
    assert losses_at(manifest(one), Ends()) == {}


WHY = "it was unclean (see --assume clean-elections)"
ELECTED = datetime(2026, 11, 21, 9, 20, tzinfo=UTC)


def election(at: datetime | None, epoch: int | None = 4, first: int = 60) -> dict[str, Any]:
    said = None if at is None else at.isoformat()
    return {"leader_epoch": epoch, "at": said, "first_offset": first, "why": "it was unclean"}


def untold(end: int | None, minutes: int, *elections: dict[str, Any], **more: Any) -> list[Loss]:
    row = log("broker-2") | {"unjudged_elections": list(elections)}
    later = {} if end is None else {KEY: end}
    ends = Ends(later=later, is_end=False, time=ELECTED + timedelta(minutes=minutes))
    return losses_at(manifest(row), ends, **more).get(KEY, [])


@pytest.mark.parametrize(
    ("loss", "what"),
    [
        (Loss(0, 80, DELETED, is_below_start=True), f"was {DELETED}"),
        (Loss(40, 80, "a gap"), "is not whole: a gap"),
        (Loss(85, 90, "a gap"), "was compacted"),
        (Loss(10, 20, "a gap"), "was compacted"),
    ],
)
def test_what_is_no_longer_there_is_called_what_took_it(loss: Loss, what: str) -> None:
    row = log("broker-2", cleaned=80, losses=[loss])

    assert what_took_history(row) == what
    found = losses_at(manifest(row), EARLIER)[KEY]
    assert any(f"history before offset 80 {what}" in each.why for each in found)


@pytest.mark.parametrize(("minutes", "lost"), [(-1, True), (0, False), (1, False)])
def test_before_an_election_that_may_have_lost_commits_the_leader_may_have_had_others(
    minutes: int, lost: bool
) -> None:
    expected = [Loss(60, OPEN_END, WHY)] if lost else []
    assert untold(60, minutes, election(ELECTED)) == expected


@pytest.mark.parametrize(("end", "lost"), [(59, True), (60, True), (61, False), (None, False)])
def test_an_election_without_a_time_was_before_its_leaders_first_record(
    end: int | None, lost: bool
) -> None:
    assert bool(untold(end, 0, election(None))) is lost


def test_an_election_after_which_nobody_wrote_may_be_later_than_any_instant() -> None:
    assert untold(None, 0, election(None, first=100))


def test_where_no_leader_epochs_are_recorded_an_election_may_be_anywhere() -> None:
    assert untold(99, 0, election(None, None, 0)) == [Loss(0, OPEN_END, WHY)]


OLD_MS, NEW_MS = 1_480_000_000_000, 1_480_000_060_000
OLD, NEW = "2016-11-24T15:06:40.000Z", "2016-11-24T15:07:40.000Z"


@pytest.mark.parametrize(
    ("beside", "first", "where"),
    [
        pytest.param(
            Beside((96, OLD_MS), (99, NEW_MS)),
            97,
            f"between the records at offsets 96 and 99, {OLD} to {NEW}",
            id="between two records",
        ),
        pytest.param(
            Beside(None, (99, NEW_MS)),
            0,
            f"before the record at offset 99, {NEW}",
            id="before the first",
        ),
        pytest.param(
            Beside((98, OLD_MS), None),
            99,
            f"after the record at offset 98, {OLD}",
            id="after the last",
        ),
    ],
)
def test_what_an_election_may_have_taken_of_an_instant_lay_behind_its_last_record(
    beside: Beside, first: int, where: str
) -> None:
    row = log("broker-2") | {"unjudged_elections": [election(None, None, 0)]}
    ends = Ends(later={KEY: 99}, is_end=False, time=ELECTED, beside={KEY: beside})
    (loss,) = losses_at(manifest(row), ends)[KEY]
    assert (loss.first, loss.end) == (first, OPEN_END)
    assert loss.why == (
        f"it was unclean; it would have been {where} (see --assume clean-elections)"
    )


def test_what_was_in_force_at_the_end_or_below_offsets_no_election_changes() -> None:
    row = log("broker-2") | {"unjudged_elections": [election(ELECTED)]}
    assert losses_at(manifest(row), Ends()) == {}
    assert losses_at(manifest(row), Ends({KEY: 70}, is_end=False)) == {}


def test_a_person_may_vouch_for_elections() -> None:
    assert untold(60, -1, election(ELECTED), are_elections_clean=True) == []


@pytest.mark.parametrize(
    ("records", "first"),
    [
        pytest.param([(10, 500, 400), (11, 600, 400), (12, None, 400)], 11, id="by its own time"),
        pytest.param([(10, None, 400), (11, None, 600), (12, 700, 700)], 11, id="by its value"),
        pytest.param([(10, None, None), (11, None, -1)], None, id="nothing says a time"),
    ],
)
def test_the_first_later_record_is_found_as_the_cut_finds_it(
    records: list[tuple[int, int | None, int | None]], first: int | None, tmp_path: Path
) -> None:
    folder = tmp_path / "decoded" / "offset_commit"
    folder.mkdir(parents=True)
    rows = [
        {
            "topic": TOPIC,
            "partition": 3,
            "offset": at,
            "timestamp": time,
            "value": {"commit_timestamp": said},
        }
        for at, time, said in records
    ]
    kinds = {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64()}
    kinds |= {"timestamp": pa.timestamp("ms", "UTC")}
    kinds |= {"value": pa.struct({"commit_timestamp": pa.int64()})}
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(kinds)), folder / "part.parquet")
    known = manifest(log("broker-2", cleaned=12) | {"complete_from": 12})
    known["record_types"] = [{"table": "offset_commit", "topic": TOPIC, "records": len(records)}]
    later = first_later(Workspace(str(tmp_path)), known, 500, [TOPIC])
    assert later == ({} if first is None else {KEY: first})
