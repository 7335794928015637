"""How far groups are behind is what a plain loop says: over the texts of dumps, and random logs."""

from __future__ import annotations

import csv
import tempfile
from datetime import datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st

from analytics.assignors.group import string_hash
from tests.support.answered_here import answered, replayed_copies
from tests.support.dump_folder import bundled_dumps
from tests.support.examples import examples
from tests.support.lag_histories import PARTITIONS, TOPICS, RandomLog, bytes_of
from tests.support.log_dirs import LogDir
from tests.support.plain_lag import Around, Place, PlainLag
from tests.support.plain_log import metadata_lines, plain_topics, records_of

if TYPE_CHECKING:
    from tests.support.answered_here import ReplayedDump
from tests.support.dump_folder import DumpFolder

TOPIC = "__consumer_offsets"
RELEASE = "4.3"
DUMPS = [each for each in bundled_dumps() if list(each.root.glob(f"*/{TOPIC}-*"))]
Ends = dict[tuple[str, int], tuple[int, int]]
Rows = dict[Place, dict[str, Any]]
LOGS, ACTS = 5, 70


def _ends(dump: DumpFolder) -> Ends:
    path = dump.root / "tools" / "end-offsets.csv"
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {
            (row["topic"], int(row["partition"])): (
                int(row["log_start_offset"]),
                int(row["log_end_offset"]),
            )
            for row in csv.DictReader(file)
        }


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    return float(f"{value:.9g}") if isinstance(value, float) else value


def _rows(found: list[dict[str, Any]]) -> Rows:
    return {(row["group_id"], row["topic"], row["partition"]): _row(row) for row in found}


def _row(row: dict[str, Any]) -> dict[str, Any]:
    owners = {each["member_id"] for each in row["owners"] or ()}
    is_passed_over = "never committed any" in (row["reason"] or "")
    return {**row, "owners": owners, "is_passed_over": is_passed_over}


def _last_time(dump: DumpFolder) -> int:
    return max(
        line.timestamp
        for copy in dump.copies
        for segment in dump.segments(copy)
        for batch in segment.text.batches
        for line in batch.records
    )


@pytest.mark.parametrize("dump", DUMPS, ids=lambda each: each.root.name)
def test_every_partition_is_as_far_behind_as_a_plain_loop_over_the_printed_log_says(
    dump: DumpFolder, replayed_dump: ReplayedDump
) -> None:
    ends = _ends(dump)
    options = ["--end-offsets", str(dump.root / "tools" / "end-offsets.csv")] if ends else []
    found = answered(replayed_dump(dump), "lag", *options)["lag"]
    rows = _rows(found)
    if not ends:
        # Of what the log directories beside the offsets tell, only the ends are believed here.
        ends = {
            (topic, partition): (row["log_start_offset"], row["log_end_offset"])
            for (_, topic, partition), row in rows.items()
            if row["log_end_offset"] is not None
        }
    around = Around(plain_topics(metadata_lines(dump)), ends, _last_time(dump))
    cleaned = {
        place: end for copy in dump.copies for place, end in dump.cleaned_until(copy).items()
    }
    expected: Rows = {}
    for number, log in records_of(dump, TOPIC).items():
        plain = PlainLag(RELEASE, may_lack=cleaned.get((TOPIC, number), 0) > 0)
        plain.replay(log)
        expected |= dict(plain.rows(around))

    assert _differing(rows, expected) == {}


_DIGITS_OF_A_RATE = 1e-9


def _differing(rows: Rows, expected: Rows) -> dict[Any, Any]:
    assert rows.keys() == expected.keys()
    return {
        (*place, name): (_plain(rows[place][name]), _plain(value), rows[place]["verdict"])
        for place, wanted in expected.items()
        for name, value in wanted.items()
        if not _is_same(name, _plain(rows[place][name]), _plain(value))
    }


def _is_same(name: str, found: Any, expected: Any) -> bool:
    """Whether two values are; of years until a lag is gone a rate has no last millisecond."""
    if name == "drain_ms" and found is not None and expected is not None:
        return bool(abs(found - expected) <= max(1, expected) * _DIGITS_OF_A_RATE)
    return bool(found == expected)


def _names(number: int, partitions: int) -> list[str]:
    """Two names of groups whose home is that partition."""
    names = (f"group-{each}" for each in range(1000))
    at_home = (each for each in names if abs(string_hash(each)) % partitions == number)
    return [next(at_home), next(at_home)]


def _held_against_a_loop(seed: int) -> None:
    random = Random(seed)
    logs = [RandomLog(random, each, _names(each, LOGS)).play(ACTS) for each in range(LOGS)]
    places = [(topic, number) for topic in TOPICS for number in range(PARTITIONS)]
    ends = {
        place: (random.choice((0, 0, 40, 90)), random.randrange(90, 12_000)) for place in places
    }
    expected: Rows = {}
    around = Around({}, ends, max(each.now for each in logs))
    for log in logs:
        # The last record of each log has a time: so none is later than the instant.
        log.rebalance()
        plain = PlainLag(RELEASE, may_lack=False)
        plain.replay(log.records)
        expected |= dict(plain.rows(around))
    with tempfile.TemporaryDirectory() as folder:
        made = LogDir.create(Path(folder) / "disk")
        for log in logs:
            made.partition(f"{TOPIC}-{log.number}", {0: bytes_of(log.records)}, [(0, 0)])
        side_file = Path(folder) / "ends.csv"
        lines = [
            f"{topic},{number},{start},{end}" for (topic, number), (start, end) in ends.items()
        ]
        header = "topic,partition,log_start_offset,log_end_offset"
        side_file.write_text("\n".join([header, *lines]))
        workspace = replayed_copies([str(made.path)], Path(folder))
        found = answered(workspace, "lag", "--end-offsets", str(side_file))["lag"]
    assert _differing(_rows(found), expected) == {}, seed


@examples(2, 150, seed=st.integers(0, 1 << 32))
def test_random_histories_are_as_a_plain_loop_says(seed: int) -> None:
    _held_against_a_loop(seed)
