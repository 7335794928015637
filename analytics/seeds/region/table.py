"""The question about checkpoints as a whole: merged, drained, restored, and what is wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from analytics.seeds.region.contributions import (
    MERGE,
    OF_REGIONS,
    CheckpointKey,
    Contribution,
    Matched,
    Member,
    Partition,
    matched,
    partition_text,
)
from analytics.seeds.region.drains import (
    NONE,
    PARTIAL,
    Drain,
    Evidence,
    drains_of,
    left_out_reasons,
)
from analytics.seeds.region.merge import (
    CHECKPOINT,
    NO_TOPIC,
    Checkpoint,
    Owners,
    Present,
    Seek,
    latest_complete,
    merged,
    seek_plan,
)
from schemas.evaluation_rules import RegionRules

# What is wrong with checkpoints, drains, the plan, and what regions assume of their groups.

REPEATED = "contribution_repeated"
"""The one that harms nothing."""

_LOG_FINDINGS = {
    NO_TOPIC: "topic_gone",
    "other_topic": "checkpoint_of_another_topic",
    "deleted": "records_deleted",
    "beyond_end": "beyond_log_end",
}
_COMMIT_FINDINGS = {
    "other_topic": "commit_of_another_topic",
    "ahead": "committed_ahead",
    "behind": "committed_behind",
}


@dataclass(frozen=True)
class Finding:
    """Something that is wrong.

    Attributes:
        key: The checkpoint; of what is about all of a group's, the last one.
        word: As `rules/region.json` has it.
        detail: What was found, in words.
        operator: Of which operator.
        partition: Of which partition.
        is_of_all: It is about all checkpoints of the group.
    """

    key: CheckpointKey
    word: str
    detail: str
    operator: str | None = None
    partition: Partition | None = None
    is_of_all: bool = False


def of_checkpoint(checkpoint: Checkpoint, timeout_ms: int) -> Iterator[Finding]:
    """Yield what is wrong with the merge of a checkpoint."""
    key = checkpoint.key
    if not checkpoint.is_finished:
        yield Finding(key, "not_finished", "its writer planned it and never finished it")
    for name in checkpoint.absent:
        yield Finding(key, "contribution_missing", f"{name} did not contribute", name)
    if not checkpoint.absent and not checkpoint.is_merged and checkpoint.is_finished:
        yield Finding(key, "contribution_missing", str(checkpoint.missing))
    if len(checkpoint.sets) > 1:
        said = " / ".join(", ".join(sorted(each)) for each in checkpoint.sets)
        yield Finding(key, "sets_differ", f"operators name {said}")
    for name in checkpoint.strangers:
        yield Finding(key, "operator_not_registered", f"no set names {name}", name)
    for each in checkpoint.late:
        begun = min(
            other.at
            for other in checkpoint.contributions
            if other.at is not None and other.reset_attempt == each.reset_attempt
        )
        late = (each.at or 0) - begun
        detail = f"{late} ms after the first, and {timeout_ms} ms are waited"
        yield Finding(key, "contribution_late", detail, each.operator)
    for partition, offset in checkpoint.offsets.items():
        if offset.named:
            word = "offsets_differ" if offset.offset is None else "offsets_decided"
            said = ", ".join(offset.offsets_in_words)
            said += f"; {offset.decided_by} had it" if offset.decided_by else ""
            yield Finding(key, word, said, partition=partition)
    yield from _repeats(checkpoint)


def _repeats(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Yield which operators contributed again to one reset: each further one asks for it anew."""
    seen: set[tuple[str, int | None]] = set()
    for each in checkpoint.contributions:
        for name in each.contributors:
            if (name, each.reset_attempt) in seen:
                attempt = "" if each.reset_attempt is None else f" (reset {each.reset_attempt})"
                detail = f"{name} contributed again{attempt}"
                yield Finding(checkpoint.key, REPEATED, detail, name)
            seen.add((name, each.reset_attempt))


def of_indexes(checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Yield that operators of one group name different regions."""
    indexes = sorted({index for each in checkpoints for index in each.region_indexes})
    if len(indexes) > 1:
        said = ", ".join(map(str, indexes))
        detail = f"operators name the regions {said}"
        yield Finding(checkpoints[-1].key, "region_index_differs", detail, is_of_all=True)


def of_drains(drains: Iterable[Drain]) -> Iterator[Finding]:
    """Yield which drains were partial, or none."""
    words = {PARTIAL: "drain_partial", NONE: "drain_missing"}
    for each in drains:
        if each.verdict in words:
            detail = "; ".join(left_out_reasons(each))
            operator = each.contribution.operator
            yield Finding(each.checkpoint.key, words[each.verdict], detail, operator)


def of_members(latest: Checkpoint, present: Present) -> Iterator[Finding]:
    """Yield members that are no operators, and operators that are no members."""
    if latest.key.form not in OF_REGIONS or present.membership_gap is not None:
        return
    for member in present.matched.outside:
        called = member.group_instance_id or member.client_id or member.member_id
        detail = f"{called} ({member.member_id}) is a member and no registered operator"
        yield Finding(latest.key, "member_outside_region", detail, is_of_all=True)
    for name in present.matched.without:
        detail = f"{name} is registered and no member of the group"
        yield Finding(latest.key, "operator_without_member", detail, name, is_of_all=True)


def of_plan(key: CheckpointKey, plan: Iterable[Seek], *, has_latest: bool) -> Iterator[Finding]:
    """Yield what stands against reading on where the plan says."""
    for each in plan:
        at = f"the checkpoint has {each.offset}"
        if has_latest and each.basis != CHECKPOINT and each.owner is not None:
            detail = f"{each.owner.member_id} has {partition_text(each.partition)}"
            yield Finding(key, "not_covered", detail, partition=each.partition)
        if each.log_is in _LOG_FINDINGS:
            ends = f"the log {each.log.start} to {each.log.end}"
            detail = f"{at}, {'there is no such topic' if each.log_is == NO_TOPIC else ends}"
            yield Finding(key, _LOG_FINDINGS[each.log_is], detail, partition=each.partition)
        if each.commit_is in _COMMIT_FINDINGS and each.basis == CHECKPOINT:
            offset = None if each.committed is None else each.committed.offset
            detail = f"{at}, the group committed {offset}"
            word = _COMMIT_FINDINGS[each.commit_is]
            yield Finding(key, word, detail, each.contributed_by, each.partition)


def in_order(findings: Iterable[Finding], meanings: Mapping[str, str]) -> list[Finding]:
    """Return findings, the worst first, each once."""
    rank = {word: place for place, word in enumerate(meanings)}
    return sorted(
        dict.fromkeys(findings),
        key=lambda each: (
            rank[each.word],
            each.key.order,
            each.operator or "",
            each.partition or ("", -1),
            each.detail,
        ),
    )


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
    return merged(contributions, rules.merge.timeout_ms, owners)


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
    drains = drains_of(checkpoints, dumped.evidence, rules.drain.clock_difference_ms)
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
        found.extend(of_checkpoint(each, rules.merge.timeout_ms))
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
