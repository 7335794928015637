"""What tasks decode equals what Kafka's own tool printed for the same bytes, field by field.

Every copy of every committed dump alone, and the copies of the failover as one. No Spark: the
tasks that it would run are run here one after the other.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analytics.decode.tasks import Settings, packed, run_task
from analytics.dump.copies.plan import plan
from tests.support.decoded_rows import DecodedRow, rows_of_part
from tests.support.dump_folder import bundled_dumps
from tests.support.dump_log_check import check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.decode.tasks import TaskReport
    from tests.support.dump_folder import DumpFolder

DUMPS = bundled_dumps()


def run_tasks(inputs: list[str], staging: Path) -> Iterator[TaskReport]:
    """Decode as the job does, in this process."""
    slices = plan(inputs).slices
    for number, chosen in enumerate(packed(slices)):
        numbered = [(index, slices[index]) for index in chosen]
        yield run_task(number, numbered, Settings(str(staging)))


def rows_of(report: TaskReport) -> Iterator[DecodedRow]:
    """Read the rows of a task's parts."""
    for part in report.parts:
        yield from rows_of_part(part)


COPIES = [
    pytest.param(dump, chosen, id=f"{dump.root.name}-{'+'.join(chosen)}")
    for dump in DUMPS
    for chosen in [[copy] for copy in dump.copies] + [dump.copies] * (len(dump.copies) > 1)
]


@pytest.mark.parametrize(("dump", "copies"), COPIES)
def test_each_printed_record_has_its_row(
    dump: DumpFolder, copies: list[str], tmp_path: Path
) -> None:
    inputs = [f"{copy}={dump.root / copy}" for copy in copies]
    reports = list(run_tasks(inputs, tmp_path))
    found = check(dump, copies, [row for report in reports for row in rows_of(report)])
    print(found.sentence())
    assert found.differences == []
    assert found.compared
    assert all(each.unreadable is None for report in reports for each in report.slices)


def test_the_dumps_hold_every_table_that_brokers_of_these_releases_write(tmp_path: Path) -> None:
    """The comparison is worth something only where there is something to compare."""
    seen: set[str] = set()
    for dump in DUMPS:
        inputs = [f"{copy}={dump.root / copy}" for copy in dump.copies]
        for report in run_tasks(inputs, tmp_path / dump.root.name):
            seen |= {part.table.rpartition("/")[2] for part in report.parts if part.rows}
    assert seen >= {
        "offset_commit",
        "group_metadata",
        "consumer_group_metadata",
        "consumer_group_partition_metadata",
        "consumer_group_member_metadata",
        "consumer_group_target_assignment_metadata",
        "consumer_group_target_assignment_member",
        "consumer_group_current_member_assignment",
        "consumer_group_regular_expression",
        "share_group_partition_metadata",
        "share_group_member_metadata",
        "share_group_metadata",
        "share_group_target_assignment_metadata",
        "share_group_target_assignment_member",
        "share_group_current_member_assignment",
        "share_group_state_partition_metadata",
        "streams_group_metadata",
        "streams_group_member_metadata",
        "streams_group_target_assignment_metadata",
        "streams_group_target_assignment_member",
        "streams_group_current_member_assignment",
        "streams_group_topology",
        "share_snapshot",
        "share_update",
        "transaction_log",
        "topic_record",
        "partition_record",
        "partition_change_record",
        "config_record",
        "register_broker_record",
        "broker_registration_change_record",
        "feature_level_record",
        "producer_ids_record",
        "remove_topic_record",
        "clear_elr_record",
        "begin_transaction_record",
        "end_transaction_record",
        "control_markers",
    }


def test_the_records_that_an_election_threw_away_are_on_the_lost_line(tmp_path: Path) -> None:
    (dump,) = (each for each in DUMPS if each.root.name == "kafka-4.3.1-failover")
    told = json.loads((dump.root / "tools" / "divergence.json").read_text("utf-8"))
    inputs = [f"{copy}={dump.root / copy}" for copy in dump.copies]
    lost = Counter(
        f"{row.values['topic']}-{row.values['partition']}"
        for report in run_tasks(inputs, tmp_path)
        for row in rows_of(report)
        if row.line == "broker-1"
    )
    assert lost == {
        each["partition"]: each["dead_copy_records_lost"]
        for each in told
        if each["partition"].startswith("__") and each.get("dead_copy_records_lost")
    }
