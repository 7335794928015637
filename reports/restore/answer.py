"""What `restore` writes into its folder, and what it says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.output_format import OutputFormat
from reports.restore.commands import commands_text
from reports.restore.files import offsets_text, refused_text
from reports.restore.groups import restored_groups
from reports.restore.summary import render_plan
from reports.row_formats import Text

COMMANDS: Final = "commands.sh"
REFUSED: Final = "refused.csv"


def restore_files(tables: Mapping[str, pa.Table], title: str) -> dict[str, str]:
    """Return the text of the files by name: commands, what is refused, and offsets by group.

    Args:
        tables: `restore_plan` and `restore_groups`.
        title: What is given back, in one line.
    """
    plan = tables["restore_plan"]
    resets = [each.reset for each in restored_groups(tables["restore_groups"]) if each.reset]
    files = {
        COMMANDS: commands_text(title, resets),
        REFUSED: refused_text(plan.filter(pc.equal(plan["verdict"], "refused"))),
    }
    restored = plan.filter(pc.equal(plan["verdict"], "restore"))
    starts = _starts(restored["group_id"])
    for each in resets:
        start, length = starts[each.group]
        files[each.file] = offsets_text(restored.slice(start, length))
    return files


def restore_text(
    tables: Mapping[str, pa.Table],
    output_format: OutputFormat,
    metadata: Mapping[str, Any],
    *,
    with_offsets: bool,
    notes: Sequence[str],
) -> Text:
    """Return the answer as text.

    Args:
        tables: `restore_plan` and `restore_groups`.
        output_format: The format.
        metadata: What JSON has beside `counts` and `rows`.
        with_offsets: Every offset is shown to people too; programs always get them.
        notes: What people are told besides, one sentence each.
    """
    rows = [each.row for each in restored_groups(tables["restore_groups"])]
    text = render_plan(
        rows, tables["restore_plan"], output_format, metadata, with_offsets=with_offsets
    )
    return text if output_format.is_for_programs else "\n".join(["".join(text), *notes])


def _starts(names: pa.ChunkedArray) -> dict[str, tuple[int, int]]:
    """Return where the rows of each group start, and how many there are; they are sorted."""
    runs = pc.run_end_encode(names.combine_chunks()) if len(names) else None
    starts: dict[str, tuple[int, int]] = {}
    start = 0
    if runs is not None:
        for name, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            starts[name] = (start, end - start)
            start = end
    return starts
