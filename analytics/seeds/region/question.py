"""Checkpoints kept outside of Kafka: which are complete, and whether offsets were committed so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from analytics.decode.selection import Selection
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
from schemas.region_rules import region_rules

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.region_rules import RegionRules


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
        f"{each} names no group: give --checkpoint-group GROUP"
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
    doubts: tuple[str, ...] = (),
) -> Answer:
    limitations = [each for region in judgement.regions for each in _limitations_of(region)]
    return Answer(
        tables_of(judgement),
        groups,
        (*doubts, *limitations),
        summary={"findings": dict(rules.findings)},
    )


def _limitations_of(region: Region) -> list[str]:
    """Return what cannot be told of a group, each reason once with how often."""
    key = region.checkpoints[0].key
    name = key.group_id or key.source or "a group without a name"
    found: list[str] = []
    unusable = next((each.unusable for each in region.checkpoints if each.unusable), None)
    if unusable is not None:
        found.append(f"where {name} reads on: {unusable}")
    elif region.latest is None:
        found.append(f"{name}: none of its {len(region.checkpoints)} checkpoints is complete")
    elif region.latest.missing is not None and region.present is None:
        found.append(f"{name}: checkpoint {region.latest.key.sequence_id}: {region.latest.missing}")
    if region.present is None:
        return found
    present = region.present
    drains = Counter(each.missing for each in region.drains or () if each.verdict == CANNOT_TELL)
    found += [f"{count} drains of {name}: {why}" for why, count in drains.items()]
    plan = Counter(each.missing for each in region.plan if each.missing is not None)
    found += [f"where {name} reads on in {count} partitions: {why}" for why, count in plan.items()]
    if key.form in OF_REGIONS and present.matched.why_unknown is not None:
        found.append(f"which members of {name} its operators are: {present.matched.why_unknown}")
    return found


REGION: Final = Question(
    name="region",
    needs=NEEDS,
    tables=TABLES,
    settings=RegionSettings,
    answer=region,
    is_audited=False,
)
