"""Commands that give back what a loss took: the fewest that name an instant before each loss.

An offset that was lost can be given back as of any instant from its last commit on until it was
lost. Where the spans of several offsets have an instant in common, one command serves them all,
whatever group they are of: the instants are chosen as those that stab all spans (the greedy choice
of the earliest end is the smallest one).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.questions.findings.wording import quoted

if TYPE_CHECKING:
    from schemas.finding_rules import RestoreColumns

MOST_GROUPS: Final = 25
"""Of one command: a longer one is hard to read and to check."""

_GROUP: Final = "group_id"
_PLACE: Final = (_GROUP, "topic", "partition")
_BEFORE: Final = timedelta(milliseconds=1)
_COMMIT_TO_APPEND: Final = timedelta(seconds=1)
"""A commit is stamped before it is appended; a cut at an instant goes by the append."""

VALUES: Final = ("groups", "before", "folder")


def restore_commands(columns: RestoreColumns, rows: pl.DataFrame) -> pl.DataFrame:
    """Return for each group the commands that give back the last offset lost on each partition.

    Args:
        columns: Where a rule's table has the offset, its commit and its loss.
        rows: Rows that a rule is about; those without an offset, or without a time at which it was
            committed or lost, have nothing that a command could give back. (The start offset of a
            share group was never committed, and `restore` gives none back.)

    Returns:
        A row for each command of each group, a group's in order: `group_id` and `VALUES`, which are
        what the wording of a rule needs of a command, as a shell takes them.
    """
    spans = _spans(columns, rows)
    served = spans.select(_GROUP).with_columns(_instants(spans)).unique()
    served = served.sort("instant", _GROUP)
    served = served.with_columns(
        # The number of a command of those with the same instant.
        (pl.int_range(pl.len()).over("instant") // MOST_GROUPS + 1).alias("number"),
        pl.concat_str(pl.lit("--group "), quoted(served[_GROUP])).alias("option"),
    )
    commands = served.group_by("instant", "number", maintain_order=True).agg(
        pl.col("option").str.join(" ").alias("groups")
    )
    return (
        served.join(commands.with_columns(_places(commands)), on=["instant", "number"])
        .sort("instant", "number", _GROUP)
        .select(_GROUP, *VALUES)
    )


def _places(commands: pl.DataFrame) -> list[pl.Series]:
    """Return the instant of each command as it is printed, and the name of its folder."""
    befores = [_printed(each) for each in commands["instant"]]
    folders = [
        f"restore-{before.replace(':', '')}{f'-{number}' if number > 1 else ''}"
        for before, number in zip(befores, commands["number"], strict=True)
    ]
    return [
        pl.Series("before", befores, pl.String),
        pl.Series("folder", folders, pl.String),
    ]


def _printed(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _spans(columns: RestoreColumns, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the instants as of which offsets can be given back: of each the last time it was lost.

    Returns:
        `_PLACE`, `start` and `end`, by end and group; equal ones in the order of the rows.
    """
    lost_at = [columns.not_before] if columns.not_before else []
    # Times of records are whole milliseconds.
    lost = pl.coalesce(*lost_at, columns.lost_at)
    end = lost.dt.truncate("1ms") - _BEFORE
    start = pl.min_horizontal(pl.col(columns.committed_at) + _COMMIT_TO_APPEND, end)
    can_be_given_back = (
        pl.col(columns.offset).is_not_null()
        & pl.col(columns.committed_at).is_not_null()
        & lost.is_not_null()
    )
    return (
        rows.filter(can_be_given_back)
        .select(*_PLACE, start.alias("start"), end.alias("end"))
        .with_row_index("row")
        .with_columns(pl.col("row").min().over(_PLACE))
        .sort("end", descending=True, maintain_order=True)
        .unique(_PLACE, keep="first", maintain_order=True)
        .sort("end", _GROUP, "row")
    )


def _instants(spans: pl.DataFrame) -> pl.Series:
    """Return for each span the instant that serves it; spans are given by their ends."""
    instants: list[int] = []
    for start, end in spans.select(pl.col("start", "end").to_physical()).iter_rows():
        instants.append(end if not instants or start > instants[-1] else instants[-1])
    return pl.Series("instant", instants, pl.Int64).cast(spans.schema["end"])
