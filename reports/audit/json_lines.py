"""Findings for programs, one a line, written as `json.dumps` writes them, but by columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

import polars as pl
import pyarrow as pa

from reports.layout.cells import with_times

_AT_ONCE: Final = 20_000
_ROW: Final = "row"
_ESCAPES: Final = {
    each: json.dumps(each)[1:-1] for each in ('"', "\\", *(chr(code) for code in range(32)))
}
"""What JSON cannot have within a text, and what stands for it."""


def json_lines(findings: Iterable[pa.Table]) -> Iterator[str]:
    """Yield findings as lines, in pieces; times are as they are printed everywhere.

    Args:
        findings: Rows of `findings`, some after the others.
    """
    for piece in findings:
        for start in range(0, piece.num_rows, _AT_ONCE):
            rows = pl.DataFrame(pl.from_arrow(with_times(piece.slice(start, _AT_ONCE))))
            lines = rows.select(_object(rows, {"evidence": _records(rows["evidence"])}))
            yield lines.to_series().str.join("\n").item() + "\n"


def _records(evidence: pl.Series) -> pl.Series:
    """Return a list of objects for each finding."""
    listed = evidence.rename(_ROW).to_frame().with_row_index("finding")
    records = listed.filter(pl.col(_ROW).list.len() > 0).explode(_ROW)
    fields = records[_ROW].struct.unnest()
    objects = pl.DataFrame({"finding": records["finding"]}).with_columns(
        fields.select(_object(fields)).to_series().alias(_ROW)
    )
    joined = objects.group_by("finding", maintain_order=True).agg(pl.col(_ROW).str.join(", "))
    lists = listed.select("finding").join(joined, on="finding", how="left", maintain_order="left")
    return pl.select(pl.format("[{}]", lists[_ROW].fill_null(""))).to_series()


def _object(rows: pl.DataFrame, written: dict[str, pl.Series] | None = None) -> pl.Expr:
    """Return the object of each row.

    Args:
        rows: Texts and whole numbers.
        written: Columns that are JSON already, by name.
    """
    parts: list[pl.Expr] = []
    for name, kind in rows.schema.items():
        parts.append(pl.lit(f"{', ' if parts else '{'}{json.dumps(name)}: "))
        if written and name in written:
            parts.append(pl.lit(written[name]))
        else:
            value = _text(pl.col(name)) if kind == pl.String else pl.col(name).cast(pl.String)
            parts.append(value.fill_null("null"))
    return pl.concat_str(*parts, pl.lit("}"))


def _text(column: pl.Expr) -> pl.Expr:
    escaped = column.str.replace_many(list(_ESCAPES), list(_ESCAPES.values()))
    return pl.concat_str(pl.lit('"'), escaped, pl.lit('"'))
