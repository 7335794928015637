"""`--data-docs DIR`: what came of expectations, as pages of great-expectations in a folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from analytics.errors import AbsentFileError, OutputRefusedError
from analytics.locations import is_uri, join, local_path
from analytics.questions.data_quality.data_docs import INDEX, Validation, data_docs
from analytics.questions.data_quality.question import expectations_of
from analytics.side_files import read_bytes
from jobs.cli.written_text import remove_file, write_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.tables.parted_table import PartedTable
    from schemas.expectation_suites import Expectation

PAGES: Final = "pages.json"
"""The pages of the folder, so that those which the next audit does not make can be removed."""
_PAGE: Final = re.compile(r"(?!\.\.?/)[\w.-]+/\w+\.html", re.ASCII)


def earlier_pages(folder: str) -> frozenset[str]:
    """Return the pages that an earlier audit left in a folder.

    Raises:
        OutputRefusedError: It is no folder, or one with pages of something else.
        GroupscopeError: It cannot be read.
    """
    if not is_uri(folder) and Path(local_path(folder)).is_file():
        raise OutputRefusedError(f"--data-docs {folder} is a file: name a folder")
    try:
        found = json.loads(read_bytes(join(folder, PAGES)))
    except AbsentFileError:
        if _is_there(join(folder, INDEX)):
            raise _of_others(folder) from None
        return frozenset()
    except ValueError as error:
        raise _of_others(folder) from error
    is_list = isinstance(found, list) and all(isinstance(each, str) for each in found)
    if not is_list or not all(map(_PAGE.fullmatch, found)):
        raise _of_others(folder)
    return frozenset(found)


def write_data_docs(
    folder: str,
    rows: PartedTable,
    suites: Mapping[str, Sequence[Expectation]],
    validation: Validation,
) -> str:
    """Write the pages of an audit, and remove those of an earlier one; return where they begin.

    Args:
        folder: Where.
        rows: The table `data_quality`: a row for each expectation.
        suites: A team's own expectations, by table, as far as their arguments may be shown.
        validation: When which dump was audited.

    Raises:
        OutputRefusedError: It is no folder, one with pages of something else, or a store refuses.
        OSError: It cannot be written on this machine.
    """
    before = earlier_pages(folder)
    shown = list(_rows_of(rows))
    expected = {
        (name, each.suite, each.name): each
        for name in dict.fromkeys(row["table"] for row in shown)
        for each in expectations_of(name, suites)
    }
    written = set()
    for page in data_docs(shown, expected, validation):
        write_text(join(folder, page.path), page.html)
        written.add(page.path)
    index = join(folder, INDEX)
    written.discard(INDEX)
    write_text(join(folder, PAGES), json.dumps(sorted(written), indent=1))
    for each in before - written:
        remove_file(join(folder, each))
    return index


def _rows_of(rows: PartedTable) -> Iterator[dict[str, Any]]:
    for piece in rows.pieces():
        yield from piece.to_pylist()


def _is_there(location: str) -> bool:
    try:
        read_bytes(location)
    except AbsentFileError:
        return False
    return True


def _of_others(folder: str) -> OutputRefusedError:
    return OutputRefusedError(
        f"--data-docs {folder} has pages that no audit wrote: name a folder of their own"
    )
