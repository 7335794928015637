"""The text of the files: offsets as Kafka's tools take them, and what was refused."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

import pyarrow as pa

from reports.row_formats import inert

REFUSED_COLUMNS = (
    *("group_id", "topic", "partition", "committed_offset", "present_offset", "reason", "detail"),
)


def offsets_text(rows: pa.Table) -> str:
    """Return the lines ``topic,partition,offset`` of one group (``CsvUtils.CsvRecordNoGroup``).

    No header: the tool would take it for an offset. Names of topics need no quotes.

    Args:
        rows: `topic`, `partition`, `committed_offset`.
    """
    columns = (rows[name].to_pylist() for name in ("topic", "partition", "committed_offset"))
    return "".join(f"{topic},{number},{at}\n" for topic, number, at in zip(*columns, strict=True))


def refused_text(rows: pa.Table) -> str:
    """Return `refused.csv`, with a header; no spreadsheet takes a name in it for a formula."""
    columns = (inert(rows[name]).to_pylist() for name in REFUSED_COLUMNS)
    return _csv(REFUSED_COLUMNS, zip(*columns, strict=True))


def _csv(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(rows)
    return out.getvalue()
