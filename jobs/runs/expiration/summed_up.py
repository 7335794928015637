"""An answer that is longer than a person reads: its worst rows, and how many offsets fare how."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.output_format import OutputFormat
from reports.layout.worst_rows import MOST, SHOWN
from reports.quantities import count as counted


def as_format(output_format: str) -> OutputFormat:
    """Return a format, which may be named by its name alone, with what is asked for besides."""
    if isinstance(output_format, OutputFormat):
        return output_format
    return OutputFormat(output_format)


def is_up_to_us(wanted: OutputFormat) -> bool:
    """Return whether people are shown the worst rows: nobody asked for a table, or for rows."""
    return not (wanted.is_for_programs or wanted.table or wanted.top is not None)


def summed_up(output_format: str, fates: pa.Table) -> tuple[OutputFormat, str]:
    """Return in which format people are shown the tables, and what is said before them.

    Args:
        output_format: As asked for; who asks for one table, or for a number of rows, gets that.
        fates: `status`, and how many `offsets` of a group have it.

    Returns:
        The second is empty where all is shown.
    """
    wanted = as_format(output_format)
    offsets = pc.sum(fates["offsets"]).as_py() or 0
    if not is_up_to_us(wanted) or offsets <= MOST:
        return wanted, ""
    shortened = OutputFormat(
        str(wanted),
        is_wide=wanted.is_wide,
        top=SHOWN,
        sort=wanted.sort,
        only_problems=wanted.only_problems,
        is_colored=wanted.is_colored,
    )
    statuses = fates.group_by("status").aggregate([("offsets", "sum")]).to_pylist()
    numbers = sorted(((each["offsets_sum"], each["status"]) for each in statuses), reverse=True)
    told = ", ".join(f"{number:,} {status}" for number, status in numbers)
    shows = f"The first {SHOWN:,} rows of each table, worst first; --top N shows N"
    return shortened, f"{counted(offsets, 'offset')}: {told}. {shows}."
