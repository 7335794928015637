"""Commits of groups as requests, and whether an operator's came before its checkpoint."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.seeds.region.contributions import (
    MERGE,
    OF_REGIONS,
    Contribution,
    Partition,
    partition_text,
)
from analytics.seeds.region.merge import Checkpoint

# Commits of groups, as the requests they came in: one request, one instant.

HISTORY: Final = (
    *("group_id", "topic", "partition", "event", "committed_offset", "commit_timestamp"),
    *("effective_timestamp", "member_id", "batch_offset", "coordinator_partition"),
    "record_offset",
)
"""Of the table `offset_history`, what is read."""

_COMMITS: Final = pa.array(["commit", "transaction_commit"])
_KEY: Final = ("group_id", "topic", "partition")
_REQUEST: Final = ("group_id", "coordinator_partition", "commit_timestamp", "batch")
_NO_BATCH: Final = -1


@dataclass(frozen=True)
class Request:
    """Offsets of a group that were committed together.

    A request has one time of commit and lies in one batch. A coordinator may append several as one
    batch: those of one millisecond then look like one.

    Attributes:
        committed_at: In epoch milliseconds.
        coordinator_partition: Where it lies.
        record_offset: Of its first record.
        member_id: Who committed; None where it cannot be told, or is not one.
        offsets: What it committed.
    """

    committed_at: int
    coordinator_partition: int
    record_offset: int
    member_id: str | None
    offsets: Mapping[Partition, int]


def requests_of(
    history: Iterable[pa.Table], offsets: Collection[tuple[str, str, int, int]]
) -> dict[str, list[Request]]:
    """Return by group the requests that committed a wanted offset, in the order of the log.

    Args:
        history: `HISTORY` in parts.
        offsets: Group, topic, partition and offset.
    """
    columns = list(zip(*sorted(offsets), strict=True)) or [(), (), (), ()]
    types = (pa.string(), pa.string(), pa.int32(), pa.int64())
    sought = pa.table(
        [pa.array(each, kind) for each, kind in zip(columns, types, strict=True)],
        [*_KEY, "committed_offset"],
    )
    groups = pc.unique(sought["group_id"])
    parts = [_commits(each, groups) for each in history]
    if not sought.num_rows or not parts:
        return {}
    commits = pa.concat_tables(parts)
    hits = commits.join(sought, [*_KEY, "committed_offset"], join_type="left semi")
    requests = hits.select(_REQUEST).group_by(list(_REQUEST)).aggregate([])
    rows = commits.join(requests, list(_REQUEST), join_type="left semi")
    return _grouped(rows.sort_by([("group_id", "ascending"), ("record_offset", "ascending")]))


def _commits(history: pa.Table, groups: pa.Array) -> pa.Table:
    names = pc.cast(history["group_id"], pa.string())
    events = pc.cast(history["event"], pa.string())
    is_wanted = pc.and_(pc.is_in(names, groups), pc.is_in(events, _COMMITS))
    is_wanted = pc.and_(is_wanted, pc.is_valid(history["commit_timestamp"]))
    rows = history.filter(is_wanted)
    return pa.table(
        {
            **{
                name: pc.cast(rows[name], pa.string())
                for name in ("group_id", "topic", "member_id")
            },
            "partition": pc.cast(rows["partition"], pa.int32()),
            "committed_offset": pc.cast(rows["committed_offset"], pa.int64()),
            "commit_timestamp": pc.cast(
                pc.cast(rows["commit_timestamp"], pa.timestamp("ms", tz="UTC"), safe=False),
                pa.int64(),
            ),
            "coordinator_partition": pc.cast(rows["coordinator_partition"], pa.int32()),
            "record_offset": pc.cast(rows["record_offset"], pa.int64()),
            "batch": pc.fill_null(pc.cast(rows["batch_offset"], pa.int64()), _NO_BATCH),
        }
    )


def _grouped(rows: pa.Table) -> dict[str, list[Request]]:
    made: dict[tuple[str, int, int, int], list[dict[str, object]]] = defaultdict(list)
    for row in rows.to_pylist():
        made[tuple(row[name] for name in _REQUEST)].append(row)
    found: dict[str, list[Request]] = defaultdict(list)
    for (group, home, at, _), each in made.items():
        found[group].append(_request(home, at, each))
    for requests in found.values():
        requests.sort(key=lambda each: (each.committed_at, each.record_offset))
    return found


def _request(home: int, at: int, rows: list[dict[str, object]]) -> Request:
    members = {row["member_id"] for row in rows}
    member = members.pop() if len(members) == 1 else None
    return Request(
        at,
        home,
        min(int(str(row["record_offset"])) for row in rows),
        None if member is None else str(member),
        {
            (str(row["topic"]), int(str(row["partition"]))): int(str(row["committed_offset"]))
            for row in rows
        },
    )


def shown_since(history: Iterable[pa.Table], starts: Mapping[int, int]) -> dict[int, int]:
    """Return by partition of `__consumer_offsets` a time since which every commit is shown.

    Args:
        history: `HISTORY` in parts.
        starts: By partition, the first offset behind all that compaction may have taken.

    Returns:
        Epoch milliseconds, of the first record there is behind that offset; a partition without
        one has none.
    """
    found: dict[int, int] = {}
    for part in history:
        for home, start in starts.items():
            is_behind = pc.and_(
                pc.equal(part["coordinator_partition"], home),
                pc.greater_equal(part["record_offset"], start),
            )
            first = pc.min(part.filter(is_behind)["effective_timestamp"]).as_py()
            if first is not None:
                at = round(first.timestamp() * 1000)
                found[home] = min(at, found.get(home, at))
    return found


# Whether an operator's offsets were committed before its checkpoint, in one request.
#
# On drain an operator commits all offsets of its offset manager in one synchronous request; where
# that fails for one partition, it restarts and the region is reset to the checkpoint before.

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
