"""The tables `groups`, `members` and `assignments`, read off the fold of group records.

A lost record can matter to a group only if it lies behind what the group is known from: the record
that is the whole of a classic group, or the end of the life before the present one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import contract_frame
from analytics.replay.between_cuts import NOTHING, BetweenCuts
from analytics.replay.groups.coded_log import NONE, numbers
from analytics.replay.groups.columns import CLASSIC, CONSUMER, GROUPS, SHARE, STREAMS
from analytics.replay.groups.group_records import (
    ASSIGNMENT_EPOCH,
    FAMILIES,
    GROUP,
    GROUP_KEY,
    REMOVED_ASSIGNMENT_EPOCH,
    TOPOLOGY,
)
from analytics.replay.groups.lives import InForce, optional
from analytics.replay.groups.member_rows import STABLE, Members, struct
from analytics.replay.log.coverage import WHOLE, Coverage
from analytics.replay.log.losses import may_be_elsewhere, may_be_superseded, with_missing
from analytics.replay.log.marks import with_marks_of
from analytics.replay.log.meanings import instant
from analytics.replay.offsets.commit_rows import first_of_runs

if TYPE_CHECKING:
    from analytics.replay.groups.coded_log import Flags, Numbers
    from analytics.replay.groups.fold import GroupState
    from analytics.replay.log.rules import ReplayRules

# The groups that have records, as rows of `groups` without completeness.
#
# Of a classic group only Empty and Stable can be recovered from records: a rebalance under way
# leaves none. Group epoch and assignment epoch of the other types stand in records of their own
# (KIP-848).

_NO_TOPOLOGY = -(1 << 40)
"""No epoch: these are 32 bits wide."""


@dataclass(frozen=True)
class Groups:
    """The groups: their rows, the group of each, and by group its assignment epoch."""

    rows: pa.StructArray
    group: Numbers
    assignment_epoch: Numbers


def group_rows(in_force: InForce, members: Members, rules: ReplayRules) -> Groups:
    """Return the groups that have records."""
    group = np.flatnonzero(in_force.lives.is_there)
    family = in_force.lives.family[group]
    is_classic = family == CLASSIC
    own = in_force.of_groups(GROUP)[0]
    record = own[group]
    assignment_epoch = _assignment_epochs(in_force, rules)
    epoch = numbers(in_force.values_in("epoch", record), rules.initial_epoch)
    count = np.bincount(members.group, minlength=in_force.log.groups)[group]
    type_ = np.array(FAMILIES, object)[family]
    state = _states(in_force, members, assignment_epoch, epoch, rules)
    told = {
        "group_type": _words(type_),
        "protocol_type": _of_classic(in_force, "protocol_type", record, is_classic, type_),
        "state": _words(np.where(count == 0, "Empty", state)),
        "epoch": optional(epoch, np.zeros(len(group), bool)),
        "assignment_epoch": optional(assignment_epoch[group], is_classic),
        "protocol": _of_classic(
            in_force, "protocol", record, is_classic, _assignors(in_force, members, rules)
        ),
        "leader": in_force.values_in("leader", record),
        "state_ms": in_force.values_in("state_ms", record),
        "member_count": optional(count, np.zeros(len(group), bool)),
        "record_offset": in_force.values_in("offset", record),
        "leader_epoch": in_force.values_in("leader_epoch", record),
        "known_from": pc.fill_null(
            in_force.values_in("offset", np.where(is_classic, record, in_force.lives.since[group])),
            NONE,
        ),
    }
    return Groups(struct(GROUPS, told), group, assignment_epoch)


def _assignment_epochs(in_force: InForce, rules: ReplayRules) -> Numbers:
    value, tombstone = in_force.of_groups(ASSIGNMENT_EPOCH)
    stored = numbers(in_force.values_in("epoch", value), rules.initial_epoch)
    return np.where(tombstone > value, REMOVED_ASSIGNMENT_EPOCH, stored)


def _states(
    in_force: InForce,
    members: Members,
    assignment_epoch: Numbers,
    epoch: Numbers,
    rules: ReplayRules,
) -> np.ndarray:
    """Return the states of the groups that are there, as far as they have members."""
    group = np.flatnonzero(in_force.lives.is_there)
    family = in_force.lives.family[group]
    there = (members.state == STABLE) & (members.epoch == assignment_epoch[members.group])
    is_reconciled = np.ones(in_force.log.groups, bool)
    is_reconciled[members.group[~there]] = False
    ready: Flags = (family != STREAMS) | _has_topology(in_force, rules)[group]
    return np.select(
        [
            np.isin(family, (CLASSIC, SHARE)),
            ~ready,
            epoch > assignment_epoch[group],
            ~is_reconciled[group],
        ],
        ["Stable", "NotReady", "Assigning", "Reconciling"],
        "Stable",
    ).astype(object)


def _has_topology(in_force: InForce, rules: ReplayRules) -> Flags:
    """Whether a streams group's topology is usable, as far as its release tells from records."""
    if not rules.streams_readiness_is_recorded:
        return np.zeros(in_force.log.groups, bool)
    value, tombstone = in_force.of_groups(TOPOLOGY)
    topology = numbers(
        in_force.values_in("epoch", np.where(value > tombstone, value, NONE)), _NO_TOPOLOGY
    )
    own = in_force.of_groups(GROUP)[0]
    stored = numbers(in_force.values_in("validated_epoch", own), _NO_TOPOLOGY)
    validated = np.where(own == NONE, rules.initial_topology_epoch, stored)
    ready: Flags = (topology == validated) & (topology != _NO_TOPOLOGY)
    return ready


