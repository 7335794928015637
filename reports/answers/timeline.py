"""The answer of `timeline`: verdicts on offsets, then the events, then what history is gone.

For people, partitions of which all is equal are one row. An event says when, what, to whom, and
which record says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reports.layout.cells import instants, times, with_values
from reports.layout.output_format import OutputFormat
from reports.layout.section import (
    ROWS,
    LongSection,
    Rows,
    Section,
    first_rows,
    heads_of,
    raw_section,
    table_section,
)
from reports.plain_text import nothing, paragraphs
from reports.row_formats import Text, render, rendered
from schemas import table
from schemas.evaluation_rules import SINCE, harmless_verdicts, timeline_verdicts

# The words of verdicts on offsets, in place of their codes (`schemas/rules/timeline.json`).

_TIME: Final = "%Y-%m-%dT%H:%M:%S%.3fZ"
_VERDICT: Final = "verdict"


def in_words(rows: pa.Table) -> pa.Table:
    """Return rows of `offset_verdicts` with words for people in `verdict`.

    Args:
        rows: Has `verdict`, and `since`.
    """
    if not rows.num_rows:
        return rows
    codes = pl.DataFrame(pl.from_arrow(rows.select([_VERDICT, "since"])))
    words = codes.select(_worded()).to_series().to_arrow(compat_level=pl.CompatLevel.oldest())
    return with_values(rows, _VERDICT, words.cast(pa.string()))


def _worded() -> pl.Expr:
    words = {code: each.words for code, each in timeline_verdicts().items()}
    text = pl.col(_VERDICT).replace_strict(words, return_dtype=pl.String)
    timed = text.str.replace(SINCE, pl.col("since").dt.strftime(_TIME), literal=True)
    return pl.when(text.str.contains(SINCE, literal=True)).then(timed).otherwise(text)


def words_of(code: str) -> str:
    """Return the words of a verdict that has no time in them.

    Raises:
        KeyError: There is no such verdict.
    """
    return timeline_verdicts()[code].words


# Verdicts as people read them: partitions of which all is equal are one row.

_COLUMNS = (
    *(("group_id", pa.string()), ("topic", pa.string()), ("partition", pa.int32())),
    ("verdict", pa.string()),
    *((name, pa.timestamp("us", "UTC")) for name in ("since", "at", "not_before")),
    *((name, pa.int64()) for name in ("was", "became", "cost")),
    *((name, pa.string()) for name in ("confidence", "rung", "record", "reason")),
)
RAW: Final = pa.schema(_COLUMNS)
"""What is read of the table `offset_verdicts`."""
_PARTITIONS: Final = "partitions"
_TIMES: Final = ("not_before", "since")
_ALIKE: Final = ("group_id", "verdict", "since", "at", "reason")


def merged_rows(rows: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Put partitions of a topic together whose verdicts are equal in every column shown.

    Since when no loss is found is said of a whole topic: it holds since the latest of the times of
    its partitions.

    Args:
        rows: Verdicts with the columns of `RAW`; all of a group that have the same one.
        columns: Those that are shown, `partitions` among them.

    Returns:
        The columns that are shown, `not_before` and `since`.
    """
    equal = [*(name for name in columns if name != _PARTITIONS), *_TIMES]
    found = _with_common_times(_said_once(rows)).group_by(equal, maintain_order=True)
    together = found.agg("partition").with_row_index("place")
    return together.join(
        _ranges(together.select("place", "partition")), "place", "left", maintain_order="left"
    ).select(
        *(pl.col(name) if name != _PARTITIONS else pl.col(name).fill_null("") for name in columns),
        *_TIMES,
    )


