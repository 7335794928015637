"""The manifest says of archived rows all that it says of a log, null where rows do not tell."""

from __future__ import annotations

import random
from itertools import accumulate, pairwise

import pyarrow as pa
import pytest

from analytics.decode.archived_rows import RowsReport, _measure_clock
from analytics.decode.publication import _archived
from analytics.dump.files.model import PartitionCopy
from analytics.dump.inspection.found_losses import with_archived_losses
from analytics.dump.inspection.manifest import Findings, partition_row
from analytics.dump.inspection.survey import Gap, survey_of
from tests.support.segments import NOW

TOPIC = "__consumer_offsets"


def test_a_partition_of_rows_has_every_column_that_one_of_a_log_has() -> None:
    of_log = partition_row(
        survey_of(PartitionCopy("broker-1", TOPIC, 0, "folder", ()), []), Findings([], [], {})
    )
    manifest = {"partitions": [_archived(RowsReport(TOPIC, 0, 0))]}
    (of_rows,) = with_archived_losses(manifest)["partitions"]
    assert of_rows.keys() == of_log.keys()


def test_gaps_are_counted_by_kind() -> None:
    gaps = [Gap(0, 3, "not_archived"), Gap(5, 6, "not_decoded"), Gap(9, 10, "not_archived")]
    row = _archived(RowsReport(TOPIC, 0, 3, end_offset=12, gaps=gaps))
    assert row["gap_counts"] == {"not_archived": 2, "not_decoded": 1}
    assert row["gap_offsets"] == {"not_archived": 4, "not_decoded": 1}
    assert row["size"] is None
    assert row["bytes_damaged"] is None


@pytest.mark.parametrize("seed", range(20))
def test_a_clock_that_was_set_back_shows_in_rows_however_they_come(seed: int) -> None:
    draw = random.Random(seed)
    at_ms = list(accumulate(draw.choice([0, 500, 2_000, 70_000]) for _ in range(30)))
    times: list[int | None] = [NOW + each for each in at_ms]
    for step in draw.sample(range(1, 30), draw.randrange(4)):
        times[step:] = [each - 20_000_000 for each in times[step:] if each is not None]
    for lost in draw.sample(range(30), 5):
        times[lost] = None
    known = [(offset, time) for offset, time in enumerate(times) if time is not None]
    behind = [
        [offset, offset, before]
        for (_, before), (offset, now) in pairwise(known)
        if 1000 < before - now < 86_400_000
    ]
    report = RowsReport(TOPIC, 0, 0)
    cuts = [0, *sorted(draw.sample(range(1, 30), 4)), 30]
    for first, end in pairwise(cuts):
        columns = {
            "offset": pa.array(range(first, end), pa.int64()),
            "timestamp": pa.array(times[first:end], pa.int64()),
        }
        _measure_clock(report, pa.RecordBatch.from_pydict(columns))
    assert _archived(report)["clock_steps"] == behind
