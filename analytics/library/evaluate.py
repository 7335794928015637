"""Questions to a replayed state, as commands answer them, with DataFrames for answers.

Each method returns a small object with a DataFrame for each table, of the caller's session and with
the columns of the contract (`schemas/tables/`, docs/tables.md). `cannot_tell` has what the dump
does not hold the answer to, in the words of the command: where it names a group, a row that is
absent proves nothing.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from analytics.gaps.group_selection import select_groups
from analytics.questions.balance.question import evaluate_balance
from analytics.questions.expiration.question import chosen_rules, evaluate_expiration
from analytics.questions.rebalances.question import evaluate_rebalances
from analytics.replayed.end_offsets import end_offsets_at
from analytics.replayed.given_settings import GivenSettings, Settings
from analytics.replayed.kept_evaluations import keep_evaluations
from analytics.replayed.replayed_workspace import ReplayedWorkspace
from analytics.tables.decoded_workspace import decoded_workspace
from analytics.tables.stored_tables import StoredTables, folder_of
from analytics.tables.table_frames import table_frame
from analytics.workspace import Workspace
from schemas import table
from schemas.evaluation_rules import balance_rules, rebalance_rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from analytics.questions.answer import Evaluated
    from schemas.thresholds import Given


@dataclass(frozen=True)
class Expiration:
    """Which offsets expire when (KIP-211).

    Attributes:
        offset_expiration: Each committed offset: the rule that protects it, or when it expires.
        offset_removals: Each offset that was removed, by whom or what, and whether rightly.
        what_if: `retention_what_if`: what each group would have lost by other retentions.
        group_endings: Groups whose offsets have all expired, and what became of them.
        commit_requests: Which version of OffsetCommit committed what is kept.
        cannot_tell: What the dump does not hold the answer to, one sentence each.
    """

    offset_expiration: DataFrame
    offset_removals: DataFrame
    what_if: DataFrame
    group_endings: DataFrame
    commit_requests: DataFrame
    cannot_tell: tuple[str, ...]


@dataclass(frozen=True)
class Balance:
    """How even assignments are.

    Attributes:
        assignment_balance: Each group, or each epoch of it, with its verdict and score.
        assignment_alternatives: What other assignors would give the same members.
        cannot_tell: What the dump does not hold the answer to, one sentence each.
    """

    assignment_balance: DataFrame
    assignment_alternatives: DataFrame
    cannot_tell: tuple[str, ...]


@dataclass(frozen=True)
class Rebalances:
    """How restless groups are.

    Attributes:
        rebalances: Each generation or group epoch: who joined, who left, what moved.
        group_churn: Each group: how many epochs an hour.
        rebalance_storms: When there were too many of them.
        stalled_members: Members that have stood still, and since when.
        rebalance_causes: What led to each epoch.
        cannot_tell: What the dump does not hold the answer to, one sentence each.
    """

    rebalances: DataFrame
    group_churn: DataFrame
    rebalance_storms: DataFrame
    stalled_members: DataFrame
    rebalance_causes: DataFrame
    cannot_tell: tuple[str, ...]


class Evaluate:
    """The questions; `state.evaluate` is one of these."""

    def __init__(
        self, spark: SparkSession, workspace: Workspace, kafka_version: str | None
    ) -> None:
        self._spark = spark
        self._kafka_version = kafka_version
        self._state = ReplayedWorkspace(
            StoredTables(workspace), decoded_workspace(workspace), workspace.manifest()
        )

    def expiration(
        self,
        *,
        retention_minutes: Sequence[int] = (),
        rules: str | None = None,
        end_offsets: str | None = None,
        settings: Mapping[str, str] | None = None,
        group_settings: Mapping[str, Mapping[str, str]] | None = None,
        thresholds: Given | None = None,
    ) -> Expiration:
        """Return which offsets expire when, which are gone and why, and what if.

        Args:
            retention_minutes: Retentions to try; a single one is taken to be in force.
            rules: The era whose rules apply, as ``--rules`` names it; None goes by the release.
            end_offsets: A file with log start and end offsets of data partitions.
            settings: Brokers' settings by Kafka's names, as `--config` has them.
            group_settings: Settings of single groups, likewise.
            thresholds: Of the question `expiration`, likewise.

        Raises:
            InputUnreadableError: A setting is no whole number, or the file cannot be read.
            SchemaError: A threshold is none.
            WorkspaceError: The replay did not make a table that is needed.
        """
        given = GivenSettings(
            settings or {}, group_settings or {}, {"expiration": thresholds} if thresholds else {}
        )
        state, everything = self._state, Settings(given=given)
        found = evaluate_expiration(
            state,
            select_groups(state),
            chosen_rules(state, everything, tuple(retention_minutes), rules, self._kafka_version),
            end_offsets_at(state, end_offsets),
            everything,
            with_requests=True,
        )
        frames = self._frames(found)
        return Expiration(
            what_if=frames.pop("retention_what_if"), **frames, cannot_tell=found.cannot_tell
        )

    def balance(self, *, history: bool = False, thresholds: Given | None = None) -> Balance:
        """Return how even assignments are at the instant, or in every epoch.

        Args:
            history: Judge every epoch, and not only the instant.
            thresholds: Of the question `balance`, as `--config` has them.

        Raises:
            SchemaError: A threshold is none.
            WorkspaceError: The replay did not make a table that is needed.
        """
        rules = balance_rules(thresholds or {})
        found = evaluate_balance(self._state, rules, through_history=history)
        return Balance(**self._frames(found), cannot_tell=found.cannot_tell)

    def rebalances(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        thresholds: Given | None = None,
    ) -> Rebalances:
        """Return who came and went with each epoch, how often, and when that was too much.

        Args:
            since: The first instant that is asked about, with a zone; None: from the beginning.
            until: The last one; None: to the end.
            thresholds: Of the question `rebalances`, as `--config` has them.

        Raises:
            SchemaError: A threshold is none.
            WorkspaceError: The replay did not make a table that is needed.
        """
        found = evaluate_rebalances(self._state, rebalance_rules(thresholds or {}), since, until)
        return Rebalances(**self._frames(found), cannot_tell=found.cannot_tell)

    def _frames(self, found: Evaluated) -> dict[str, DataFrame]:
        """Return the tables as DataFrames; files behind them stay as long as the dump is open."""
        beside = Path(self._state.tables.workspace.location).parent
        space = Workspace(tempfile.mkdtemp(prefix="evaluated-", dir=beside))
        keep_evaluations(space, found.tables, self._state)
        return {
            name: table_frame(self._spark, space, folder_of(name), table(name))
            for name in found.tables
        }
