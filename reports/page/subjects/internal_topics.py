"""The internal topics: what fills them, whether the cleaner runs, and what does not fit.

Capacity: what the internal topics hold by type and by group, how fast commits fill them.

Nothing in one dump says how large a disk is, nor how fast a cleaned log grows: when a disk is full
an audit says that knows an earlier one and the size, and others say what would tell it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reports.charts.offsets import largest_lags, log_bytes
from reports.page.model import Figure, Grid, Subject
from reports.page.rows import (
    Shown,
    cell_text,
    columns_of,
    dicts,
    figure,
    grid_of,
    harmless,
    labels,
    of_so_many,
    place,
    read_of,
)
from reports.page.workspace_tables import WorkspaceTables
from reports.plain_text import count

if TYPE_CHECKING:
    from schemas.manifest import Manifest


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


_MOST_TOP: Final = 12
_USAGE, _COMMITTERS = "topic_usage", "committers"
_HELD: Final = columns_of(_USAGE, "page")
_WRITERS: Final = columns_of(_COMMITTERS, "page")
_TYPE: Final = ["topic", "record_type"]
_SUMMED: Final = ("records", "bytes", "live_bytes")
_ENDS: Final = ("first_timestamp", "last_timestamp")
_DAY_MS: Final = 24 * 60 * 60 * 1000
_SHORTEST_MS: Final = 60 * 1000
"""What lies closer together gives no rate."""
_A_DAY, _A_DAY_BOUND = "bytes_per_day", "bytes_per_day_bound"


def _with_bound(view: str) -> tuple[Shown, ...]:
    return tuple(
        replace(each, bound=_A_DAY_BOUND) if each.name == _A_DAY else each
        for each in columns_of(_USAGE, view)
    )


_OF_TYPES: Final = _with_bound("page_of_types")
_OF_TOPICS: Final = _with_bound("page_of_topics")
_AT_LEAST, _ESTIMATED = "at_least", "estimated"
_HOW: Final = (
    "Bytes a day are those of the records that a topic has by the time from its first to its last "
    "one, uncompressed and without batch headers; at least so many where the cleaner, or a "
    "deletion, took some, and none where a clock was set or wrong."
)
_MOST_HELD: Final = (
    ("bytes", "descending"),
    *((name, "ascending") for name in ("topic", "partition", "group_id", "record_type")),
)
_MOST_WRITTEN: Final = (("bytes_per_day", "descending"), ("group_id", "ascending"))
_DISK: Final = (
    "When a disk is full cannot be told: one dump says neither how large disks are nor how fast "
    "logs grow that a cleaner works on. An audit with --since, of an earlier one of the same "
    "brokers, and --disk-size tells it."
)
_NO_RATE: Final = (
    "When a disk is full cannot be told here, of each for the reason in its row. How fast its logs "
    "grow tells an audit with --since, of an earlier one of the same brokers."
)
_DISKS: Final = "trend_disks"
_FULL: Final = columns_of(_DISKS)
_AT_LATEST: Final = (
    "A disk is full at the latest then: what else lies on it, beside what the dump shows, takes "
    "room, too."
)


def capacity(read: WorkspaceTables, stories: frozenset[str]) -> Subject | None:
    """Return the subject; None where it was not asked."""
    if not read.has(_USAGE) or not read.has(_COMMITTERS):
        return None
    types = _by_type(read)
    topics = _with_rates(_summed_by(types, ["topic"]), read.manifest)
    held = read.largest(_USAGE, _MOST_HELD, _MOST_TOP, [*read_of(_HELD), "partition"])
    written = read.largest(_COMMITTERS, _MOST_WRITTEN, _MOST_TOP, read_of(_WRITERS))
    usage, committers = f"evaluations/{_USAGE}", f"evaluations/{_COMMITTERS}"
    return Subject(
        anchor="capacity",
        title="Capacity",
        question="What do the internal topics hold, and how many bytes a day come, by whom?",
        notes=(
            *_rates(read),
            *([_HOW] if topics.height else []),
            _of_disks(read),
        ),
        grids=(
            *_disks(read),
            grid_of(
                "capacity-topics",
                "Bytes by internal topic, the most first",
                topics.to_arrow(),
                _OF_TOPICS,
                top=_MOST_TOP,
                source=f"the sums of {usage}",
            ),
            grid_of(
                "capacity-types",
                "Bytes by topic and record type, the most first",
                _with_rates(types, read.manifest).to_arrow(),
                _OF_TYPES,
                top=_MOST_TOP,
                source=f"the sums of {usage}",
            ),
            of_so_many(
                grid_of(
                    "capacity-writers",
                    "Groups by the bytes a day that their commits take",
                    written,
                    _WRITERS,
                    top=_MOST_TOP,
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
                    top=_MOST_TOP,
                    source=usage,
                    stories=stories,
                ),
                read.count(_USAGE),
                usage,
            ),
        ),
    )


def _of_disks(read: WorkspaceTables) -> str:
    """Return what is to know of full disks."""
    if not read.count(_DISKS):
        return _DISK
    is_any_full = bool(read.rows(_DISKS, ["full_at"])["full_at"].drop_null().length())
    return _AT_LATEST if is_any_full else _NO_RATE


def _disks(read: WorkspaceTables) -> Iterator[Grid]:
    """Yield when the disks of brokers are full, where somebody asked."""
    if read.count(_DISKS):
        yield grid_of(
            "capacity-disks",
            "When disks are full",
            read.rows(_DISKS),
            _FULL,
            top=_MOST_TOP,
            source=f"evaluations/{_DISKS}",
        )


def _by_type(read: WorkspaceTables) -> pl.DataFrame:
    """Return records and bytes of each topic and record type, the most bytes first.

    Bytes are null where those of any partition are not known: archived rows have none.

    Returns:
        `_TYPE`, `_SUMMED`, and when the first and the last record of the topic were written.
    """
    parts = [
        _summed_by(pl.DataFrame(pl.from_arrow(piece)).cast(_KINDS), _TYPE)
        for piece in read.tables.pieces(_USAGE, [*_TYPE, *_SUMMED, *_ENDS])
    ]
    first, last = (pl.col(name) for name in _ENDS)
    return _summed_by(pl.concat(parts), _TYPE).with_columns(
        first.min().over("topic"), last.max().over("topic")
    )


_KINDS: Final = pl.Schema(
    [
        *((name, pl.String()) for name in _TYPE),
        *((name, pl.Int64()) for name in _SUMMED),
        *((name, pl.Datetime("ms", "UTC")) for name in _ENDS),
    ]
)


def _summed_by(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return sums and ends of rows by some columns, the most bytes first."""
    first, last = _ENDS
    sums = rows.group_by(keys).agg(
        *(
            pl.when(pl.col(name).is_not_null().all()).then(pl.col(name).sum()).alias(name)
            for name in _SUMMED
        ),
        pl.col(first).min(),
        pl.col(last).max(),
    )
    descending = [True, *(False for _ in keys)]
    return sums.sort("bytes", *keys, descending=descending, nulls_last=True)


