"""What `expiration` cannot tell is said with its reason, and shown by the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from analytics.contracts import arrow_rows
from analytics.questions.expiration import question as expiration
from analytics.questions.expiration.offset_expiration import fates, notes
from analytics.questions.expiration.tables import FATES, ExpirationTables
from analytics.tables.parted_table import PartedTable
from reports.answers import expiration as shown
from reports.answers.expiration import summed_up
from reports.layout.output_format import OutputFormat
from schemas import table
from tests.conftest import Groupscope
from tests.support.written_workspace import group, write_workspace

MAKES = ("offset_expiration", "offset_removals", "retention_what_if", "group_endings")
OFFSET = {
    "group_id": "billing",
    "topic": "orders",
    "partition": 0,
    "committed_offset": 7,
    "rule": "subscribed_topic",
    "status": "protected",
}


def evaluated(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    columns = {
        each.name: pa.array(
            [row.get(each.name) for row in rows], _TYPES.get(each.type, pa.string())
        )
        for each in table(name).columns
    }
    return pa.table(columns)


_TYPES = {"int": pa.int32(), "bigint": pa.int64(), "timestamp": pa.timestamp("us", "UTC")}


@pytest.mark.parametrize(
    ("status", "note", "code"),
    [
        ("cannot_tell", "no record shows it", 3),
        ("scheduled", "due already", 0),
        ("scheduled", None, 0),
    ],
)
def test_a_protection_that_no_record_shows_is_not_sure(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    groupscope: Groupscope,
    status: str,
    note: str | None,
    code: int,
) -> None:
    made = {name: evaluated(name, []) for name in MAKES}
    made["offset_expiration"] = evaluated(
        "offset_expiration", [{**OFFSET, "status": status, "note": note}]
    )
    frame = pl.DataFrame(pl.from_arrow(made["offset_expiration"]))
    made[FATES] = arrow_rows(fates(frame))
    tables = {name: PartedTable.held(rows) for name, rows in made.items()}
    answer = ExpirationTables(tables, notes(frame))
    monkeypatch.setattr(expiration, "expiry_tables", lambda *_: answer)
    workspace = write_workspace(
        tmp_path / "space",
        {"groups": [group("billing")]},
        partitions=[{"partition": 0, "complete_from": 0, "last_timestamp": None}],
    )
    ran = groupscope("expiration", workspace, "--group", "billing", "--format", "json")
    assert ran.returncode == code
    doubt = "whether and when 1 offset will expire: no record shows it"
    assert (doubt in ran.stdout) == (code == 3)
    assert (doubt in ran.stderr) == (code == 3)


def test_an_answer_longer_than_a_person_reads_is_summed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = [{**OFFSET, "partition": number} for number in range(3)]
    offsets[1]["status"] = "overdue"
    frame = pl.DataFrame(pl.from_arrow(evaluated("offset_expiration", offsets)))
    rows = PartedTable.held(arrow_rows(fates(frame)))
    assert summed_up(OutputFormat("text"), rows) == ("text", "")
    monkeypatch.setattr(shown, "MOST", 2)
    shortened, said = summed_up(OutputFormat("text"), rows)
    assert shortened.top == shown.SHOWN
    assert said.startswith("3 offsets: 2 protected, 1 overdue.")
    # Who asks for a table, or how many rows, gets that.
    for asked in (OutputFormat("text", table="offsets"), OutputFormat("text", top=3)):
        assert summed_up(asked, rows) == (asked, "")