def _said_once(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out what is said of a partition and of its whole group alike."""
    of_group = pl.col("topic").is_null()
    whole = rows.filter(of_group).select(*_ALIKE, pl.lit(value=True).alias("is_said")).unique()
    marked = rows.join(whole, list(_ALIKE), "left", nulls_equal=True, maintain_order="left")
    return marked.filter(of_group | pl.col("is_said").is_null()).drop("is_said")


def _with_common_times(rows: pl.DataFrame) -> pl.DataFrame:
    # Null where something happened: the latest time of a topic is of those where nothing did.
    latest = pl.col("since").max().over("group_id", "topic")
    return rows.with_columns(pl.when(pl.col("since").is_not_null()).then(latest).alias("since"))


def _ranges(lists: pl.DataFrame) -> pl.DataFrame:
    """Return the numbers of each list as `0, 3-5, 9`."""
    numbers = lists.explode("partition").drop_nulls("partition").sort("place", "partition")
    is_next = pl.col("partition") - pl.col("partition").shift().over("place") == 1
    runs = numbers.with_columns((~is_next.fill_null(value=False)).cum_sum().alias("run"))
    ends = runs.group_by("place", "run", maintain_order=True).agg(
        pl.col("partition").first().alias("first"), pl.col("partition").last().alias("last")
    )
    one, several = pl.format("{}", "first"), pl.format("{}-{}", "first", "last")
    text = pl.when(pl.col("first") == pl.col("last")).then(one).otherwise(several)
    return ends.group_by("place", maintain_order=True).agg(text.str.join(", ").alias(_PARTITIONS))


@dataclass(frozen=True)
class MergedVerdicts:
    """The rows of `merged_rows` of a table of any size.

    Attributes:
        rows: The table `offset_verdicts`, the worst first: a group's are together by verdict.
        columns: Those that are shown, `partitions` among them.
    """

    rows: Rows
    columns: Sequence[str]

    @cached_property
    def num_rows(self) -> int:
        """How many there are."""
        return sum(each.num_rows for each in self.pieces())

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield them in order, some at a time; at least once."""
        for rows in self._merged():
            yield shown_rows(rows if columns is None else rows.select(columns))

    def first(self, most: int) -> pa.Table:
        """Return the first ones."""
        return first_rows(self.pieces(), most)

    def whole(self) -> pa.Table:
        """Return all of them."""
        return pa.concat_tables(self.pieces())

    def _merged(self) -> Iterator[pl.DataFrame]:
        waiting = raw_rows(RAW.empty_table())
        for piece in self.rows.pieces(RAW.names):
            rows = pl.concat([waiting, raw_rows(piece)])
            end = _end_of_groups(rows)
            waiting = rows.slice(end)
            yield merged_rows(rows.head(end), self.columns)
        yield merged_rows(waiting, self.columns)


def _end_of_groups(rows: pl.DataFrame) -> int:
    """Return up to where rows are of groups all of whose rows of a verdict are there."""
    columns = (pl.col("group_id"), pl.col("verdict"))
    is_other = pl.any_horizontal(each != each.last() for each in columns)
    others = rows.select(is_other.arg_true().max()).item()
    return 0 if others is None else int(others) + 1


def raw_rows(rows: pa.Table) -> pl.DataFrame:
    """Return verdicts as a frame with the columns of `RAW`."""
    return pl.DataFrame(pl.from_arrow(rows.select(RAW.names).cast(RAW)))


def shown_rows(rows: pl.DataFrame) -> pa.Table:
    """Return rows of `merged_rows` with the types of `RAW`."""
    kinds = {name: RAW.field(name).type for name in RAW.names} | {_PARTITIONS: pa.string()}
    types = pa.schema([(name, kinds[name]) for name in rows.columns])
    return rows.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(types)


_NOTHING = "Nothing happened in that time."

_VERDICTS = "verdicts"
_Row = Mapping[str, Any]

_EVIDENCE = (
    *("log", "coordinator_partition", "record_offset", "leader_epoch", "copy", "segment"),
    "batch_position",
    *("complete", "missing"),
)
"""What finds the record again, for programs."""


def timeline_text(
    tables: Mapping[str, Rows],
    output_format: OutputFormat,
    metadata: Mapping[str, Any],
    *,
    note: str | None,
) -> Text:
    """Return the answer as text.

    Args:
        tables: `offset_verdicts` and `group_events`.
        output_format: The format.
        metadata: What JSON has beside the tables.
        note: What people are to know of the history besides.
    """
    verdicts = tables["offset_verdicts"]
    events = LongSection(tables["group_events"], _events_section)
    if output_format.is_for_programs:
        return rendered([LongSection(verdicts, raw_verdicts), events], output_format, metadata)
    shown = verdicts_for_people(verdicts, is_wide=output_format.is_wide)
    sections = [each for each in (shown, events) if each.rows.num_rows]
    text = render(sections, output_format, metadata) or nothing(
        _NOTHING, metadata, output_format.width
    )
    return "\n\n".join([text, *([paragraphs([note], output_format.width)] if note else [])])


def _events_section(rows: pa.Table) -> Section:
    section = table_section(event_rows(rows), "group_events", "events", also=_EVIDENCE)
    return replace(section, key=ROWS)


def _heads(*, is_wide: bool) -> dict[str, str]:
    """Return the columns of verdicts; where there is room, the record of each partition.

    COST is records read again, or skipped where it is negative.
    """
    heads = heads_of("offset_verdicts")
    return {name: head for name, head in heads.items() if is_wide or name != "record"}


def verdicts_for_people(verdicts: Rows, *, is_wide: bool) -> LongSection:
    """Return verdicts as people read them, in the order given.

    Args:
        verdicts: The table `offset_verdicts`, the worst first.
        is_wide: Whether there is room for the record of each partition.
    """
    heads = _heads(is_wide=is_wide)
    return LongSection(MergedVerdicts(verdicts, list(heads)), partial(_verdicts_of, heads))


def _verdicts_of(heads: Mapping[str, str], rows: pa.Table) -> Section:
    """Return the section of rows of `MergedVerdicts`."""
    is_harmless = pc.is_in(rows["verdict"], pa.array(sorted(harmless_verdicts()), pa.string()))
    worded = with_values(in_words(rows), "at", instants(rows["at"], rows["not_before"]))
    return Section(
        worded.append_column("went_wrong", pc.invert(is_harmless)),
        heads,
        name=_VERDICTS,
        key=_VERDICTS,
        problem="went_wrong",
        spare=table("offset_verdicts").view().spare,
    )


def raw_verdicts(rows: pa.Table) -> Section:
    """Return verdicts for programs: a row for each partition.

    Args:
        rows: The table `offset_verdicts`.
    """
    return raw_section(rows.select(RAW.names).cast(RAW), _VERDICTS)


def merged(rows: Iterable[_Row], columns: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """Return `merged_rows` of verdicts that are given as dictionaries.

    Args:
        rows: Verdicts.
        columns: Those that are shown; by default all that may be.
    """
    shown = heads_of("offset_verdicts") if columns is None else columns
    return merged_rows(_raw(rows), list(shown)).to_dicts()


def _raw(rows: Iterable[_Row]) -> pl.DataFrame:
    return raw_rows(pa.Table.from_pylist(list(rows), RAW))


def event_rows(events: pa.Table) -> pa.Table:
    """Return events in order as people see them.

    Args:
        events: Rows of `group_events`. What has no time of its own is where its record is.
    """
    order = ["at", "log", "coordinator_partition", "record_offset", "event", "subject"]
    events = events.sort_by([(name, "ascending") for name in order])
    place = pc.binary_join_element_wise(
        events["log"], pc.cast(events["coordinator_partition"], pa.string()), "-"
    )
    record = pc.binary_join_element_wise(place, pc.cast(events["record_offset"], pa.string()), "@")
    return events.append_column("time", times(events["at"])).append_column("record", record)
