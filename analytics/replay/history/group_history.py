"""What the records of whole groups tell of their past: every table that follows them one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import contract_frame, contract_schema
from analytics.replay.groups.group_records import CLASSIC, CURRENT, GROUP_KEY, PENDING, TARGET
from analytics.replay.history.group_epochs import group_epochs
from analytics.replay.history.group_incarnations import group_incarnations
from analytics.replay.history.group_life_events import group_life_events, member_events
from analytics.replay.history.held_items import (
    ITEM,
    MOMENTS,
    OWNERS,
    group_moments,
    held_items,
    owners,
    source_topics,
)
from analytics.replay.history.load_faults import load_faults
from analytics.replay.history.loading import UnreadRecords
from analytics.replay.history.membership_changes import (
    came_with_known_epoch,
    known_epochs,
    membership_changes,
)
from analytics.replay.log.losses import (
    WHOLE,
    Coverage,
    born_from,
    lost_until,
    uncompacted_from,
    with_marks_of_records,
)
from analytics.replay.log.rules import ReplayRules
from analytics.replay.log.spans import LIFE

if TYPE_CHECKING:
    from analytics.replay.history.held_items import Held
    from analytics.replay.log.log_times import Decoded


# The table `assignment_history`: who owned what at every epoch, as intervals.

ASSIGNED = (CURRENT, TARGET, PENDING)


def assignment_history(
    held: Held, epochs: pl.DataFrame, coverage: Coverage = WHOLE
) -> pl.DataFrame:
    """Return the table `assignment_history`.

    At epoch N a member owned what is from an epoch up to N and to none or a later one. What ended
    together with a life of its group was owned through the last epoch of that life.

    Args:
        held: Of `held_items`.
        epochs: Of `group_epochs`.
        coverage: What the dump holds.
    """
    owned = held.runs.filter(pl.col("kind").is_in(ASSIGNED))
    rows = owned.with_columns(
        *held.named(owned, *ITEM[2:-1], "member_id"),
        held.about(owned),
        *held.columns_at(
            owned["at"], *GROUP_KEY, LIFE, "life", "family", "epoch", "epoch_at", "epoch_by"
        ),
        *_named("from", held.columns_at(owned["at"], "offset", "timestamp")),
        *_named("to", held.columns_at(owned["until"], "offset", "timestamp")),
        *_named("last", held.columns_at(owned["ended_in"], "epoch_at", "epoch_by")),
    )
    from_epoch = pl.coalesce("epoch_at", "epoch", "epoch_by", 0)
    last = pl.coalesce("last_epoch_at", "last_epoch_by", from_epoch)
    to_epoch = pl.when("is_closing").then(last + 1).otherwise(last)
    told = rows.unnest("about").with_columns(
        pl.col("family").alias("group_type"),
        from_epoch.alias("from_epoch"),
        pl.when(pl.col("until").is_not_null()).then(to_epoch).alias("to_epoch"),
        pl.coalesce("epoch", "epoch_at").alias("member_epoch"),
    )
    marked = with_marks_of_records(told, coverage, "from_offset", "to_offset")
    return contract_frame(_with_bounds(marked, epochs, coverage), "assignment_history")


def _with_bounds(rows: pl.DataFrame, epochs: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Add `from_is_bound`: whether a record that is gone may have told of it earlier.

    So may be what stands below all that is gone, and the first that is left of a member anywhere
    where nothing tells how far the cleaner has been: the last record of a key outlives the others.
    """
    offset = pl.col("from_offset")
    known = rows.join(
        known_epochs(epochs),
        left_on=(LIFE, "epoch_at"),
        right_on=(LIFE, "epoch"),
        how="left",
        maintain_order="left",
    )
    sure = came_with_known_epoch(offset, (lost_until(coverage) == 0))
    first = pl.col("since").is_null() & (offset < born_from(coverage)) & ~sure
    return known.with_columns(
        ((offset < uncompacted_from(coverage)) | first).alias("from_is_bound")
    )


