"""The tables about rebalances, some groups at a time, and what stands still at an instant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import in_contract_order, polars_rows
from analytics.engine.part_runs import PartAnswer
from analytics.questions.rebalances.causes import causes
from analytics.questions.rebalances.epochs import (
    CHURN,
    group_churn,
    rebalance_storms,
    rebalances,
    stored_again,
)
from analytics.replay.groups.group_records import CLASSIC
from analytics.replayed.records import Records
from analytics.replayed.replayed_workspace import known_coverage
from analytics.replayed.whole_groups import stored_parts
from analytics.tables.parted_table import BY_GROUP, PartedTable, by_group

if TYPE_CHECKING:
    from analytics.replay.log.losses import Coverage
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from analytics.tables.stored_tables import StoredTables
    from schemas.evaluation_rules import RebalanceRules

# What stands still in groups at an instant: behind their epoch, or owning without reading.

# Static names that two processes use: each that joins fences the other, and nobody reads on.
#
# A member that is moved to another host is there from then on. Of two processes with one
# `group.instance.id` each comes back again and again, and the hosts are those of both in turn.

SHARED_INSTANCE: Final = "shared_instance"
FEWEST_RETURNS: Final = 2
"""So often a name comes back to a host it had left for another one before it is told of."""

_FENCE: Final = "each of which fences the other"
_WAIT: Final = "each of which takes it when the other has let go of it"
"""A coordinator of KIP-848 refuses who comes while the other is there (``UNRELEASED_INSTANCE_ID``);
of that no record is left."""

_NAME = ("group_id", "group_instance_id")


def shared_instances(
    changes: pl.DataFrame, held: pl.DataFrame, progress: pl.DataFrame
) -> pl.DataFrame:
    """Return static names that members at several hosts took from each other.

    Args:
        changes: The table `membership_changes`.
        held: The table `assignment_history`.
        progress: Of `stalled_members.last_progress`.

    Returns:
        `stalled_members.COLUMNS`; `since` is when a second host took the name first.
    """
    host, before = pl.col("client_host"), pl.col("client_host").shift(1).over(_NAME)
    taken = (
        changes.filter(
            pl.col("change").is_in(["joined", "restarted"]),
            pl.col("group_instance_id").is_not_null() & host.is_not_null(),
        )
        .sort("coordinator_partition", "record_offset")
        .with_columns((host != before).fill_null(value=False).alias("is_taken"))
        .with_columns(
            (pl.col("is_taken") & ~host.is_first_distinct().over(_NAME)).alias("is_return")
        )
        .group_by(_NAME, maintain_order=True)
        .agg(
            pl.col("member_id").last(),
            (pl.col("group_type").last() == CLASSIC).alias("is_classic"),
            pl.col("at").filter("is_taken").min().alias("since"),
            pl.col("is_taken").sum().alias("times"),
            pl.col("is_return").sum().alias("returns"),
            host.filter("is_taken").unique().sort().alias("hosts"),
        )
        .filter(pl.col("returns") >= FEWEST_RETURNS)
    )
    return (
        taken.join(_standing(taken, held, progress), on=list(_NAME), how="left")
        .with_columns(pl.col("standing", "owned").fill_null(0))
        .select(
            "group_id",
            pl.lit(SHARED_INSTANCE).alias("kind"),
            "member_id",
            "since",
            _detail().alias("detail"),
        )
    )


def _standing(takeovers: pl.DataFrame, held: pl.DataFrame, progress: pl.DataFrame) -> pl.DataFrame:
    """Return how many partitions each name owns, and how many of them stood still since."""
    owned = static_owners(held).join(progress, on=_PARTITION, how="left")
    of_taken = owned.join(takeovers.select(*_NAME, "since"), on=list(_NAME))
    stands = pl.col("last").is_null() | (pl.col("last") < pl.col("since"))
    return of_taken.group_by(_NAME).agg(stands.sum().alias("standing"), pl.len().alias("owned"))


def _detail() -> pl.Expr:
    used = pl.format(
        "static name {} is used by processes at {}, ",
        "group_instance_id",
        pl.col("hosts").list.join(" and "),
    )
    how = pl.when("is_classic").then(pl.lit(_FENCE)).otherwise(pl.lit(_WAIT))
    told = pl.concat_str(used, how, pl.format(": taken {} times", "times"))
    stood = pl.format("; no progress on {} of its {} partitions since", "standing", "owned")
    return pl.when(pl.col("standing") > 0).then(told + stood).otherwise(told)


COLUMNS = ("group_id", "kind", "member_id", "since", "detail")
UNASSIGNED, RECONCILING, IDLE_OWNER = "unassigned_epoch", "reconciling", "idle_owner"
_STABLE = "STABLE"
_PARTITION = ("group_id", "topic", "partition")
_MEMBER = ("group_id", "member_id", "group_instance_id")


def unassigned_epochs(groups: pl.DataFrame, epochs: pl.DataFrame) -> pl.DataFrame:
    """Return groups with members whose group epoch is ahead of their assignment epoch.

    Args:
        groups: The table `groups`.
        epochs: The table `group_epochs`.

    Returns:
        `COLUMNS`; `since` is when that epoch began.
    """
    is_ahead = (pl.col("member_count") > 0) & (pl.col("epoch") > pl.col("assignment_epoch"))
    words = "group epoch {} is ahead of assignment epoch {}"
    return _with_begin(groups.filter(is_ahead), epochs).select(
        "group_id",
        pl.lit(UNASSIGNED).alias("kind"),
        pl.lit(None, pl.String).alias("member_id"),
        "since",
        pl.format(words, "epoch", "assignment_epoch").alias("detail"),
    )


def reconciling_members(
    groups: pl.DataFrame,
    members: pl.DataFrame,
    epochs: pl.DataFrame,
    now: datetime,
    rules: RebalanceRules,
) -> pl.DataFrame:
    """Return members that have been behind the assignment epoch for long.

    Args:
        groups: The table `groups`.
        members: The table `members`.
        epochs: The table `group_epochs`.
        now: The instant.
        rules: How long is long.

    Returns:
        `COLUMNS`; `since` is when the epoch they are behind began.
    """
    wanted = groups.filter(pl.col("assignment_epoch").is_not_null()).select(
        "group_id", pl.col("assignment_epoch").alias("epoch")
    )
    state = pl.col("state").fill_null(_STABLE)
    behind = members.join(wanted, on="group_id").filter(
        (pl.col("member_epoch") != pl.col("epoch")) | (state != _STABLE)
    )
    at = pl.col("member_epoch").cast(pl.String).fill_null("null")
    return (
        _with_begin(behind, epochs)
        .filter(pl.col("since") < now - timedelta(minutes=rules.reconciling.minutes))
        .select(
            "group_id",
            pl.lit(RECONCILING).alias("kind"),
            "member_id",
            "since",
            pl.format("member epoch {}, {}; wanted is {}", at, state, "epoch").alias("detail"),
        )
    )


def idle_owners(
    held: pl.DataFrame, progress: pl.DataFrame, now: datetime, rules: RebalanceRules
) -> pl.DataFrame:
    """Return static members that own partitions and commit nothing new, while others do.

    Args:
        held: The table `assignment_history`.
        progress: Of `last_progress`.
        now: The instant.
        rules: How long is long.

    Returns:
        `COLUMNS`; `since` is the last progress of what the member owns, or when it got it.
    """
    members = (
        static_owners(held)
        .join(progress, on=_PARTITION, how="left")
        .group_by(_MEMBER)
        .agg(
            pl.max_horizontal("last", "from_timestamp").max().alias("since"),
            pl.len().alias("partitions"),
        )
    )
    groups = progress.group_by("group_id").agg(pl.col("last").max().alias("group_last"))
    limit = now - timedelta(minutes=rules.idle_owner.minutes)
    words = "static member {} owns {} partitions and commits nothing new"
    return (
        members.join(groups, on="group_id")
        .filter((pl.col("since") < limit) & (pl.col("group_last") >= limit))
        .select(
            "group_id",
            pl.lit(IDLE_OWNER).alias("kind"),
            "member_id",
            "since",
            pl.format(words, "group_instance_id", "partitions").alias("detail"),
        )
    )


def static_owners(held: pl.DataFrame) -> pl.DataFrame:
    """Return what static members own now, of the table `assignment_history`."""
    return held.filter(
        pl.col("kind") == "current",
        pl.col("to_offset").is_null(),
        pl.col("topic").is_not_null(),
        pl.col("group_instance_id").is_not_null(),
    ).select(*_MEMBER, "topic", "partition", "from_timestamp")


def last_progress(offset_history: pl.DataFrame) -> pl.DataFrame:
    """Return when each partition was last advanced by a commit: `last`.

    Args:
        offset_history: Rows of that table, or what this returned of others (`last`, too).
    """
    return offset_history.group_by(_PARTITION).agg(pl.col("last").max())


def _with_begin(rows: pl.DataFrame, epochs: pl.DataFrame) -> pl.DataFrame:
    """Add `since`: when the latest epoch of the number in `epoch` began."""
    began = (
        epochs.sort("from_offset")
        .group_by("group_id", "epoch")
        .agg(pl.col("from_timestamp").last().alias("since"))
    )
    return rows.join(began, on=["group_id", "epoch"], how="left")


# The tables about rebalances, made of a replayed workspace, some groups at a time.

# The tables about rebalances: what each is made of.


@dataclass(frozen=True)
class AskedTime:
    """The time asked about, and the thresholds.

    Attributes:
        begins: Epochs from then on count; None: all.
        ends: Epochs up to then count; None: all.
        now: The instant that state is of.
        rules: When much is too much.
    """

    begins: datetime | None
    ends: datetime | None
    now: datetime
    rules: RebalanceRules

    def within(self, frame: pl.DataFrame, time: str) -> pl.DataFrame:
        """Return the rows whose time counts; those without one do where all count."""
        if self.begins is not None:
            frame = frame.filter(pl.col(time) >= self.begins)
        if self.ends is not None:
            frame = frame.filter(pl.col(time) <= self.ends)
        return frame


def rebalance_tables(
    tables: Mapping[str, pl.DataFrame], coverage: Coverage, time: AskedTime
) -> dict[str, pl.DataFrame]:
    """Return all tables about rebalances of whole groups, sorted by their keys.

    Args:
        tables: `groups`, `members`, `group_epochs`, `membership_changes`, `assignment_history`; of
            `epochs.stored_again` `stored_again`, and of `stalled_members.last_progress` `progress`.
        coverage: What the dump holds.
        time: The time asked about.
    """
    begun, changes = _begun(tables["group_epochs"]), tables["membership_changes"]
    epochs = in_contract_order(
        "rebalances",
        time.within(rebalances(begun, changes, tables["stored_again"], coverage), "at"),
    )
    inside = time.within(_without_compacted(changes), "at")
    rules = time.rules
    doubtful = changes.filter("before_is_compacted")
    storms = rebalance_storms(
        time.within(begun, "from_timestamp"),
        inside,
        rules.storm.epochs,
        rules.storm.minutes,
        doubtful.filter(pl.col("change").is_in(CHURN)),
        coverage,
    )
    churn = group_churn(epochs, inside, storms, time.ends or time.now, coverage)
    made = {
        "group_churn": churn,
        "rebalance_storms": storms,
        "stalled_members": _stalled_members(tables, inside, time),
    }
    held = tables["assignment_history"]
    return {
        "rebalances": epochs,
        **{name: in_contract_order(name, frame) for name, frame in made.items()},
        "rebalance_causes": causes(
            epochs, tables["group_epochs"], held, coverage, doubtful=doubtful
        ),
    }


def _begun(epochs: pl.DataFrame) -> pl.DataFrame:
    """Leave out what a classic group stores before its first join: generation 0, of nobody."""
    return epochs.filter((pl.col("epoch") > 0) | (pl.col("member_count") > 0))


def _without_compacted(changes: pl.DataFrame) -> pl.DataFrame:
    """Leave out members that may have come before the first record that compaction left of them."""
    return changes.filter(~pl.col("before_is_compacted"))


def _stalled_members(
    tables: Mapping[str, pl.DataFrame], inside: pl.DataFrame, time: AskedTime
) -> pl.DataFrame:
    """Return the table `stalled_members`; `inside` are the changes of the time asked about."""
    groups, epochs, rules = tables["groups"], tables["group_epochs"], time.rules
    held, progress = tables["assignment_history"], tables["progress"]
    return pl.concat(
        [
            unassigned_epochs(groups, epochs),
            reconciling_members(groups, tables["members"], epochs, time.now, rules),
            idle_owners(held, progress, time.now, rules),
            shared_instances(inside, held, progress),
        ]
    )


AT_ONCE: Final = 1_000_000
"""So many rows are looked at together."""

_CHANGES: Final = (
    *("group_id", "coordinator_partition", "life", "epoch", "at", "change"),
    *("member_id", "client_id", "before_is_compacted"),
    *("group_instance_id", "client_host", "group_type", "record_offset"),
)
_EPOCHS: Final = (
    *("group_id", "coordinator_partition", "life", "epoch", "group_type", "state"),
    *("from_offset", "from_timestamp", "leader", "protocol", "protocol_type", "member_count"),
    *("partitions_assigned", "partitions_moved", "missing_before", "missing_is_compacted"),
    "leader_epoch",
)
_HELD: Final = (
    *("group_id", "coordinator_partition", "life", "group_type", "member_id"),
    *("group_instance_id", "kind", "topic", "partition", "from_epoch", "from_is_bound"),
    *("from_timestamp", "to_offset"),
)
_OWNED: Final = (
    *("group_id", "member_id", "group_instance_id", "kind", "topic", "partition"),
    *("from_timestamp", "to_offset"),
)
"""Of `_HELD` what `static_owners` reads."""
_TABLES: Final = {
    "groups": ("group_id", "epoch", "assignment_epoch", "member_count"),
    "members": ("group_id", "member_id", "member_epoch", "state"),
    "group_epochs": _EPOCHS,
    "membership_changes": _CHANGES,
    "assignment_history": _HELD,
}
NEEDS: Final = (*_TABLES, "offset_history")
TABLES: Final = (
    *("rebalances", "group_churn", "rebalance_storms", "stalled_members"),
    "rebalance_causes",
)
ORDERS: Final = dict.fromkeys(TABLES, BY_GROUP)
_GENERATIONS: Final = {
    "coordinator_partition": "partition",
    "group_id": "key.group",
    "offset": "offset",
    "leader_epoch": "leader_epoch",
    "is_tombstone": "is_tombstone",
    "generation": "value.generation",
}
_PROGRESS: Final = ("group_id", "topic", "partition", "effective_timestamp")


def made_tables(state: ReplayedWorkspace, time: AskedTime) -> Mapping[str, PartedTable]:
    """Return every table, sorted by its key."""
    again = stored_again(Records(state).rows("group_metadata", _GENERATIONS))
    work = partial(
        tables_of_part,
        {"stored_again": again, "progress": _last_progress(state.tables)},
        known_coverage(state),
        time,
    )
    runner = state.runner
    with stored_parts(state.tables, _TABLES, AT_ONCE, runner.folder) as parts:
        return runner.run(work, parts, ORDERS).tables


def tables_of_part(
    beside: Mapping[str, pl.DataFrame],
    coverage: Coverage,
    time: AskedTime,
    rows: Mapping[str, pl.DataFrame],
) -> PartAnswer:
    """Return the tables of some whole groups.

    Args:
        beside: `stored_again` and `progress`, of all groups.
        coverage: What the dump holds.
        time: The time asked about.
        rows: `_TABLES` of theirs.
    """
    made = rebalance_tables({**rows, **beside}, coverage, time)
    return PartAnswer({name: by_group(each) for name, each in made.items()})


def _last_progress(tables: StoredTables) -> pl.DataFrame:
    """Return when commits of groups with static members last advanced a partition."""
    is_theirs = pc.field("group_instance_id").is_valid() & pc.field("to_offset").is_null()
    held = tables.read("assignment_history", _OWNED, is_theirs)
    groups = static_owners(polars_rows(held))["group_id"].unique().to_arrow()
    found = last_progress(
        _with_last(tables.read("offset_history", _PROGRESS, pc.scalar(value=False)))
    )
    if not len(groups):
        return found
    wanted = (pc.field("advance") > 0) & pc.field("group_id").isin(groups)
    for piece in tables.pieces("offset_history", _PROGRESS, wanted):
        found = last_progress(pl.concat([found, last_progress(_with_last(piece))]))
    return found


def _with_last(rows: pa.Table) -> pl.DataFrame:
    return polars_rows(rows).rename({"effective_timestamp": "last"})