def _with_rates(rows: pl.DataFrame, manifest: Manifest) -> pl.DataFrame:
    """Add how many bytes a day came, and how sure that is.

    Args:
        rows: `topic`, `bytes`, `_ENDS`.
        manifest: Of the workspace: it says where records are gone, and clocks were set.
    """
    partitions = [each for each in manifest["partitions"] if each.get("is_leading", True)]
    with_clocks = {each["topic"] for each in partitions if each.get("clock_steps")}
    with_clocks |= {
        led["topic"] for clock in manifest.get("leader_clocks", ()) for led in clock["led"]
    }
    lacking = {each["topic"] for each in partitions if each.get("complete_from") != 0}
    first, last = (pl.col(name) for name in _ENDS)
    took = (last - first).dt.total_milliseconds()
    is_known = (took >= _SHORTEST_MS) & ~pl.col("topic").is_in(sorted(with_clocks))
    rate = (pl.col("bytes") * (_DAY_MS / took)).round(0).cast(pl.Int64)
    is_least = pl.col("topic").is_in(sorted(lacking))
    bound = pl.when(is_least).then(pl.lit(_AT_LEAST)).otherwise(pl.lit(_ESTIMATED))
    return rows.with_columns(
        pl.when(is_known).then(rate).alias(_A_DAY),
        pl.when(is_known).then(bound).alias(_A_DAY_BOUND),
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