def _assignors(in_force: InForce, members: Members, rules: ReplayRules) -> np.ndarray:
    """Return the assignors of the groups that are there; those of classic groups are stored."""
    group = np.flatnonzero(in_force.lives.is_there)
    family = in_force.lives.family[group]
    asked = np.full(in_force.log.groups, rules.default_consumer_assignor, object)
    # That which most members ask for; a later row replaces an earlier one.
    votes = (
        pa.table({"group": members.group, "name": members.rows.field("server_assignor")})
        .filter(pc.is_valid(pc.field("name")))
        .group_by(["group", "name"])
        .aggregate([("name", "count")])
        .sort_by([("name_count", "ascending"), ("name", "ascending")])
    )
    asked[votes["group"].to_numpy()] = votes["name"].to_numpy()
    found = np.full(len(group), None, object)
    found[family == CONSUMER] = asked[group[family == CONSUMER]]
    found[family == SHARE] = rules.share_assignor
    return found


def _of_classic(
    in_force: InForce, column: str, record: Numbers, is_classic: Flags, others: np.ndarray
) -> pa.Array:
    """Return what classic groups' records say in a column, and something else of the others."""
    stored = in_force.values_in(column, np.where(is_classic, record, NONE))
    return pc.if_else(pa.array(is_classic), stored, _words(others))


def _words(words: np.ndarray) -> pa.Array:
    return pa.array(words, pa.string())


SIMPLE = "simple"
NO_GROUP_RECORD = "the group's own record is not in the dump"


def groups(
    state: GroupState,
    committed: pl.DataFrame,
    pending: pl.DataFrame,
    coverage: Coverage = WHOLE,
    uncertain: BetweenCuts = NOTHING,
) -> pl.DataFrame:
    """Return every group the broker would list (``GroupMetadataManager.listGroups``).

    Args:
        state: The groups at the instant.
        committed: The table `committed_offsets` at the same instant, of the same groups.
        pending: The table `pending_offsets`; a group that has one of these offsets and no record
            of its own is a simple group, but where a tombstone removed it (since 4.0).
        coverage: What the dump holds.
        uncertain: What lies between the two cuts of logs whose times go back.
    """
    told = state.rows["a_group"].with_columns(state_timestamp=instant(pl.col("state_ms")))
    sources = [committed, pending]
    if state.committed is not None:
        sources[1] = pending.join(state.removed_groups, on=GROUP_KEY, how="anti")
        # That a commit was deleted since, or aborted, does not remove the group it made.
        sources.append(state.committed)
    simple = (
        pl.concat(first_of_runs(each, GROUP_KEY) for each in sources)
        .unique()
        .join(told, GROUP_KEY, "anti")
        .with_columns(
            group_type=pl.lit(SIMPLE),
            state=pl.lit("Empty"),
            member_count=pl.lit(0, pl.Int32()),
            known_from=pl.lit(NONE, pl.Int64()),
        )
    )
    # A group without records of its own is there by its offsets.
    of_offsets = uncertain.offsets.select(uncertain.groups.columns).unique()
    rows = pl.concat(
        [
            told.join(uncertain.groups, on=GROUP_KEY, how="left", maintain_order="left"),
            simple.join(of_offsets, on=GROUP_KEY, how="left", maintain_order="left"),
        ],
        how="diagonal",
    )
    return contract_frame(_with_completeness(rows, coverage), "groups")


def members(state: GroupState, of_groups: pl.DataFrame) -> pl.DataFrame:
    """Return every member of every group.

    What clients wrote may be unreadable (`unread`); other records are the broker's own.

    Args:
        state: The groups at the instant.
        of_groups: The table `groups`: what is lacking of a group is lacking of its members.
    """
    told = state.rows["a_member"].with_columns(unread=pl.col("missing"))
    return contract_frame(with_marks_of(told, of_groups, GROUP_KEY), "members")


def assignments(state: GroupState, topics: pl.DataFrame, of_groups: pl.DataFrame) -> pl.DataFrame:
    """Return who owns what.

    Args:
        state: The groups at the instant.
        topics: All rows of the table `topics`; ids that it does not name stay without a name.
        of_groups: The table `groups`: what is lacking of one is lacking of what its members own.
    """
    named = topics.filter(pl.col("topic_id").is_not_null())
    names = named.group_by("topic_id").agg(name=pl.col("topic").max())
    told = state.rows["an_assignment"].join(names, "topic_id", "left")
    told = with_marks_of(told, of_groups, GROUP_KEY)
    return contract_frame(told.with_columns(topic=pl.coalesce("topic", "name")), "assignments")


def _with_completeness(rows: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Add `complete` and `missing` to groups.

    Args:
        rows: Has `coordinator_partition`, `group_type`, `record_offset`, `known_from` and
            `between_cuts`: why records of the group may not count, null where they do.
        coverage: What the dump holds.
    """
    unnamed = pl.col("record_offset").is_null() & (pl.col("group_type") != "simple")
    without_record = pl.when(unnamed).then(pl.lit(NO_GROUP_RECORD))
    # The record at `known_from` is there; those behind it may not be.
    lost = may_be_superseded(coverage, pl.col("known_from") + 1)
    why = (without_record, lost, may_be_elsewhere(coverage), "between_cuts")
    missing = pl.concat_str(why, separator="; ", ignore_nulls=True)
    return with_missing(rows, missing)
