"""The tables about rebalances: what each is made of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.evaluate.rebalances.churn import group_churn
from analytics.evaluate.rebalances.epochs import rebalances
from analytics.evaluate.rebalances.stalled_members import (
    idle_owners,
    reconciling_members,
    unassigned_epochs,
)
from analytics.evaluate.rebalances.storms import rebalance_storms
from analytics.replay.graph import Step
from schemas.evaluation_rules import RebalanceRules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from analytics.replay.log.as_of import Decoded
    from analytics.replay.log.coverage import Coverage


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


def _within(frame: DataFrame, time: str, asked: AskedTime) -> DataFrame:
    if asked.begins is not None:
        frame = frame.where(F.col(time) >= F.lit(asked.begins))
    if asked.ends is not None:
        frame = frame.where(F.col(time) <= F.lit(asked.ends))
    return frame


def _begun(epochs: DataFrame) -> DataFrame:
    """Leave out what a classic group stores before its first join: generation 0, of nobody."""
    return epochs.where("epoch > 0 or member_count > 0")


def _known(changes: DataFrame) -> DataFrame:
    """Leave out members that may have come before the first record that compaction left of them."""
    return changes.where(~F.col("before_is_compacted"))


def _epochs(
    epochs: DataFrame, changes: DataFrame, cut: Decoded, coverage: Coverage, asked: AskedTime
) -> DataFrame:
    rows = rebalances(_begun(epochs), _known(changes), cut["group_metadata"], coverage)
    return _within(rows, "at", asked).localCheckpoint()


def _changes(changes: DataFrame, asked: AskedTime) -> DataFrame:
    return _within(_known(changes), "at", asked).localCheckpoint()


def _storms(epochs: DataFrame, changes: DataFrame, asked: AskedTime) -> DataFrame:
    rules = asked.rules
    inside = _within(_begun(epochs), "from_timestamp", asked)
    return rebalance_storms(
        inside, changes, rules.storm_epochs, rules.storm_minutes
    ).localCheckpoint()


def _churn(
    epochs: DataFrame,
    changes: DataFrame,
    storms: DataFrame,
    coverage: Coverage,
    asked: AskedTime,
) -> DataFrame:
    return group_churn(epochs, changes, storms, asked.ends or asked.now, coverage)


def _standing(
    groups: DataFrame,
    members: DataFrame,
    epochs: DataFrame,
    held: DataFrame,
    offsets: DataFrame,
    asked: AskedTime,
) -> DataFrame:
    return (
        unassigned_epochs(groups, epochs)
        .unionByName(reconciling_members(groups, members, epochs, asked.now, asked.rules))
        .unionByName(idle_owners(held, offsets, asked.now, asked.rules))
    )


REBALANCES = (
    Step("changes_asked", _changes, ("membership_changes", "asked")),
    Step("rebalances", _epochs, ("group_epochs", "membership_changes", "cut", "coverage", "asked")),
    Step("rebalance_storms", _storms, ("group_epochs", "changes_asked", "asked")),
    Step(
        "group_churn",
        _churn,
        ("rebalances", "changes_asked", "rebalance_storms", "coverage", "asked"),
    ),
    Step(
        "stalled_members",
        _standing,
        ("groups", "members", "group_epochs", "assignment_history", "offset_history", "asked"),
    ),
)
"""Beside state and history it takes `cut`, `coverage` and `asked`."""
