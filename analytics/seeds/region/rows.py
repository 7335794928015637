"""What was found, as the tables of the contract."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from analytics.contracts import table_of
from analytics.seeds.region.contributions import MERGE, CheckpointKey
from analytics.seeds.region.drains import (
    CANNOT_TELL,
    CLEAN,
    NONE,
    PARTIAL,
    Drain,
    left_out_reasons,
)
from analytics.seeds.region.merge import Checkpoint, Seek
from analytics.seeds.region.table import REPEATED, Finding, Judgement, Region, drains_by_checkpoint

Row = dict[str, Any]

TABLES: Final = (
    *("region_checkpoints", "region_checkpoint_offsets", "region_drains"),
    *("region_seek_plan", "region_operators", "region_findings"),
)


def tables_of(judgement: Judgement) -> dict[str, pa.Table]:
    """Return the tables by name."""
    words: dict[CheckpointKey, list[str]] = {}
    for finding in judgement.findings:
        if not finding.is_of_all and finding.word != REPEATED:
            words.setdefault(finding.key, []).append(finding.word)
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    for region in judgement.regions:
        drains = drains_by_checkpoint(region)
        for each in region.checkpoints:
            of_each = drains[each.key.sequence_id] if region.drains is not None else None
            found = list(dict.fromkeys(words.get(each.key, ())))
            rows["region_checkpoints"].append(_checkpoint(each, of_each, found))
            rows["region_checkpoint_offsets"].extend(_offsets(each))
        rows["region_drains"].extend(_drain(each) for each in region.drains or ())
        rows["region_seek_plan"].extend(_seek(each, region) for each in region.plan)
        rows["region_operators"].extend(_operator(each, region) for each in region.operators)
    rows["region_findings"] = [_finding(each) for each in judgement.findings]
    return {name: table_of(name, each) for name, each in rows.items()}


def _completeness(missing: str | None) -> Row:
    return {"complete": missing is None, "missing": missing}


def _checkpoint(each: Checkpoint, drains: Sequence[Drain] | None, findings: list[str]) -> Row:
    indexes = each.region_indexes
    attempts = [one.reset_attempt for one in each.contributions if one.reset_attempt is not None]
    times = [one.committed_at for drain in drains or () for one in drain.requests]
    return {
        **each.key.columns(),
        "region_index": indexes[0] if len(indexes) == 1 else None,
        "reset_attempt": max(attempts, default=None),
        "expected_operators": each.expected,
        "contributed_operators": len(each.contributors),
        "contributors": each.contributors,
        "missing_operators": each.absent,
        "contributions": len(each.contributions),
        "repeats": each.repeats,
        "late": None if each.first_at is None else len(each.late),
        "partitions": len(each.offsets),
        "conflicts": len(each.conflicts),
        "first_at": each.first_at,
        "last_at": each.last_at,
        "merged": each.is_merged,
        "drain": _drained(drains),
        "drain_span_ms": max(times) - min(times) if times else None,
        "findings": findings,
        **_completeness(each.missing),
    }


def _drained(drains: Sequence[Drain] | None) -> str | None:
    """Return how the drains of a checkpoint went together."""
    if not drains:
        return None
    verdicts = {each.verdict for each in drains}
    if len(verdicts) == 1:
        return verdicts.pop()
    if verdicts & {PARTIAL, NONE}:
        return PARTIAL
    return CANNOT_TELL


def _offsets(checkpoint: Checkpoint) -> list[Row]:
    return [
        {
            **checkpoint.key.columns(),
            "topic": topic,
            "partition": number,
            "checkpoint_offset": each.offset,
            "operators": list(each.operators),
            "named": each.offsets_in_words,
            "decided_by": each.decided_by,
            **_completeness(each.missing),
        }
        for (topic, number), each in checkpoint.offsets.items()
    ]


def _drain(each: Drain) -> Row:
    first = each.requests[0] if each.requests else None
    last = each.requests[-1] if each.requests else None
    members = {request.member_id for request in each.requests}
    begun = each.contribution.drain_started_at
    return {
        **each.checkpoint.key.columns(),
        "operator": each.contribution.operator,
        "verdict": each.verdict,
        "partitions": len(each.committed) + len(each.left_out),
        "committed_partitions": len(each.committed),
        "left_out": left_out_reasons(each),
        "requests": len(each.requests) or None,
        "member_id": members.pop() if len(members) == 1 else None,
        "committed_at": None if last is None else last.committed_at,
        "coordinator_partition": None if first is None else first.coordinator_partition,
        "record_offset": None if first is None else first.record_offset,
        "drain_started_at": begun,
        "drain_ms": each.drain_ms,
        **_completeness(each.missing),
    }


def _seek(each: Seek, region: Region) -> Row:
    topic, number = each.partition
    latest = region.latest
    is_covered = latest is not None and each.partition in latest.offsets
    return {
        **region.checkpoints[0].key.columns(),
        "topic": topic,
        "partition": number,
        "member_id": None if each.owner is None else each.owner.member_id,
        "client_id": None if each.owner is None else each.owner.client_id,
        "operator": each.operator,
        "checkpoint_sequence_id": latest.key.sequence_id if latest and is_covered else None,
        "seek_offset": each.offset,
        "basis": each.basis,
        "contributed_by": each.contributed_by,
        "moved": each.moved,
        "committed_offset": None if each.committed is None else each.committed.offset,
        "commit_is": each.commit_is,
        "ahead_by": each.ahead_by,
        "log_start_offset": each.log.start,
        "log_end_offset": each.log.end,
        "log_is": each.log_is,
        **_completeness(each.missing),
    }


def _operator(name: str, region: Region) -> Row:
    made = [
        one
        for each in region.checkpoints
        for one in each.contributions
        if name in one.contributors and one.key.form != MERGE
    ]
    counted = sum(
        name in one.contributors for each in region.checkpoints for one in each.contributions
    )
    partitions = [partition for partition, _ in made[-1].offsets] if made else None
    indexes = [one.region_index for one in made if one.region_index is not None]
    drains = [each for each in region.drains or () if each.contribution.operator == name]
    spent = [each.drain_ms for each in drains if each.drain_ms is not None]
    present = region.present
    who = None if present is None else present.matched.members.get(name)
    return {
        **region.checkpoints[0].key.columns(),
        "operator": name,
        "region_index": indexes[-1] if indexes else None,
        "contributions": counted,
        "partitions_assigned": None if partitions is None else len(partitions),
        "consumed_topics": None if partitions is None else len({topic for topic, _ in partitions}),
        "drains": None if region.drains is None else sum(one.verdict == CLEAN for one in drains),
        "last_drain_ms": spent[-1] if spent else None,
        "max_drain_ms": max(spent, default=None),
        "member_id": None if who is None else who.member_id,
        "client_id": None if who is None else who.client_id,
        **_completeness(_unknown(region)),
    }


def _unknown(region: Region) -> str | None:
    """Return why it cannot be told which members the operators are."""
    if region.present is None:
        return "no dump that shows the group is given"
    return region.present.membership_gap or region.present.matched.why_unknown


def _finding(each: Finding) -> Row:
    topic, number = each.partition or (None, None)
    columns = each.key.columns()
    if each.is_of_all:
        columns["checkpoint_sequence_id"] = None
    return {
        **columns,
        "finding": each.word,
        "operator": each.operator,
        "topic": topic,
        "partition": number,
        "detail": each.detail,
    }