def _named(word: str, columns: list[pl.Series]) -> list[pl.Series]:
    return [column.alias(f"{word}_{column.name}") for column in columns]


# What the history of groups is made of: their records, first commits and topologies.

_OF_STATE: Final = ("kind", "batch_offset", "previous_epoch", "state_ms", "members")
"""Columns of the coordinator's log that history makes nothing of."""


def group_records_in_time(log: pl.DataFrame, decoded: Decoded) -> dict[str, pl.DataFrame]:
    """Return `log`, `commits` and `topologies`, as `group_history` takes them.

    Args:
        log: Of `coordinator_log`.
        decoded: The decoded tables that it is of.
    """
    home = pl.col("partition").alias(GROUP_KEY[0])
    modern = log.filter(pl.col("family") != CLASSIC).select(GROUP_KEY).unique()
    key, value = pl.col("key").struct, pl.col("value").struct
    commits = (
        decoded["offset_commit"]
        .filter(~pl.col("is_tombstone"))
        .select(home, key.field("group").alias("group_id"), "offset")
        .join(modern, on=list(GROUP_KEY), how="semi")
    )
    topologies = decoded["streams_group_topology"].select(
        home, key.field("group_id"), value.field("subtopologies")
    )
    return {"log": log.drop(_OF_STATE), "commits": commits, "topologies": topologies}


Frames = Mapping[str, pl.DataFrame]

OF_GROUPS: Mapping[str, pl.Schema] = {
    **{
        name: contract_schema(name)
        for name in ("group_epochs", "membership_changes", "assignment_history")
    },
    "events": contract_schema("group_events"),
    "moments": MOMENTS,
    "owners": OWNERS,
}
"""What `group_history` makes."""


def group_steps(rows: Frames, rules: ReplayRules) -> pl.DataFrame:
    """Return the records of groups, each with where it belongs: of `group_incarnations`.

    Args:
        rows: All of some groups: `log` of `coordinator_log`, and `commits` (`GROUP_KEY` and
            `offset` of those that are no tombstones, at least of groups that are not classic only).
        rules: Of the release.
    """
    commits = rows["commits"] if rules.groups_end_by_tombstones else None
    return group_incarnations(rows["log"], commits, rules.initial_epoch)


def group_history(
    steps: pl.DataFrame, rows: Frames, names: pl.DataFrame, rules: ReplayRules, coverage: Coverage
) -> dict[str, pl.DataFrame]:
    """Return the tables `group_epochs`, `membership_changes` and `assignment_history`, and more.

    Args:
        steps: Of `group_steps`.
        rows: Of the same groups: `topologies` (`GROUP_KEY` and `subtopologies`).
        names: Of topics: `topic_id` and `name`, each id once.
        rules: Of the release.
        coverage: What the dump holds.

    Returns:
        `OF_GROUPS`: `events` are those of groups and their members, `moments` of `group_moments`,
        `owners` of `owners`.
    """
    held = held_items(steps, names)
    epochs = group_epochs(held, rules, coverage)
    changes = membership_changes(held, epochs, coverage)
    events = [group_life_events(steps, epochs, coverage), member_events(changes)]
    return {
        "group_epochs": contract_frame(
            with_marks_of_records(epochs, coverage, "from_offset", "to_offset"), "group_epochs"
        ),
        "membership_changes": changes,
        "assignment_history": assignment_history(held, epochs, coverage),
        "events": pl.concat(events),
        "moments": group_moments(held),
        "owners": owners(held, source_topics(rows["topologies"])),
    }


def faults_of(
    steps: pl.DataFrame,
    rows: Frames,
    decoded: Frames,
    rules: ReplayRules,
    coverage: Coverage = WHOLE,
) -> pl.DataFrame:
    """Return the table `load_faults`.

    Args:
        steps: Of `group_steps`.
        rows: What they are made of.
        decoded: The decoded tables, `undecoded` among them.
        rules: Of the release.
        coverage: What the dump holds.
    """
    unread = UnreadRecords(decoded["undecoded"], decoded)
    return load_faults(steps, rows["commits"], unread, rules, coverage)
