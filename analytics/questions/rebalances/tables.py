"""The tables about rebalances: what each is made of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import polars as pl

from analytics.contracts import in_contract_order
from analytics.questions.rebalances.causes import causes
from analytics.questions.rebalances.churn import group_churn
from analytics.questions.rebalances.epochs import rebalances
from analytics.questions.rebalances.shared_instances import shared_instances
from analytics.questions.rebalances.stalled_members import (
    idle_owners,
    reconciling_members,
    unassigned_epochs,
)
from analytics.questions.rebalances.storms import CHURN, rebalance_storms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.replay.log.coverage import Coverage
    from schemas.evaluation_rules import RebalanceRules


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
        rules.storm_epochs,
        rules.storm_minutes,
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
