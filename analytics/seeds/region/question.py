"""Checkpoints kept outside of Kafka: which are complete, and whether offsets were committed so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from analytics.decode.selection import Selection
from analytics.gaps.gap import Gap, gap
from analytics.gaps.group_selection import GroupSelection, select_groups
from analytics.questions.answer import Answer
from analytics.questions.question import Question
from analytics.seeds.region.contributions import (
    OF_REGIONS,
    Contribution,
    Partition,
    groups_of,
    places_without_group,
)
from analytics.seeds.region.drains import CANNOT_TELL
from analytics.seeds.region.evidence import NEEDS, dumped_groups, owners_then
from analytics.seeds.region.rows import TABLES, tables_of
from analytics.seeds.region.table import Judgement, Region, checkpoints_of, evaluate_regions
from analytics.tables.stored_tables import StoredTables
from schemas.evaluation_rules import region_rules

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.evaluation_rules import RegionRules


@dataclass(frozen=True)
class RegionSettings:
    """Which checkpoints are judged, and what neither they nor the dump tell.

    Attributes:
        contributions: What operators contributed to checkpoints.
        initial_offsets: By partition, the offset that its group begins with.
        start_position: Where reading starts in a partition that nothing else tells of: beginning,
            end or committed.
        end_offsets: A file that says where logs ended.
    """

    contributions: tuple[Contribution, ...] = ()
    initial_offsets: Mapping[Partition, int] | None = None
    start_position: str | None = None
    end_offsets: str | None = None


def region(state: ReplayedWorkspace, settings: RegionSettings) -> Answer:
    """Return which checkpoints are complete, and hold them against what their groups committed.

    Of the groups of a workspace only those are looked at that checkpoints are of.

    Raises:
        InputUnreadableError: The file is not what it has to be.
        WorkspaceError: A table cannot be read.
    """
    rules = region_rules(state.settings.from_file.thresholds("region"))
    selection = Selection(
        groups=tuple(groups_of(settings.contributions)), topics=state.tables.selection.topics
    )
    state = replace(state, tables=StoredTables(state.tables.workspace, selection))
    groups = select_groups(state)
    checkpoints = checkpoints_of(settings.contributions, rules)
    owners = owners_then(state, checkpoints)
    checkpoints = checkpoints_of(settings.contributions, rules, owners)
    dumped = dumped_groups(state, checkpoints, settings)
    without_group = tuple(
        gap("checkpoint_without_group", checkpoint=each)
        for each in places_without_group(settings.contributions)
    )
    return _answer(evaluate_regions(checkpoints, dumped, rules), rules, groups, without_group)


def checkpoints_alone(contributions: Sequence[Contribution], rules: RegionRules) -> Answer:
    """Return what checkpoints say by themselves: nothing of drains, members and the seek plan."""
    return _answer(evaluate_regions(checkpoints_of(contributions, rules), None, rules), rules)


def _answer(
    judgement: Judgement,
    rules: RegionRules,
    groups: GroupSelection | None = None,
    doubts: tuple[Gap, ...] = (),
) -> Answer:
    of_regions = [each for region in judgement.regions for each in _doubts_of(region)]
    return Answer(
        tables_of(judgement),
        groups,
        (*doubts, *of_regions),
        summary={"findings": dict(rules.findings)},
    )


def _doubts_of(region: Region) -> list[Gap]:
    """Return what cannot be told of a group, each reason once with how often."""
    key = region.checkpoints[0].key
    name = key.group_id or key.source or "a group without a name"
    # A folder stands for the group that its checkpoints do not name.
    of_group = {"group_id": key.group_id, "checkpoint": None if key.group_id else name}
    found: list[Gap] = []
    unusable = next((each.unusable for each in region.checkpoints if each.unusable), None)
    if unusable is not None:
        found.append(gap("checkpoints_unusable", **of_group, why=unusable))
    elif region.latest is None:
        count = len(region.checkpoints)
        found.append(gap("no_checkpoint_complete", **of_group, checkpoints=count))
    elif region.latest.missing is not None and region.present is None:
        number = region.latest.key.sequence_id
        missing = region.latest.missing
        found.append(gap("checkpoint_incomplete", **of_group, sequence_id=number, why=missing))
    if region.present is None:
        return found
    drains = Counter(each.missing for each in region.drains or () if each.verdict == CANNOT_TELL)
    found += [
        gap("drains_unknown", **of_group, drains=count, why=why or "not known")
        for why, count in drains.items()
    ]
    plan = Counter(each.missing for each in region.plan if each.missing is not None)
    found += [
        gap("seek_plan_unknown", **of_group, partitions=count, why=why)
        for why, count in plan.items()
    ]
    why_unknown = region.present.matched.why_unknown
    if key.form in OF_REGIONS and why_unknown is not None:
        found.append(gap("operators_unmatched", **of_group, why=why_unknown))
    return found


REGION: Final = Question(
    name="region",
    needs=NEEDS,
    tables=TABLES,
    settings=RegionSettings,
    answer=region,
    is_audited=False,
)
