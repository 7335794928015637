"""Commands that give lost offsets back: as of before each loss, and no more of them than needed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import chain, combinations
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from analytics.contracts import arrow_rows, polars_rows
from analytics.questions.findings.advice import (
    MOST_GROUPS,
    SPANS,
    lost_spans,
    shared_commands,
)
from analytics.tables.parted_table import PartedTable
from schemas.finding_rules import RestoreColumns

COLUMNS = RestoreColumns("was", "committed_at", "at", "timeline {dump}", "not_before")
SCHEMA = pl.Schema(
    {
        **dict.fromkeys(("group_id", "topic"), pl.String()),
        **dict.fromkeys(("partition", "was"), pl.Int64()),
        **dict.fromkeys(("committed_at", "at", "not_before"), pl.Datetime("us", "UTC")),
    }
)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def second(number: float) -> datetime:
    return NOON + timedelta(seconds=number)


def loss(
    group: str, committed: float | None, lost: float | None, partition: int = 0, **more: Any
) -> dict[str, Any]:
    return {
        "group_id": group,
        "topic": "orders",
        "partition": partition,
        "was": 7,
        "committed_at": None if committed is None else second(committed),
        "at": None if lost is None else second(lost),
        "not_before": None,
        **more,
    }


def commands(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    lost = pl.DataFrame(rows, SCHEMA)
    made = shared_commands([lost_spans(COLUMNS, lost)])
    for row in made.of_groups(lost["group_id"]).to_dicts():
        found.setdefault(row.pop("group_id"), []).append(row)
    return found


def words(group: str, *rows: dict[str, Any]) -> list[dict[str, str]]:
    return commands(list(rows))[group]


def test_the_instant_is_the_last_one_before_the_loss() -> None:
    (one,) = words("billing", loss("billing", 0, 60.5))
    assert one == {
        "groups": "--group billing",
        "before": "2026-11-21T12:01:00.499Z",
        "folder": "restore-2026-11-21T120100.499Z",
    }


def test_one_command_serves_all_groups_of_a_loss() -> None:
    rows = [loss("billing", 0, 60), loss("it's", 5, 61.5), loss("late", 62, 90)]
    (one,) = words("billing", *rows)
    assert one["groups"] == "--group billing --group 'it'\"'\"'s'"
    assert words("it's", *rows) == [one]
    (other,) = words("late", *rows)
    assert (other["groups"], other["before"]) == ("--group late", "2026-11-21T12:01:29.999Z")


def test_a_group_whose_offsets_were_never_in_force_together_takes_two_commands() -> None:
    two = words("billing", loss("billing", 0, 60), loss("billing", 70, 90, partition=1))
    assert [each["before"] for each in two] == [
        "2026-11-21T12:00:59.999Z",
        "2026-11-21T12:01:29.999Z",
    ]


def test_only_the_last_loss_of_an_offset_counts() -> None:
    (one,) = words("billing", loss("billing", 0, 60), loss("billing", 70, 90))
    assert one["before"] == "2026-11-21T12:01:29.999Z"


def test_a_loss_whose_time_is_bounded_goes_by_the_instant_before_which_it_did_not_happen() -> None:
    (one,) = words("billing", loss("billing", 0, 60, not_before=second(50)))
    assert one["before"] == "2026-11-21T12:00:49.999Z"


def test_what_had_no_offset_or_no_known_times_cannot_be_given_back() -> None:
    rows = [loss("a", 0, 60, was=None), loss("b", 0, None), loss("c", None, 60)]
    assert commands(rows) == {}


def test_many_groups_are_shared_out_to_folders_of_their_own() -> None:
    rows = [loss(f"group-{number:03}", 0, 60) for number in range(2 * MOST_GROUPS + 1)]
    found = commands(rows)
    assert len(found) == len(rows)
    assert len({each["folder"] for (each,) in found.values()}) == 3


_TIMES = st.tuples(st.integers(0, 30), st.integers(2, 20))
_ROWS = st.lists(
    st.builds(
        lambda group, partition, times: loss(group, times[0], sum(times), partition),
        st.sampled_from("abc"),
        st.integers(0, 2),
        _TIMES,
    ),
    max_size=8,
    unique_by=lambda row: (row["group_id"], row["partition"]),
)


@given(_ROWS)
def test_each_offset_was_in_force_as_of_a_command_of_its_group_and_no_command_is_too_many(
    rows: list[dict[str, Any]],
) -> None:
    found = commands(rows)
    for row in rows:
        instants = [datetime.fromisoformat(each["before"]) for each in found[row["group_id"]]]
        assert any(row["committed_at"] < instant < row["at"] for instant in instants)
    assert len({each["before"] for each in chain(*found.values())}) == _fewest(rows)


def _fewest(rows: list[dict[str, Any]]) -> int:
    """Return how few instants serve all losses, of all choices there are."""
    spans = {
        (row["committed_at"] + timedelta(seconds=1), row["at"] - timedelta(milliseconds=1))
        for row in rows
    }
    ends = {end for _, end in spans}
    return next(
        count
        for count in range(len(ends) + 1)
        if any(
            all(any(start <= each <= end for each in chosen) for start, end in spans)
            for chosen in combinations(ends, count)
        )
    )


@given(_ROWS, st.integers(1, 4))
def test_commands_of_all_groups_are_those_of_parts_of_them(
    rows: list[dict[str, Any]], parts: int
) -> None:
    frame = pl.DataFrame(rows, SCHEMA)
    whole = shared_commands([lost_spans(COLUMNS, frame)])
    number = pl.col("group_id").rank("dense")
    of_parts = [frame.filter(number % parts == each) for each in range(parts)]
    spans = PartedTable(
        arrow_rows(lost_spans(COLUMNS, frame)).schema,
        [arrow_rows(lost_spans(COLUMNS, each)) for each in of_parts],
        SPANS,
    )
    made = shared_commands(map(polars_rows, spans.pieces()))
    assert made.served.equals(whole.served)
    assert made.commands.equals(whole.commands)
