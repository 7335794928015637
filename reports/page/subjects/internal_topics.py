"""The internal topics: what fills them, whether the cleaner runs, and what does not fit."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.charts.offsets import largest_lags, log_bytes
from reports.page.model import Figure, Subject
from reports.page.rows import columns_of, dicts, figure, grid_of, labels, place
from reports.page.texts import cell_text, harmless
from reports.page.workspace_tables import WorkspaceTables

# Consistency: lines of history that parted, and records that do not fit.

_MOST_FAULTS: Final = 25
_LINES: Final = columns_of("divergences")
_FAULTS: Final = columns_of("load_faults")
_QUALITY: Final = columns_of(
    "data_quality",
    tones={
        "severity": {"critical": "critical", "warning": "warning"},
        "outcome": {"failed": "critical", "broken": "warning"},
    },
)
_AGREE: Final = "The copies agree, and every record fits what came before it."
_MET: Final = "Every expectation of the tables is met (evaluations/data_quality)."


def consistency(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject: its tables, as far as they have rows."""
    parted, faults = read.rows("divergences"), read.rows("load_faults")
    quality = read.rows("data_quality")
    unmet = (
        quality.filter(pc.not_equal(quality["outcome"], "passed")) if quality.num_rows else quality
    )
    grids = (
        grid_of(
            "divergences-table",
            "Lines of history that did not survive",
            parted,
            _LINES,
            top=_MOST_FAULTS,
            source="history/divergences",
            stories=stories,
        ),
        grid_of(
            "faults-table",
            "Records that do not fit, or that a coordinator refuses to load",
            faults,
            _FAULTS,
            top=_MOST_FAULTS,
            source="history/load_faults",
            stories=stories,
        ),
        grid_of(
            "quality-table",
            "Expectations of the tables that are not met",
            unmet,
            _QUALITY,
            top=_MOST_FAULTS,
            source="evaluations/data_quality",
        ),
    )
    there = tuple(each for each in grids if each.rows)
    notes = (
        *([] if parted.num_rows or faults.num_rows else [_AGREE]),
        *([_MET] if quality.num_rows and not unmet.num_rows else []),
    )
    return Subject(
        anchor="consistency",
        title="Consistency",
        question="Do the copies agree, does every record fit, do the tables hold what they should?",
        notes=notes,
        grids=there,
    )


_MOST_BARS: Final = 12
_MOST_ROWS: Final = 20
_OF_COMMITTERS: Final = ("group_id", "bytes_per_day")
_MOST_BYTES: Final = (("bytes_per_day", "descending"), ("group_id", "ascending"))
_TONES: Final = {
    "dead": "critical",
    "passed_over": "warning",
    "disabled": "warning",
    "due": "warning",
    "cannot_tell": "warning",
    "alive": "good",
    "not_due": "good",
    "nothing_to_clean": "good",
}
_COLUMNS: Final = columns_of("log_cleaning", tones={"verdict": _TONES})
_PARTS: Final = {
    "clean": "clean_bytes",
    "cleanable": "cleanable_bytes",
    "active segment": "active_bytes",
}


def internal_topics(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject; None where it was not asked."""
    if not read.has("log_cleaning"):
        return None
    rows = read.rows("log_cleaning")
    leading = rows.filter(rows["is_leading"]) if rows.num_rows else rows
    largest = _largest_first(read, leading)
    return Subject(
        anchor="internal-topics",
        title="Internal topics",
        question="What fills the internal topics, who writes it, and does the cleaner run?",
        figures=(*_bytes(largest), *_committers(read)),
        grids=(
            grid_of(
                "internal-topics-table",
                "Partitions and their cleaner, the largest first",
                largest,
                _COLUMNS,
                top=_MOST_ROWS,
                source="evaluations/log_cleaning",
                stories=stories,
            ),
        ),
    )


def _largest_first(read: WorkspaceTables, leading: pa.Table) -> pa.Table:
    """Return the copies in force, by the bytes that `coordinator_load` has of them."""
    sizes = {
        (row["topic"], row["partition"]): row["file_bytes"]
        for row in read.rows("coordinator_load").to_pylist()
    }
    found = leading.to_pylist()
    order = sorted(
        range(len(found)),
        key=lambda n: (-(sizes.get((found[n]["topic"], found[n]["partition"])) or 0), n),
    )
    return leading.take(pa.array(order, pa.int64()))


def _bytes(largest: pa.Table) -> tuple[Figure, ...]:
    known = dicts(largest.slice(0, _MOST_BARS), "topic", "partition", *_PARTS.values())
    named = labels(map(place, known))
    rows = [
        {"place": named[place(row)], "part": part, "bytes": row[column]}
        for row in known
        for part, column in _PARTS.items()
        if row[column]
    ]
    first = known[0] if known else None
    parts = (
        ", ".join(f"{cell_text(first[c], 'bytes')} {p}" for p, c in _PARTS.items()) if first else ""
    )
    says = f"The largest is {harmless(place(first))}: {parts}." if first else ""
    return figure(
        "internal-topics-bytes", "What partitions hold, the largest first", says, rows, log_bytes
    )


def _committers(read: WorkspaceTables) -> tuple[Figure, ...]:
    if not read.has("committers"):
        return ()
    most = read.largest("committers", _MOST_BYTES, _MOST_BARS, _OF_COMMITTERS)
    known = [row for row in dicts(most, *_OF_COMMITTERS) if row["bytes_per_day"]]
    named = labels(row["group_id"] for row in known)
    rows = [
        {
            "place": named[row["group_id"]],
            "lag": row["bytes_per_day"],
            "label": cell_text(row["bytes_per_day"], "bytes"),
        }
        for row in known
    ]
    says = f"The first is {harmless(known[0]['group_id'])}." if known else ""
    return figure(
        "internal-topics-committers",
        "Who writes the most commits, in bytes a day",
        says,
        rows,
        largest_lags,
    )
