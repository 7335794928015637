"""The groups that have records, as rows of `groups` without completeness.

Of a classic group only Empty and Stable can be recovered from records: a rebalance under way leaves
none. Group epoch and assignment epoch of the other types stand in records of their own (KIP-848).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.replay.groups.coded_log import NONE, numbers
from analytics.replay.groups.columns import CLASSIC, CONSUMER, GROUPS, SHARE, STREAMS
from analytics.replay.groups.group_records import (
    ASSIGNMENT_EPOCH,
    FAMILIES,
    GROUP,
    REMOVED_ASSIGNMENT_EPOCH,
    TOPOLOGY,
)
from analytics.replay.groups.in_force import InForce, optional
from analytics.replay.groups.member_rows import STABLE, Members, struct

if TYPE_CHECKING:
    from analytics.replay.groups.coded_log import Flags, Numbers
    from analytics.replay.log.rules import ReplayRules

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
