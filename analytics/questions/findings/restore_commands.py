"""Commands that give back what a loss took: the fewest that name an instant before each loss.

An offset that was lost can be given back as of any instant from its last commit on until it was
lost. Where the spans of several offsets have an instant in common, one command serves them all,
whatever group they are of: the instants are chosen as those that stab all spans (the greedy choice
of the earliest end is the smallest one).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl

from analytics.questions.findings.wording import quoted
from analytics.tables.parted_table import Order

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


class RestoreCommands(NamedTuple):
    """The commands that give back what groups lost.

    Attributes:
        served: Which command is of which group: `group_id`, `instant` and `number`.
        commands: `instant`, `number`, and `VALUES`, which are what the wording of a rule needs of a
            command, as a shell takes them.
    """

    served: pl.DataFrame
    commands: pl.DataFrame

    def of_groups(self, groups: pl.Series) -> pl.DataFrame:
        """Return a row for each command of each of these groups, a group's in order.

        Returns:
            `group_id` and `VALUES`.
        """
        served = self.served.join(groups.rename(_GROUP).to_frame(), on=_GROUP, how="semi")
        return (
            served.join(self.commands, on=["instant", "number"])
            .sort("instant", "number", _GROUP)
            .select(_GROUP, *VALUES)
        )


def shared_commands(spans: Iterable[pl.DataFrame]) -> RestoreCommands:
    """Return the fewest commands that give back what was lost.

    Args:
        spans: Those of all groups that `lost_spans` returns, in the order of `SPANS`, some at a
            time; at least one frame.
    """
    served = _instants(spans).sort("instant", _GROUP)
    served = served.with_columns(
        # The number of a command of those with the same instant.
        (pl.int_range(pl.len()).over("instant") // MOST_GROUPS + 1).alias("number"),
    )
    options = served.with_columns(
        pl.concat_str(pl.lit("--group "), quoted(served[_GROUP])).alias("option")
    )
    commands = options.group_by("instant", "number", maintain_order=True).agg(
        pl.col("option").str.join(" ").alias("groups")
    )
    return RestoreCommands(served, commands.with_columns(_places(commands)))


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


def lost_spans(columns: RestoreColumns, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the instants as of which offsets can be given back: of each the last time it was lost.

    Args:
        columns: Where a rule's table has the offset, its commit and its loss.
        rows: Rows of whole groups that a rule is about; those without an offset, or without a time
            at which it was committed or lost, have nothing that a command could give back. (The
            start offset of a share group was never committed, and `restore` gives none back.)

    Returns:
        `group_id`, `start` and `end`, each once, in the order of `SPANS`.
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
    spans = (
        rows.filter(can_be_given_back)
        .select(*_PLACE, start.alias("start"), end.alias("end"))
        .with_row_index("row")
        .with_columns(pl.col("row").min().over(_PLACE))
        .sort("end", descending=True, maintain_order=True)
        .unique(_PLACE, keep="first", maintain_order=True)
        .sort("end", _GROUP, "row")
    )
    # A span that its group has twice is served by what serves the first, or those between them.
    return spans.select(_GROUP, "start", "end").unique(maintain_order=True)


def _by_end(spans: pl.DataFrame) -> pl.DataFrame:
    return spans.sort("end", _GROUP, maintain_order=True)


SPANS: Final = Order(("end", _GROUP), _by_end)
"""The order of spans: by their ends; those of a group that end together stay as they are."""


def _instants(spans: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return the instants that serve the spans of groups: `group_id` and `instant`, each once."""
    served: list[pl.DataFrame] = []
    last: int | None = None
    for each in spans:
        instants: list[int] = []
        for start, end in each.select(pl.col("start", "end").to_physical()).iter_rows():
            last = end if last is None or start > last else last
            instants.append(last)
        found = pl.Series("instant", instants, pl.Int64).cast(each.schema["end"])
        served.append(each.select(_GROUP).with_columns(found).unique())
    return pl.concat(served).unique()
