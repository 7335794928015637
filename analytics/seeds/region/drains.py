"""Whether an operator's offsets were committed before its checkpoint, in one request.

On drain an operator commits all offsets of its offset manager in one synchronous request; where
that fails for one partition, it restarts and the region is reset to the checkpoint before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from analytics.seeds.region.commits import Request
from analytics.seeds.region.contributions import (
    MERGE,
    OF_REGIONS,
    Contribution,
    Partition,
    partition_text,
)
from analytics.seeds.region.merge import Checkpoint

CLEAN: Final = "clean"
PARTIAL: Final = "partial"
NONE: Final = "none"
CANNOT_TELL: Final = "cannot_tell"


@dataclass(frozen=True)
class Evidence:
    """What a dump shows of the commits of a group.

    Attributes:
        requests: Those that committed an offset of a checkpoint, in the order of the log.
        until: The instant asked about, in epoch milliseconds: later commits are not shown.
        shown_since: Since then every commit is shown; None: since ever.
        never_shown: No commit is sure to be shown.
        gap: Why its history cannot be told; None where it can.
        left_out: By topic, why no commit of it is there.
    """

    requests: Sequence[Request] = ()
    until: int | None = None
    shown_since: int | None = None
    never_shown: bool = False
    gap: str | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Drain:
    """The drain of an operator before a checkpoint.

    Attributes:
        checkpoint: The checkpoint.
        contribution: What the operator contributed.
        verdict: clean, partial, none or cannot_tell.
        committed: The partitions that its commit holds with the same offset.
        left_out: The others, and what became of them.
        requests: The commits that hold offsets of it; of an operator at most one.
        missing: What the dump lacks, where it cannot be told.
    """

    checkpoint: Checkpoint
    contribution: Contribution
    verdict: str
    committed: tuple[Partition, ...] = ()
    left_out: tuple[tuple[Partition, str], ...] = ()
    requests: tuple[Request, ...] = ()
    missing: str | None = None

    @property
    def drain_ms(self) -> int | None:
        """How long it took, where the operator says when it began."""
        begun = self.contribution.drain_started_at
        if begun is None or not self.requests:
            return None
        return self.requests[-1].committed_at - begun


def drains_of(
    checkpoints: Sequence[Checkpoint], evidence: Mapping[str, Evidence], clock_difference_ms: int
) -> list[Drain]:
    """Judge the drain of each operator of a region before each checkpoint of known groups.

    Other writers promise no commit before a checkpoint.

    Args:
        checkpoints: In the order of their sequence ids.
        evidence: By group.
        clock_difference_ms: How far the operators' clocks and the coordinator's may differ.
    """
    found = []
    before: dict[tuple[object, ...], _Before] = defaultdict(_Before)
    for checkpoint in checkpoints:
        group = checkpoint.key.group_id
        if group is None or group not in evidence or checkpoint.key.form not in OF_REGIONS:
            continue
        for contribution in _first_of_each(checkpoint):
            if not contribution.offsets:
                continue
            known = before[*checkpoint.key.of_all, contribution.operator]
            window = _Window.of(contribution, known, evidence[group], clock_difference_ms)
            drain = _drain(checkpoint, contribution, window, evidence[group])
            found.append(drain)
            at = contribution.at if contribution.at is not None else known.at
            last = drain.requests[-1] if drain.requests else known.request
            before[*checkpoint.key.of_all, contribution.operator] = _Before(at, last)
    return found


@dataclass(frozen=True)
class _Before:
    """The checkpoint before: when it was made, and the commit of its drain."""

    at: int | None = None
    request: Request | None = None


@dataclass(frozen=True)
class _Window:
    """When a drain can have been: after the checkpoint before, until its own was made."""

    after: int | None
    until: int | None
    behind: int
    candidates: tuple[Request, ...]

    @classmethod
    def of(
        cls, contribution: Contribution, before: _Before, evidence: Evidence, difference: int
    ) -> _Window:
        after = None if before.at is None else before.at - difference
        if contribution.drain_started_at is not None:
            after = contribution.drain_started_at - difference
        until = None if contribution.at is None else contribution.at + difference
        behind = -1 if before.request is None else before.request.record_offset
        candidates = tuple(
            each
            for each in evidence.requests
            if each.record_offset > behind
            and (after is None or each.committed_at >= after)
            and (until is None or each.committed_at <= until)
        )
        return cls(after, until, behind, candidates)


def _first_of_each(checkpoint: Checkpoint) -> list[Contribution]:
    """Return one contribution an operator: repeats are of later resets to the same checkpoint."""
    found: dict[str | None, Contribution] = {}
    for each in checkpoint.contributions:
        found.setdefault(each.operator, each)
    return [found[name] for name in sorted(found, key=str)]


def _drain(
    checkpoint: Checkpoint, contribution: Contribution, window: _Window, evidence: Evidence
) -> Drain:
    wanted = {each: offset for each, offset in contribution.offsets if offset is not None}
    if contribution.key.form == MERGE:
        requests = _of_merge(wanted, window, len(contribution.contributors))
    else:
        best = _best(wanted, window, contribution.at)
        requests = () if best is None else (best,)
    committed = tuple(
        sorted(
            each
            for each, offset in wanted.items()
            if any(request.offsets.get(each) == offset for request in requests)
        )
    )
    left_out = tuple(
        (each, _became(each, wanted[each], requests, window))
        for each in sorted(set(wanted) - set(committed))
    )
    if not left_out:
        return Drain(checkpoint, contribution, CLEAN, committed, (), requests)
    not_there = (evidence.left_out.get(topic) for (topic, _), _ in left_out)
    missing = next(filter(None, not_there), None) or _untold(window, evidence)
    verdict = CANNOT_TELL if missing else PARTIAL if committed else NONE
    return Drain(checkpoint, contribution, verdict, committed, left_out, requests, missing)


def _best(offsets: Mapping[Partition, int], window: _Window, at: int | None) -> Request | None:
    """Return the commit that holds most offsets; of several the one next to the checkpoint."""

    def rank(request: Request) -> tuple[int, int]:
        distance = request.record_offset if at is None else abs(at - request.committed_at)
        return _held(offsets, request), -distance

    best = max(window.candidates, key=rank, default=None)
    return best if best is not None and _held(offsets, best) else None


def _of_merge(
    offsets: Mapping[Partition, int], window: _Window, operators: int
) -> tuple[Request, ...]:
    """Return the last commits that together hold most offsets: one an operator at most."""
    left = dict(offsets)
    found: list[Request] = []
    for request in reversed(window.candidates):
        held = [each for each, offset in left.items() if request.offsets.get(each) == offset]
        if held and len(found) < operators:
            found.append(request)
            for each in held:
                del left[each]
    return tuple(reversed(found))


def _held(offsets: Mapping[Partition, int], request: Request) -> int:
    return sum(request.offsets.get(each) == offset for each, offset in offsets.items())


def _became(partition: Partition, offset: int, requests: Sequence[Request], window: _Window) -> str:
    """Return what became of an offset that was not committed with the others."""
    for each in requests:
        if partition in each.offsets:
            return f"committed {each.offsets[partition]} instead of {offset}"
    if any(each.offsets.get(partition) == offset for each in window.candidates):
        return f"{offset} was committed at another instant"
    return f"{offset} was not committed"


def _untold(window: _Window, evidence: Evidence) -> str | None:
    """Return why a commit may be there that is not shown; None where all are shown."""
    if evidence.gap is not None:
        return evidence.gap
    if evidence.until is not None and window.until is not None and window.until > evidence.until:
        return "the checkpoint is later than the instant asked about, or too close to it"
    if evidence.never_shown:
        return "compaction may have removed its commits"
    if evidence.shown_since is not None and (window.after or 0) < evidence.shown_since:
        return "compaction may have removed commits from before the checkpoint"
    return None


def left_out_reasons(drain: Drain) -> list[str]:
    """Return the partitions that were not committed with the others, in words."""
    return [f"{partition_text(partition)}: {what}" for partition, what in drain.left_out]
