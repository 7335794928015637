"""Marks are handed down from what rows rest on, and from lost records to rows of history."""

from __future__ import annotations

import polars as pl

from analytics.dump.inspection.found_losses import OPEN_END, Loss
from analytics.replay.log.log_times import Frame
from analytics.replay.log.losses import WHOLE, Coverage, with_marks_of, with_marks_of_records
from schemas import CLUSTER_METADATA, CONSUMER_OFFSETS

LOG = (CONSUMER_OFFSETS, 3)
FRAME = Frame(10, 15, 1_795_000_060_000, 1_795_000_000_000)


def test_rows_lack_what_their_owner_lacks_and_what_they_lack_themselves() -> None:
    owners = pl.DataFrame({"group_id": ["a", "b"], "missing": ["its end", None]})
    rows = pl.DataFrame(
        {"group_id": ["a", "a", "b", "b", "c"], "missing": ["9 bytes", None, "9 bytes", None, None]}
    )
    found = with_marks_of(rows, owners, ["group_id"])
    assert found["missing"].to_list() == ["its end; 9 bytes", "its end", "9 bytes", None, None]
    assert found["complete"].to_list() == [False, False, False, True, True]
    assert with_marks_of(found, owners, ["group_id"])["complete"].equals(found["complete"])


def test_history_is_certain_up_to_what_a_lost_leader_may_have_cut_back() -> None:
    loss = Loss(20, OPEN_END, "broker 2 led")
    coverage = Coverage(complete_from={LOG: OPEN_END}, losses={LOG: [loss]})
    rows = pl.DataFrame(
        {
            "coordinator_partition": pl.Series([3, 3, 3, 3, 4], dtype=pl.Int32),
            "from_offset": [5, 5, 5, 20, 20],
            "to_offset": [19, 20, None, 30, None],
        }
    )
    found = with_marks_of_records(rows, coverage, "from_offset", "to_offset")
    assert found["complete"].to_list() == [True, False, False, False, True]
    of_records = with_marks_of_records(rows, coverage, "from_offset")
    assert of_records["complete"].to_list() == [True, True, True, False, True]
    assert with_marks_of_records(rows, WHOLE, "from_offset", "to_offset")["complete"].all()


def test_what_began_or_ended_between_the_two_cuts_of_a_log_is_not_certain() -> None:
    rows = pl.DataFrame(
        {
            "coordinator_partition": pl.Series([3, 3, 3, 3, 4], dtype=pl.Int32),
            "from_offset": [5, 5, 5, 10, 10],
            "to_offset": [9, 10, None, None, 12],
        }
    )
    coverage = Coverage(frames={LOG: FRAME})
    found = with_marks_of_records(rows, coverage, "from_offset", "to_offset")
    # What no record has ended in either cut has not ended.
    assert found["complete"].to_list() == [True, False, True, False, True]
    assert set(found["missing"].drop_nulls()) == {FRAME.why(*LOG)}


def test_a_topic_deleted_between_the_two_cuts_of_the_metadata_log_is_not_certain() -> None:
    logs = [CLUSTER_METADATA, CLUSTER_METADATA, CONSUMER_OFFSETS]
    rows = pl.DataFrame(
        {
            "log": logs,
            "coordinator_partition": pl.Series([0, 0, 0], dtype=pl.Int32),
            "record_offset": [9, 10, 10],
        }
    )
    coverage = Coverage(frames={(CLUSTER_METADATA, 0): FRAME})
    found = with_marks_of_records(rows, coverage, "record_offset", log="log")
    assert found["complete"].to_list() == [True, False, True]
