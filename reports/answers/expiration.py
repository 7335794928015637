"""The answer of `expiration`: all rows for programs; for people the worst, and sums of the rest.

Beside them, as they are shown: endings of groups, and versions of requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from reports.answers.expiration_rows import (
    NAMED_BY,
    RANK,
    Worst,
    group_section,
    offset_section,
    ranked_groups,
    ranked_what_if,
    removal_section,
    what_if_section,
    with_offset_rank,
    with_owners,
    worst_order,
)
from reports.layout.output_format import OutputFormat
from reports.layout.section import (
    MOST,
    SHOWN,
    LongSection,
    Rows,
    Section,
    first_rows,
    folded,
    raw_section,
    scanned,
    table_section,
    words_in,
)
from reports.plain_text import count, nothing, paragraphs
from reports.row_formats import Text, render, rendered

# The worst rows of the tables about expiry, which may be too large to be held.

_NTH: Final = "nth"


def worst_offsets(expiration: Rows, most: int) -> pa.Table:
    """Return the first rows of the table `offset_expiration` in the order that people get."""

    def first_ranked(pieces: Iterable[pa.Table]) -> pa.Table:
        held = _numbered(_ranked_offsets(expiration.first(0)), 0)
        count = 0
        for piece in pieces:
            rows = _numbered(_ranked_offsets(piece), count)
            count += rows.height
            held = pl.concat([held, rows]).bottom_k(most, by=[RANK, _NTH])
        return _arrow(held.sort(RANK, _NTH).drop(RANK, _NTH), expiration)

    return folded(expiration, first_ranked)


def worst_what_if(what_if: Rows, most: int) -> Worst:
    """Return so many rows of the table `retention_what_if`."""
    held = _numbered(ranked_what_if(_frame(what_if.first(0))), 0)
    count, are_named = 0, False
    for piece in what_if.pieces():
        rows = _numbered(ranked_what_if(_frame(piece)), count)
        count += rows.height
        are_named |= _any_named(rows)
        held = _worst(pl.concat([held, rows]), most)
    rows = held.sort(_NTH).drop(RANK, NAMED_BY, _NTH)
    return Worst(_arrow(rows, what_if), count - rows.height, are_named)


def worst_groups(fates: Rows, most: int) -> Worst:
    """Return the fates of so many groups, `Worst.more` being groups, too."""
    held = fates.first(0)
    groups = _numbered(ranked_groups(with_offset_rank(_frame(held))), 0)
    count, are_named = 0, False
    for piece in FatesOfGroups(fates).pieces():
        more = _numbered(ranked_groups(with_offset_rank(_frame(piece))), count)
        count += more.height
        are_named |= _any_named(more)
        groups = _worst(pl.concat([groups, more]), most)
        names = groups["group_id"].to_arrow().cast(pa.string())
        found = pa.concat_tables([held, piece])
        held = found.filter(pc.is_in(found["group_id"], names)).combine_chunks()
    return Worst(held, count - groups.height, are_named)


@dataclass(frozen=True)
class FatesOfGroups:
    """Fates of groups in order, counted by groups: a piece has all of each.

    Attributes:
        fates: As `group_section` takes them.
    """

    fates: Rows

    @cached_property
    def num_rows(self) -> int:
        """How many groups there are."""
        return sum(pc.count_distinct(rows["group_id"]).as_py() for rows in self.pieces())

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the fates of some whole groups after those of others; at least once."""
        begun = self.fates.first(0) if columns is None else self.fates.first(0).select(columns)
        for rows in self.fates.pieces(columns):
            found = pa.concat_tables([begun, rows])
            if not found.num_rows:
                continue
            is_last = pc.equal(found["group_id"], found["group_id"][-1])
            begun = found.filter(is_last)
            yield found.filter(pc.invert(is_last))
        yield begun

    def first(self, most: int) -> pa.Table:
        """Return the fates of the first groups."""
        found, left = [self.fates.first(0)], most
        for rows in self.pieces():
            if left <= 0:
                break
            names = pc.unique(rows["group_id"]).slice(0, left)
            found.append(rows.filter(pc.is_in(rows["group_id"], names)))
            left -= len(names)
        return pa.concat_tables(found)

    def whole(self) -> pa.Table:
        """Return all fates."""
        return self.fates.whole()


