"""The question about checkpoints as a whole: merged, drained, restored, and what is wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from analytics.questions.region.contributions import MERGE, Contribution
from analytics.questions.region.drains import Drain, Evidence, drains_of
from analytics.questions.region.findings import (
    Finding,
    in_order,
    of_checkpoint,
    of_drains,
    of_indexes,
    of_members,
    of_plan,
)
from analytics.questions.region.members import Matched, Member, matched
from analytics.questions.region.merge import Checkpoint, Owners, merged
from analytics.questions.region.seek_plan import Present, Seek, latest_complete, seek_plan
from schemas.region_rules import RegionRules


@dataclass(frozen=True)
class Region:
    """The checkpoints of one group, or of one query or table.

    Attributes:
        checkpoints: In the order of their sequence ids.
        latest: The latest that is merged; None where none is.
        drains: Of each operator and checkpoint; None without a dump.
        present: The group at the instant; None where no dump shows it.
        plan: Where reading would go on.
    """

    checkpoints: Sequence[Checkpoint]
    latest: Checkpoint | None
    drains: Sequence[Drain] | None = None
    present: Present | None = None
    plan: Sequence[Seek] = ()

    @property
    def operators(self) -> list[str]:
        """Every operator that is named."""
        return sorted(
            {
                name
                for each in self.checkpoints
                for made in each.contributions
                for name in (*made.contributors, *made.operators)
            }
        )


@dataclass(frozen=True)
class Dumped:
    """What a dump shows of groups.

    Attributes:
        evidence: Of the commits of each group.
        present: Each group at the instant.
        members: Of each group.
    """

    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    present: Mapping[str, Present] = field(default_factory=dict)
    members: Mapping[str, Sequence[Member]] = field(default_factory=dict)


@dataclass(frozen=True)
class Judgement:
    """Checkpoints as they were judged.

    Attributes:
        regions: By group, query or table.
        findings: The worst first.
    """

    regions: Sequence[Region]
    findings: Sequence[Finding]


def checkpoints_of(
    contributions: Iterable[Contribution], rules: RegionRules, owners: Owners | None = None
) -> list[Checkpoint]:
    """Return the checkpoints, merged."""
    return merged(contributions, rules.merge_timeout_ms, owners)


def evaluate_regions(
    checkpoints: Sequence[Checkpoint], dumped: Dumped | None, rules: RegionRules
) -> Judgement:
    """Judge checkpoints.

    Args:
        checkpoints: As `checkpoints_of` returns them.
        dumped: What a dump shows; None without one.
        rules: What counts as wrong.
    """
    regions = [
        _region(list(each), dumped, rules)
        for _, each in groupby(checkpoints, key=lambda one: one.key.of_all)
    ]
    found = [finding for each in regions for finding in _findings(each, rules)]
    return Judgement(regions, in_order(found, rules.findings))


def _region(checkpoints: Sequence[Checkpoint], dumped: Dumped | None, rules: RegionRules) -> Region:
    is_usable = not any(each.unusable for each in checkpoints)
    latest = latest_complete(checkpoints) if is_usable else None
    group = checkpoints[0].key.group_id
    if dumped is None or group is None or group not in dumped.present:
        return Region(checkpoints, latest)
    registered = [name for name in _registered(checkpoints) if name]
    who = matched(dumped.members.get(group, ()), registered)
    present = dumped.present[group]
    present = _with(present, who)
    drains = drains_of(checkpoints, dumped.evidence, rules.clock_difference_ms)
    return Region(checkpoints, latest, drains, present, seek_plan(latest, present))


def _with(present: Present, who: Matched) -> Present:
    return Present(**{**vars(present), "matched": who})


def _registered(checkpoints: Sequence[Checkpoint]) -> list[str]:
    """Return the operators of the latest checkpoint: those that the group has now."""
    last = checkpoints[-1]
    named = sorted(frozenset().union(*last.sets)) if last.sets else last.contributors
    return sorted({*named, *last.contributors}) if last.key.form != MERGE else last.contributors


def _findings(region: Region, rules: RegionRules) -> list[Finding]:
    found: list[Finding] = []
    for each in region.checkpoints:
        found.extend(of_checkpoint(each, rules.merge_timeout_ms))
    found.extend(of_indexes(region.checkpoints))
    found.extend(of_drains(region.drains or ()))
    if region.present is not None:
        last = region.latest or region.checkpoints[-1]
        found.extend(of_members(last, region.present))
        found.extend(of_plan(last.key, region.plan, has_latest=region.latest is not None))
    return found


def drains_by_checkpoint(region: Region) -> dict[int, list[Drain]]:
    """Return the drains of a region by sequence id."""
    found: dict[int, list[Drain]] = defaultdict(list)
    for each in region.drains or ():
        found[each.checkpoint.key.sequence_id].append(each)
    return found
