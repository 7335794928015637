"""What an election took away: rows whose record is on a line that the second state lost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from analytics.dump.files.model import METADATA_LOG
from analytics.replay.log.lines import parsed_time

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

APPEARED: Final = "appeared"
VANISHED: Final = "vanished"
WENT_BACK: Final = "went_back"
CHANGED: Final = "changed"
LOST: Final = "lost_by_election"
CAME_BACK: Final = "deletion_lost_by_election"

LOST_LINES: Final = pl.Schema(
    {
        "home": pl.Int64(),
        "diverges_at": pl.Int64(),
        "copy": pl.String(),
        "elected_at": pl.Datetime("us", "UTC"),
        "elected_after": pl.Datetime("us", "UTC"),
        "groups_only_there": pl.List(pl.String()),
    }
)
"""Lines that the first state is of, and the second is not; one a partition.

Where `elected_after` is there, the election was between it and `elected_at`.
"""

Followed = tuple[str, int, str]
"""Topic, partition and copy of a followed line."""


def followed_copies(state: ReplayedWorkspace) -> set[Followed]:
    """Return topic, partition and copy of the lost lines a state is of, chosen or then in force."""
    preferred = state.manifest["options"].get("prefer_copy")
    return {
        *((each.topic, each.partition, each.copy) for each in state.lines),
        *(
            (each["topic"], each["partition"], each["copy"])
            for each in state.manifest.get("divergences", ())
            if each["copy"] == preferred
        ),
    }


def lost_lines(
    divergences: Iterable[Mapping[str, Any]],
    before: Collection[Followed],
    after: Collection[Followed],
    topic: str,
) -> pl.DataFrame:
    """Return the lines of a topic that were lost between two states (`LOST_LINES`).

    Args:
        divergences: As the manifest has them.
        before: Lines that did not survive, and that the first state follows.
        after: Those that the second state follows.
        topic: The internal topic.
    """
    gone = set(before) - set(after)
    rows = [
        {
            "home": each["partition"],
            "diverges_at": each["diverges_at"],
            "copy": each["copy"],
            "elected_at": parsed_time(each["elected_at"]),
            "elected_after": None
            if _is_exact(each)
            else parsed_time(each.get("lost_to_timestamp")),
            "groups_only_there": each.get("groups_only_there") or [],
        }
        for each in divergences
        if each["topic"] == topic and (topic, each["partition"], each["copy"]) in gone
    ]
    return pl.DataFrame(rows, LOST_LINES)


def _is_exact(line: Mapping[str, Any]) -> bool:
    return line.get("election_shown_by") == METADATA_LOG


def with_elections(rows: pl.DataFrame, lines: pl.DataFrame) -> pl.DataFrame:
    """Say of each row whether an election took away what the first state had.

    Args:
        rows: With `group_id`, `change`, and `coordinator_partition` and `record_offset` of both
            states.
        lines: As `LOST_LINES`.

    Returns:
        The rows with `cause` (null where it was no election), and the `copy` that alone has the
        record, `elected_at` and `elected_after`, all null where `cause` is.
    """
    homes = (f"{side}_coordinator_partition" for side in ("from", "to"))
    rows = rows.with_columns(pl.coalesce(*homes).cast(pl.Int64).alias("home"))
    only_there = (
        lines.select("home", group_id="groups_only_there")
        .explode("group_id")
        .unique()
        .with_columns(pl.lit(value=True).alias("is_only_there"))
    )
    rows = rows.join(lines.drop("groups_only_there"), "home", "left").join(
        only_there, ["home", "group_id"], "left"
    )
    change, line = pl.col("change"), pl.col("diverges_at")
    was_lost = (pl.col("from_record_offset") >= line) | pl.col("is_only_there")
    came_back = pl.col("to_record_offset") < line
    cause = first_of(
        (change.is_in([WENT_BACK, VANISHED, CHANGED]) & was_lost, LOST),
        ((change == APPEARED) & came_back, CAME_BACK),
    )
    of_election = ("copy", "elected_at", "elected_after")
    return (
        rows.with_columns(cause.alias("cause"))
        .with_columns(
            pl.when(pl.col("cause").is_not_null()).then(name).alias(name) for name in of_election
        )
        .drop("home", "diverges_at", "is_only_there")
    )


def first_of(*cases: tuple[pl.Expr, str]) -> pl.Expr:
    """Return the word of the first case that is true, null where none is."""
    word = pl.lit(None, pl.String())
    for is_case, its in reversed(cases):
        word = pl.when(is_case).then(pl.lit(its)).otherwise(word)
    return word
