"""Capacity: what the internal topics hold by type and by group, how fast commits fill them.

Nothing in one dump says how large a disk is, nor how fast a cleaned log grows: when a disk is full
cannot be told, and the page says what would tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl
import pyarrow as pa

from reports.page.model import Subject
from reports.page.rows import columns_of, grid_of, of_so_many, read_of
from reports.page.texts import cell_text
from reports.page.workspace_tables import WorkspaceTables
from reports.quantities import count

_MOST_ROWS: Final = 12
_USAGE, _COMMITTERS = "topic_usage", "committers"
_TYPES: Final = columns_of(_USAGE, "page_of_types")
_HELD: Final = columns_of(_USAGE, "page")
_WRITERS: Final = columns_of(_COMMITTERS, "page")
_TYPE: Final = ["topic", "record_type"]
_SUMMED: Final = ("records", "bytes", "live_bytes")
_MOST_HELD: Final = (
    ("bytes", "descending"),
    *((name, "ascending") for name in ("topic", "partition", "group_id", "record_type")),
)
_MOST_WRITTEN: Final = (("bytes_per_day", "descending"), ("group_id", "ascending"))
_DISK: Final = (
    "When a disk is full cannot be told: one dump says neither how large disks are nor how fast "
    "logs grow that a cleaner works on. The command usage tells it of two dumps of the same "
    "brokers, with --since and --disk."
)


def capacity(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject; None where it was not asked."""
    if not read.has(_USAGE) or not read.has(_COMMITTERS):
        return None
    types = _by_type(read)
    held = read.largest(_USAGE, _MOST_HELD, _MOST_ROWS, [*read_of(_HELD), "partition"])
    written = read.largest(_COMMITTERS, _MOST_WRITTEN, _MOST_ROWS, read_of(_WRITERS))
    usage, committers = f"evaluations/{_USAGE}", f"evaluations/{_COMMITTERS}"
    return Subject(
        anchor="capacity",
        title="Capacity",
        question="What do the internal topics hold, and how many bytes a day come, by whom?",
        notes=(*_rates(read), _DISK),
        grids=(
            grid_of(
                "capacity-types",
                "Bytes by topic and record type, the most first",
                types,
                _TYPES,
                top=_MOST_ROWS,
                source=f"the sums of {usage}",
            ),
            of_so_many(
                grid_of(
                    "capacity-writers",
                    "Groups by the bytes a day that their commits take",
                    written,
                    _WRITERS,
                    top=_MOST_ROWS,
                    source=committers,
                    stories=stories,
                ),
                read.count(_COMMITTERS),
                committers,
            ),
            of_so_many(
                grid_of(
                    "capacity-held",
                    "What groups hold by record type, the most bytes first",
                    held,
                    _HELD,
                    top=_MOST_ROWS,
                    source=usage,
                    stories=stories,
                ),
                read.count(_USAGE),
                usage,
            ),
        ),
    )


def _by_type(read: WorkspaceTables) -> pa.Table:
    """Return records and bytes of each topic and record type, the most bytes first.

    Bytes are null where those of any partition are not known: archived rows have none.
    """
    parts = [
        _added(pl.DataFrame(pl.from_arrow(piece)).cast(dict.fromkeys(_TYPE, pl.String)))
        for piece in read.tables.pieces(_USAGE, [*_TYPE, *_SUMMED])
    ]
    rows = _added(pl.concat(parts)).sort(
        "bytes", *_TYPE, descending=[True, False, False], nulls_last=True
    )
    kinds = [*((name, pa.string()) for name in _TYPE), *((name, pa.int64()) for name in _SUMMED)]
    return rows.to_arrow().cast(pa.schema(kinds))


def _added(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by(_TYPE).agg(
        pl.when(pl.col(name).is_not_null().all()).then(pl.col(name).sum()).alias(name)
        for name in _SUMMED
    )


def _rates(read: WorkspaceTables) -> Iterator[str]:
    """Yield how many bytes a day commits take, and of how many groups that is not known."""
    known, unknown, total = 0, 0, 0
    for piece in read.tables.pieces(_COMMITTERS, ["bytes_per_day"]):
        rates = pl.DataFrame(pl.from_arrow(piece))["bytes_per_day"].cast(pl.Int64)
        known += rates.len() - rates.null_count()
        unknown += rates.null_count()
        total += int(rates.sum() or 0)
    if known:
        more = f"; of {count(unknown, 'more group')} it cannot be told" if unknown else ""
        least = "at least " if unknown else ""
        yield (
            f"Commits of {count(known, 'group')} take {least}{cell_text(total, 'bytes')} a day on "
            "each copy, before cleaning, uncompressed and without batch headers, at the rate of "
            f"the time that is shown{more}."
        )
    elif unknown:
        yield (
            f"How many bytes a day the commits of {count(unknown, 'group')} take cannot be told: "
            "what is left of them is too short a time."
        )
