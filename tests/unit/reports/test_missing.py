"""What is said where there is nothing to show, and what a dump lacks."""

from __future__ import annotations

from reports.plain_text import WIDTH, nothing
from reports.run_summary import missing_records

NONE = "No group has members."


def test_nothing_is_said_to_be_there_only_where_that_can_be_told() -> None:
    assert nothing(NONE, {}, WIDTH) == nothing(NONE, {"cannot_tell": []}, WIDTH) == NONE
    assert nothing(NONE, {"cannot_tell": ["it is lost"]}, WIDTH) == "Cannot tell: it is lost"
    assert (
        nothing(NONE, {"cannot_tell": ["it is lost", "b"]}, WIDTH)
        == "Cannot tell: it is lost (and 1 more)"
    )


def test_a_long_reason_fits_the_page() -> None:
    told = nothing(NONE, {"cannot_tell": ["partition " * 40]}, WIDTH)
    assert max(map(len, told.splitlines())) <= 120


def test_partitions_without_a_copy_are_named() -> None:
    rows = [{"topic": "t", "partition": number} for number in (0, 2)]
    manifest = {"partitions": rows, "absent_partitions": {"t": [1, 3, 4], "u": []}}
    assert missing_records(manifest) == ["no copy of t 1, 3-4"]