@dataclass(frozen=True)
class OwnedOffsets:
    """Offsets of `with_owners`, of any number (`Rows`).

    Attributes:
        expiration: The table `offset_expiration`, by group.
        described: Rows of `describe`, as `with_owners` takes them, by group.
    """

    expiration: Rows
    described: Rows

    @property
    def num_rows(self) -> int:
        """How many offsets there are."""
        return self.expiration.num_rows

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the offsets in order, some at a time; at least once."""
        more, held = self.described.pieces(), self.described.first(0)
        for rows in self.expiration.pieces():
            if rows.num_rows:
                last = rows["group_id"][-1].as_py()
                held = _up_to(last, held, more)
                # Others of the last group may be in the next piece.
                here, held = (
                    held.filter(compare(held["group"], last))
                    for compare in (pc.less_equal, pc.greater_equal)
                )
                rows = with_owners(rows, here)  # noqa: PLW2901 - the same rows, and more of them
            else:
                rows = self.first(0)  # noqa: PLW2901
            yield rows if columns is None else rows.select(list(columns))

    def first(self, most: int) -> pa.Table:
        """Return the first offsets."""
        if not most:
            return with_owners(self.expiration.first(0), self.described.first(0))
        return first_rows(self.pieces(), most)

    def whole(self) -> pa.Table:
        """Return all offsets."""
        return pa.concat_tables(self.pieces())


def _up_to(group: str, held: pa.Table, more: Iterator[pa.Table]) -> pa.Table:
    """Return rows by `group`, with as many more as have those of a group among them."""
    rows = [held]
    while not (rows[-1].num_rows and rows[-1]["group"][-1].as_py() > group):
        piece = next(more, None)
        if piece is None:
            break
        rows.append(piece)
    return pa.concat_tables(rows)


def _ranked_offsets(rows: pa.Table) -> pl.DataFrame:
    return with_offset_rank(_frame(rows))


def _numbered(rows: pl.DataFrame, first: int) -> pl.DataFrame:
    return rows.with_columns((pl.int_range(pl.len()) + first).alias(_NTH))


def _worst(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    return rows.bottom_k(most, by=[*worst_order(), pl.col(_NTH)])


def _any_named(rows: pl.DataFrame) -> bool:
    return rows[NAMED_BY].null_count() < rows.height


def _frame(rows: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(rows))


def _arrow(rows: pl.DataFrame, table: Rows) -> pa.Table:
    types = table.first(0).schema
    return rows.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(types)


_ENDED: Final = "Groups whose offsets have all expired"
_PROBLEM: Final = "still_there"


@dataclass(frozen=True)
class Described:
    """What kafka-consumer-groups says of offsets, as rows of `describe`.

    Attributes:
        of_groups: Takes rows of some groups, None is all of them, and returns what it says of them.
        of_all: Returns what it says of all groups, of any number, by group.
    """

    of_groups: Callable[[pa.Table | None], pa.Table]
    of_all: Callable[[], Rows]


def most_offsets(output_format: OutputFormat) -> int | None:
    """Return how many rows of offsets the text needs, the worst first; None is all of them."""
    is_short = is_up_to_us(output_format) and output_format.sort is None
    return MOST if is_short else None


def shows_requests(output_format: OutputFormat) -> bool:
    """Return whether the text has the table `commit_requests`."""
    if output_format.table:
        return output_format.table == "requests"
    return output_format.is_for_programs


def is_up_to_us(wanted: OutputFormat) -> bool:
    """Return whether people are shown the worst rows: nobody asked for a table, or for rows."""
    return not (wanted.is_for_programs or wanted.table or wanted.top is not None)


def offset_count(fates: Rows) -> int:
    """Return how many offsets there are.

    Args:
        fates: `status`, and how many `offsets` of a group have it.
    """
    return sum(_by_status(fates).values())


def _by_status(fates: Rows) -> Counter[str]:
    """Return how many offsets have which status."""
    found: Counter[str] = Counter()
    for piece in scanned(fates, ["status", "offsets"]):
        for each in piece.group_by("status").aggregate([("offsets", "sum")]).to_pylist():
            found[each["status"]] += each["offsets_sum"]
    return found


def expiration_text(
    tables: Mapping[str, Rows],
    figures: Mapping[str, Any],
    described: Described,
    output_format: OutputFormat,
    metadata: Mapping[str, Any],
) -> Text:
    """Return the answer as text.

    Args:
        tables: Of the question, by name.
        figures: `fates` and `notes` of all offsets, where only the worst have rows.
        described: What kafka-consumer-groups says of the same offsets.
        output_format: The format.
        metadata: What JSON has beside the tables.
    """
    if not output_format.is_for_programs:
        return _for_people(tables, figures, described, output_format, metadata)
    owned = OwnedOffsets(tables["offset_expiration"], described.of_all())
    offsets = partial(offset_section, for_people=False)
    groups = partial(group_section, for_people=False)
    sections = [
        LongSection(owned, offsets),
        LongSection(tables["offset_removals"], partial(raw_section, name="removals")),
        LongSection(tables["retention_what_if"], partial(raw_section, name="what_if")),
        LongSection(FatesOfGroups(figures["fates"]), groups),
        LongSection(tables["group_endings"], _ending_section),
    ]
    if "commit_requests" in tables:
        sections.append(LongSection(tables["commit_requests"], _request_section))
    return rendered(sections, output_format, metadata)


def _for_people(
    tables: Mapping[str, Rows],
    figures: Mapping[str, Any],
    described: Described,
    output_format: OutputFormat,
    metadata: Mapping[str, Any],
) -> str:
    fates, expiration = figures["fates"], tables["offset_expiration"]
    wanted, sums = summed_up(output_format, fates)
    # Who sorts rows by a column picks them from all.
    most = SHOWN if sums and wanted.sort is None else None
    if most:
        shortest, more = worst_offsets(expiration, most), offset_count(fates) - most
        groups = worst_groups(fates, most)
        tried = worst_what_if(tables["retention_what_if"], most)
    else:
        shortest, more = expiration.whole(), 0
        groups, tried = fates.whole(), tables["retention_what_if"].whole()
    owners = described.of_groups(shortest if most else None)
    sections: list[Section | LongSection] = [
        group_section(groups, for_people=True),
        offset_section(
            with_owners(shortest, owners),
            for_people=True,
            has_notes=figures["notes"].num_rows > 0,
            more=more,
        ),
        removal_section(tables["offset_removals"]),
        what_if_section(tried),
    ]
    sections = [each for each in sections if wanted.table or each.rows.num_rows]
    sections += _beside(tables, wanted)
    rules = [metadata["rules_said"], *metadata["retention"], *metadata["findings"]]
    parts = [
        paragraphs([*rules, *([sums] if sums else [])], wanted.width),
        render(sections, wanted, metadata),
    ]
    if not shortest.num_rows:
        parts.append(nothing("No group has committed offsets.", metadata, wanted.width))
    return "\n\n".join(filter(None, parts))


def _beside(tables: Mapping[str, Rows], options: OutputFormat) -> list[LongSection]:
    """Return what became of groups where any should not be; the rest where people ask for it."""
    endings = LongSection(tables["group_endings"], _ending_section)
    if not options.table:
        return [endings] if _PROBLEM in words_in(endings.rows, "verdict") else []
    requests = tables.get("commit_requests")
    return [endings, *([LongSection(requests, _request_section)] if requests is not None else [])]


def summed_up(wanted: OutputFormat, fates: Rows) -> tuple[OutputFormat, str]:
    """Return in which format people are shown the tables, and how many offsets fare how.

    Args:
        wanted: As asked for; who asks for one table, or for a number of rows, gets that.
        fates: `status`, and how many `offsets` of a group have it.

    Returns:
        The second is empty where all is shown.
    """
    statuses = _by_status(fates)
    offsets = sum(statuses.values())
    if not is_up_to_us(wanted) or offsets <= MOST:
        return wanted, ""
    numbers = sorted(((number, status) for status, number in statuses.items()), reverse=True)
    parts = ", ".join(f"{number:,} {status}" for number, status in numbers)
    shows = f"The first {SHOWN:,} rows of each table, worst first; --top N shows N"
    return wanted.with_top(SHOWN), f"{count(offsets, 'offset')}: {parts}. {shows}."


def _ending_section(rows: pa.Table) -> Section:
    """Return the rows of the table `group_endings`; a group that should be gone is marked."""
    rows = rows.append_column("is_problem", pc.equal(rows["verdict"], _PROBLEM))
    return table_section(rows, "group_endings", "endings", title=_ENDED, problem="is_problem")


def _request_section(rows: pa.Table) -> Section:
    """Return the rows of the table `commit_requests`."""
    rows = rows.append_column("is_problem", pa.repeat(False, rows.num_rows))  # noqa: FBT003
    title = "What a commit of each request version would have been given (KIP-211)"
    return table_section(rows, "commit_requests", "requests", title=title, problem="is_problem")
