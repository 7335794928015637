"""A cleaner that was stopped before its swap files were in place.

Loaded is what it left; what happened is in the segments that still lie beside it.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

from analytics import open_dump
from analytics.library.dump import Dump
from analytics.library.state import State
from analytics.replay.dump.times import first_time, last_time
from reports.run_summary import decode_summary
from schemas import tables
from tests.support.half_cleaned import HalfCleaned, half_cleaned

DATA = Path(__file__).parents[2] / "data" / "dumps"
OFFSETS = "__consumer_offsets"


class Opened(NamedTuple):
    """The same log directory never cleaned, half cleaned and cleaned, each opened."""

    never: Dump
    swapped: Dump
    done: Dump


class Replayed(NamedTuple):
    """The state of each at the end."""

    never: State
    swapped: State
    done: State


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> HalfCleaned:
    source = DATA / "kafka-3.9.2-classic" / "broker-1"
    return half_cleaned(source, tmp_path_factory.mktemp("dumps"))


@pytest.fixture(scope="module")
def opened(dumps: HalfCleaned) -> Iterator[Opened]:
    with (
        open_dump(f"broker-1={dumps.never}") as never,
        open_dump(f"broker-1={dumps.swapped}") as swapped,
        open_dump(f"broker-1={dumps.done}") as done,
    ):
        yield Opened(never, swapped, done)


@pytest.fixture(scope="module")
def at_end(opened: Opened) -> Replayed:
    return Replayed(*(each.replay() for each in opened))


def of_kind(state: State, kind: str) -> Mapping[str, pl.DataFrame]:
    names = [name for name, table in tables().items() if table.kind == kind]
    return {name: state.table(name) for name in names}


def differing(one: Mapping[str, pl.DataFrame], other: Mapping[str, pl.DataFrame]) -> list[str]:
    return [name for name, rows in one.items() if not rows.equals(other[name])]


def test_history_is_that_of_a_log_that_was_never_cleaned(at_end: Replayed) -> None:
    never, swapped, done = (of_kind(each, "history") for each in at_end)
    assert differing(never, swapped) == []
    assert done["offset_history"].height < swapped["offset_history"].height / 2
    assert swapped["offset_history"]["missing"].null_count() == swapped["offset_history"].height


def test_state_and_what_a_broker_refuses_are_those_of_the_swap_files(at_end: Replayed) -> None:
    _, swapped, done = at_end
    assert differing(of_kind(done, "state"), of_kind(swapped, "state")) == []
    assert done.load_faults.equals(swapped.load_faults)


def test_a_timeline_misses_nothing(at_end: Replayed) -> None:
    never, swapped, done = (each.ask("timeline") for each in at_end)
    assert swapped.cannot_tell == never.cannot_tell
    assert swapped.figures == never.figures == {"not_whole": None}
    assert "was compacted" in str(done.figures["not_whole"])
    assert swapped.offset_verdicts.equals(never.offset_verdicts)


def test_a_timeline_up_to_a_time_is_judged_by_what_happened(at_end: Replayed) -> None:
    at = datetime(2026, 11, 21, 9, 18, 53, tzinfo=UTC)
    never, swapped, done = (each.ask("timeline", time_to=at) for each in at_end)
    assert swapped.offset_verdicts.equals(never.offset_verdicts)
    assert swapped.cannot_tell == never.cannot_tell
    assert not swapped.offset_verdicts.equals(done.offset_verdicts)


def test_history_is_not_said_to_be_compacted(at_end: Replayed) -> None:
    never, swapped, done = ("; ".join(each.manifest["unanswerable"]) for each in at_end)
    assert swapped == never
    assert "was compacted" in done


def test_records_are_accounted_for_apart(at_end: Replayed, dumps: HalfCleaned) -> None:
    never, swapped, done = (each.manifest for each in at_end)
    assert never["before_swaps"] is done["before_swaps"] is None
    named = ("records", "decoded", "control_markers", "undecoded", "left_out", "reconciles")

    def accounts(of: Mapping[str, Any], numbers: Collection[int]) -> list[list[Any]]:
        return [
            [each[name] for name in ("partition", *named)]
            for each in of["reconciliation"]
            if each["topic"] == OFFSETS and each["partition"] in numbers
        ]

    apart = swapped["before_swaps"]
    assert accounts(swapped, dumps.ends) == accounts(done, dumps.ends)
    assert accounts(apart, dumps.ends) == accounts(never, dumps.ends)
    assert len(apart["reconciliation"]) == len(dumps.ends) == 5
    said = "of 5 partitions as they were before a cleaner's swap files: before_swaps/"
    assert said in decode_summary(swapped, "text")
    assert "swap" not in decode_summary(never, "text")


@pytest.mark.parametrize(
    "part",
    [0.5, *(pytest.param(each, marks=pytest.mark.long) for each in (0.05, 0.2, 0.8, 0.97))],
)
def test_an_earlier_instant_is_that_of_a_log_that_was_never_cleaned(
    opened: Opened, at_end: Replayed, part: float
) -> None:
    first, last = (of(at_end.never.manifest) for of in (first_time, last_time))
    assert first is not None
    assert last is not None
    at = first + (last - first) * part
    never, swapped = (each.replay(as_of=at) for each in opened[:2])
    assert differing(of_kind(never, "state"), of_kind(swapped, "state")) == []
    assert differing(of_kind(never, "history"), of_kind(swapped, "history")) == []
    for question in ("list", "lag", "timeline", "rebalances", "expiration"):
        answer, expected = swapped.ask(question), never.ask(question)
        assert answer.cannot_tell == expected.cannot_tell, question


def test_without_one_of_the_segments_all_is_as_if_there_were_none(
    dumps: HalfCleaned, at_end: Replayed, tmp_path: Path
) -> None:
    shutil.copytree(dumps.swapped, tmp_path / "broker-1")
    for number in dumps.ends:
        min((tmp_path / "broker-1" / f"{OFFSETS}-{number}").glob("*.log")).unlink()
    with open_dump(str(tmp_path / "broker-1")) as dump:
        state = dump.replay()
        assert state.manifest["before_swaps"] is None
        assert len(state.manifest["notes"]) == len(dumps.ends)
        assert differing(of_kind(at_end.done, "state"), of_kind(state, "state")) == []
        assert state.offset_history.height == at_end.done.offset_history.height
        assert "was compacted" in str(state.ask("timeline").figures["not_whole"])
