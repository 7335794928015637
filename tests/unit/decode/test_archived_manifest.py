"""The manifest says of archived rows all that it says of a log, null where rows do not tell."""

from __future__ import annotations

from analytics.decode.archived_rows import RowsReport
from analytics.decode.run.manifest import _archived
from analytics.dump.files.model import PartitionCopy
from analytics.dump.inspection.archived_losses import with_archived_losses
from analytics.dump.inspection.manifest import Findings, partition_row
from analytics.dump.inspection.survey import Gap, survey_of

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
