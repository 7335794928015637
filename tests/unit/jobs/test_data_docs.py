"""`--data-docs DIR`: pages of an earlier audit are replaced, those of others are not touched."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from analytics.contracts import table_of
from analytics.errors import OutputRefusedError
from analytics.tables.parted_table import PartedTable
from jobs.audit.data_docs import earlier_pages, write_data_docs
from schemas import table
from schemas.expectation_suites import expected_by_contract
from tests.support.quality_rows import VALIDATION, quality_row


def rows_of(*names: str) -> PartedTable:
    rows = [quality_row(each) for name in names for each in expected_by_contract(table(name))]
    found: pa.Table = table_of("data_quality", rows)
    return PartedTable.held(found)


def files_in(folder: Path) -> set[str]:
    return {each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file()}


def test_pages_that_the_next_audit_does_not_make_are_removed_and_other_files_stay(
    tmp_path: Path,
) -> None:
    folder = str(tmp_path)
    assert write_data_docs(folder, rows_of("lag", "groups"), {}, VALIDATION) == (
        f"{folder}/index.html"
    )
    assert files_in(tmp_path) == {
        *("index.html", "pages.json", "contract/lag.html", "contract/groups.html"),
    }
    (tmp_path / "contract" / "mine.html").write_text("mine")
    write_data_docs(folder, rows_of("lag"), {}, VALIDATION)
    assert files_in(tmp_path) == {
        *("index.html", "pages.json", "contract/lag.html", "contract/mine.html"),
    }
    assert earlier_pages(folder) == {"contract/lag.html"}


def test_a_folder_that_is_not_there_has_no_pages(tmp_path: Path) -> None:
    assert earlier_pages(str(tmp_path / "new" / "docs")) == frozenset()


@pytest.mark.parametrize(
    "listed",
    [
        *("no json", '"contract/lag.html"', "{}", "[7]"),
        *(json.dumps([path]) for path in ("../mine.html", "./mine.html", "/etc/mine.html")),
        *(json.dumps([path]) for path in ("a/b/mine.html", "contract/mine.txt", "a/../mine.html")),
    ],
)
def test_a_list_that_no_audit_wrote_is_refused(tmp_path: Path, listed: str) -> None:
    (tmp_path / "pages.json").write_text(listed)
    with pytest.raises(OutputRefusedError, match="pages that no audit wrote"):
        earlier_pages(str(tmp_path))
