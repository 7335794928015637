"""How even assignments of a replayed workspace are, and in which partitions its groups lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import polars_rows
from analytics.dump.inspection.limitations import ranges
from analytics.gaps.gap import Gap, gap, joined_reasons
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.gaps.group_selection import HOMES, select_groups
from analytics.gaps.internal_topics import partitions_set
from analytics.questions.balance.balance_tables import HISTORY, NEEDS, tables_ever, tables_now
from analytics.questions.balance.case import Placement, placement
from analytics.questions.balance.evaluated import ALTERNATIVES
from analytics.questions.balance.evaluated import BALANCE as BALANCE_ROWS
from analytics.questions.balance.through_history import HeldInEpochs
from analytics.questions.question import Answer, Question
from analytics.tables.parted_table import PartedTable, PartedTables
from analytics.tables.stored_tables import StoredTables
from schemas import CONSUMER_OFFSETS
from schemas.evaluation_rules import RebalanceRules, balance_rules, rebalance_rules
from schemas.reading import words_of

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

_CANNOT_TELL: Final = "cannot_tell"


@dataclass(frozen=True)
class BalanceSettings:
    """What of balance is asked.

    Attributes:
        history: Judge every epoch, and not only the instant.
    """

    history: bool = False


def balance(state: ReplayedWorkspace, settings: BalanceSettings) -> Answer:
    """Return how even assignments are at the instant, or in every epoch.

    Raises:
        SchemaError: A threshold is none.
        WorkspaceError: A table cannot be read.
    """
    thresholds = state.settings.from_file.thresholds
    rules = balance_rules(thresholds("balance"))
    groups = select_groups(state, with_offsets=False, columns=(*HOMES, "member_count"))
    gaps = _gaps(state, groups.rows, through_history=settings.history)
    if settings.history:
        tables = tables_ever(state, HeldInEpochs(state), rules, gaps)
    else:
        tables = tables_now(state, rules, gaps)
    known = set(groups.cannot_tell)
    doubts = (each for each in _doubts(tables[BALANCE_ROWS]) if each.words not in known)
    places = group_placement(state, rebalance_rules(thresholds("rebalances")))
    return Answer(
        PartedTables(tables),
        groups,
        tuple(doubts),
        warnings=tuple(_misplaced(places)),
        summary={"verdicts": words_of(rules.verdicts), "placement": asdict(places)},
    )


def _gaps(state: ReplayedWorkspace, groups: pa.Table, *, through_history: bool) -> dict[str, str]:
    """Return the groups with members of which the dump lacks records that may matter, with why."""
    completeness = GroupCompleteness(state)
    with_members = pc.field("member_count") > 0
    if through_history:
        ever = state.tables.read("group_epochs", ["group_id"], with_members)["group_id"]
        groups = groups.filter(pc.is_in(groups["group_id"], pc.unique(ever)))
    else:
        groups = groups.filter(with_members)
    found: dict[str, str] = {}
    for group in completeness.may_have_gaps(groups):
        gaps = completeness.gaps_of(group)
        why = joined_reasons(gaps.membership or (gaps.history if through_history else ()))
        if why is not None:
            found[group] = why
    return found


def _doubts(balance: PartedTable) -> list[Gap]:
    """Return what cannot be told of groups, each once."""
    unknown = balance.where(pl.col("verdict") == _CANNOT_TELL)
    found = {
        gap("balance_unknown", group_id=row["group_id"], why=row["cause"] or _CANNOT_TELL): None
        for rows in unknown.pieces(["group_id", "cause"])
        for row in rows.to_pylist()
    }
    return list(found)


def _misplaced(places: Placement) -> Iterator[str]:
    """Yield what is wrong with the partitions in which groups lie, one sentence each."""
    for group, partition, home in places.misplaced:
        yield (
            f"{group} lies in {CONSUMER_OFFSETS}-{partition} but belongs to partition {home}: no "
            "broker finds it"
        )
    if places.overloaded:
        yield (
            f"{CONSUMER_OFFSETS} {ranges(places.overloaded)}: many more groups than in the others "
            f"(up to {places.most} of {places.groups})"
        )


def group_placement(state: ReplayedWorkspace, rules: RebalanceRules) -> Placement:
    """Verify the place of every group that is there, whichever were asked for."""
    everything = StoredTables(state.tables.workspace)
    topics = everything.read("topics", ["partitions"], pc.field("topic") == CONSUMER_OFFSETS)
    counts = [each for each in topics["partitions"].to_pylist() if each]
    groups = polars_rows(everything.read("groups", ["group_id", "coordinator_partition"]))
    present = {
        each["partition"]
        for each in state.manifest["partitions"]
        if each["topic"] == CONSUMER_OFFSETS
    }
    count = max(counts, default=None) or partitions_set(state, CONSUMER_OFFSETS)
    return placement(groups, count, rules, len(present))


BALANCE: Final = Question(
    name="balance",
    needs=NEEDS,
    tables=(BALANCE_ROWS, ALTERNATIVES),
    settings=BalanceSettings,
    answer=balance,
    needs_besides=lambda settings: (HISTORY,) if settings.history else (),
)
