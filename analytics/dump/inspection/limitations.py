"""What a dump cannot tell, in words, each with its reason in the same line.

Where the records of a partition's last leader are not in the dump, what lies after the election of
such a leader is unknown, at every instant from then on; what was before stays known
(`analytics.dump.copies.leadership`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from analytics.dump.copies.leadership import NO_EPOCH, AbsentLeader, Leaders, absent_leaders
from analytics.dump.inspection.found_losses import deleted_below
from analytics.dump.inspection.survey import COMPACTION, MISSING_SEGMENT, UNKNOWN, PartitionSurvey
from analytics.epoch_times import iso_time
from schemas import CLUSTER_METADATA, CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analytics.dump.files.model import Copy
    from schemas.manifest import AbsentLeaderEntry, Manifest, PartitionEntry

_WHERE_NOTHING = {
    CONSUMER_OFFSETS: "anything about groups: no copy holds a partition of __consumer_offsets",
    TRANSACTION_STATE: (
        "whose transaction a pending offset commit belongs to, and whether it was decided: "
        "no copy holds a partition of __transaction_state"
    ),
    CLUSTER_METADATA: (
        "names of topics known by id only, configurations, elections: no copy holds the metadata "
        "log (a ZooKeeper cluster has none)"
    ),
}
_ARCHIVED_ROWS = (
    (
        "which commits of archived rows were in transactions, and which of those were aborted: "
        "such rows carry neither producer ids nor markers; only a commit that names its topic's id "
        "was in none (--assume no-transactions answers as if there were no transactions)"
    ),
    (
        "which coordinator wrote an archived row, and whether an election lost any: such rows "
        "carry no leader epochs"
    ),
    (
        "whether the archived rows are all there were: one that was never archived leaves the "
        "same hole as one that compaction removed, or as a marker (--assume complete-archive "
        "answers as if none was left out)"
    ),
)
_WHOSE = {
    CONSUMER_OFFSETS: "groups",
    SHARE_GROUP_STATE: "share partitions",
    TRANSACTION_STATE: "transactional ids",
}


def limitations(
    copies: Sequence[Copy],
    surveys: Iterable[PartitionSurvey],
    absent_partitions: Mapping[str, Sequence[int]],
    *,
    is_crc_checked: bool,
    has_archived_rows: bool = False,
) -> list[str]:
    """Return one sentence for each thing the dump cannot tell.

    Args:
        copies: As listed.
        surveys: Of every copy of every internal partition.
        absent_partitions: Per internal topic.
        is_crc_checked: Every batch was summed over.
        has_archived_rows: Some or all records come from archived rows.
    """
    archived = list(_ARCHIVED_ROWS) if has_archived_rows else []
    if archived and not copies:
        return archived
    by_key: dict[tuple[str, int], list[PartitionSurvey]] = defaultdict(list)
    for each in surveys:
        by_key[each.partition.key].append(each)
    found = {topic for topic, _ in by_key}
    sentences = [*archived]
    sentences += [text for topic, text in _WHERE_NOTHING.items() if topic not in found]
    sentences += [
        f"{_WHOSE[topic]} of {topic} {ranges(missing)}: no copy holds "
        f"{'it' if len(missing) == 1 else 'them'}"
        for topic, missing in absent_partitions.items()
        if missing and topic in _WHOSE
    ]
    sentences += _history(by_key)
    sentences += _other_lines(copies, by_key)
    if not any(copy.data_partitions or copy.snapshot for copy in copies):
        sentences.append("lag: no copy holds a data topic, so where their logs end is not known")
    if not is_crc_checked:
        sentences.append("damage inside batches: only headers were read (--check-crc reads it all)")
    return sentences


def _history(by_key: Mapping[tuple[str, int], Sequence[PartitionSurvey]]) -> list[str]:
    """Return sentences about what lies before ``complete_from``."""
    cleaned: dict[str, dict[int, int | None]] = defaultdict(dict)
    broken: dict[str, list[int]] = defaultdict(list)
    unsure: dict[str, list[int]] = defaultdict(list)
    deleted: dict[str, list[int]] = defaultdict(list)
    for (topic, partition), group in by_key.items():
        if all(each.gap_counts[COMPACTION] or _was_cleaned(each) for each in group):
            starts = (each.complete_from for each in group if each.complete_from is not None)
            cleaned[topic][partition] = min(starts, default=None)
        if all(each.gap_counts[MISSING_SEGMENT] for each in group):
            broken[topic].append(partition)
        if all(each.gap_counts[UNKNOWN] for each in group):
            unsure[topic].append(partition)
        if all(deleted_below(each.partition) for each in group):
            deleted[topic].append(partition)
    sentences = [
        f"history before {_compacted(topic, found)} was compacted: only the last value of each key "
        f"is left there"
        for topic, found in cleaned.items()
    ]
    sentences += [
        f"what happened in {topic} {ranges(numbers)} at offsets that no file has: a segment is "
        f"missing or cut off"
        for topic, numbers in broken.items()
    ]
    sentences += [
        f"what happened in {topic} {ranges(numbers)} at some missing offsets: neither compaction "
        f"nor a missing file explains these gaps"
        for topic, numbers in unsure.items()
    ]
    sentences += [
        f"what {topic} {ranges(numbers)} held below the log start: records were deleted there, by "
        f"retention (cleanup.policy) or DeleteRecords, the last values of keys among them; "
        f"compaction never moves the log start"
        for topic, numbers in deleted.items()
    ]
    return sentences + _metadata_base(by_key)


def _compacted(topic: str, starts: Mapping[int, int | None]) -> str:
    """Return before which offsets history was compacted."""
    if len(starts) == 1 and None not in starts.values():
        ((partition, start),) = starts.items()
        return f"offset {start} of {topic}-{partition}"
    return f"the offset complete_from of each of {topic} {ranges(starts)}"


def _was_cleaned(survey: PartitionSurvey) -> bool:
    return bool(survey.partition.first_dirty_offset) and any(
        log.thinned_end is not None for log in survey.logs
    )


def _metadata_base(by_key: Mapping[tuple[str, int], Sequence[PartitionSurvey]]) -> list[str]:
    """Return a sentence where the metadata log begins after 0 without a snapshot to begin from."""
    group = by_key.get((CLUSTER_METADATA, 0), ())
    starts = [each.logs[0].segment.base_offset for each in group if each.logs]
    if not starts or min(starts) == 0:
        return []
    start = min(starts)
    snapshots = [file.segment.base_offset for each in group for file in each.checkpoints]
    if any(end >= start for end in snapshots):
        return []
    what = f"topics and configurations older than offset {start} of the metadata log"
    return [f"{what}: its beginning is not there, nor a snapshot that covers it"]


def _other_lines(
    copies: Sequence[Copy], by_key: Mapping[tuple[str, int], Sequence[PartitionSurvey]]
) -> list[str]:
    alone = [key for key, group in by_key.items() if len(group) == 1]
    brokers = [copy for copy in copies if copy.partitions]
    if len(brokers) == 1:
        return ["whether an election lost records: only one copy is given, nothing to compare with"]
    if not alone:
        return []
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, partition in alone:
        topics[topic].append(partition)
    named = "; ".join(f"{topic} {ranges(numbers)}" for topic, numbers in topics.items())
    return [f"whether an election lost records of {named}: only one copy of each is given"]


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers as ``0, 3-5, 9``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def with_absent_leaders(manifest: Manifest, leaders: Leaders) -> Manifest:
    """Return a manifest whose partitions name the leaders whose records no copy need have.

    Each partition that is decoded has `absent_leaders`: `leader`, `leader_epoch`, `since` (null
    where the time is not known), `first_offset` (from which on it may have other records) and
    `why`. The first sentence of `unanswerable` names such partitions.

    Args:
        manifest: Of a dump.
        leaders: What its metadata log knows.
    """
    by_key: dict[tuple[str, int], list[PartitionEntry]] = defaultdict(list)
    for row in manifest["partitions"]:
        if row.get("copy") is not None:
            by_key[row["topic"], row["partition"]].append(row)
    found = {
        key: _absent(rows, leaders) for key, rows in by_key.items() if key in leaders.registered
    }
    rows: list[PartitionEntry] = [
        {**row, "absent_leaders": [_row(each) for each in found[row["topic"], row["partition"]]]}
        if row.get("is_leading") and (row["topic"], row["partition"]) in found
        else row
        for row in manifest["partitions"]
    ]
    said = _sentences(found)
    return {**manifest, "partitions": rows, "unanswerable": [*said, *manifest["unanswerable"]]}


def _absent(rows: Sequence[PartitionEntry], leaders: Leaders) -> list[AbsentLeader]:
    (leading, *_) = [row for row in rows if row["is_leading"]]
    latest = {str(row["copy"]): _latest_epoch(row) for row in rows}
    key = leading["topic"], leading["partition"]
    return absent_leaders(
        leaders.registered[key].steps,
        leaders.last_witnessed(key, latest).values(),
        {each["epoch"]: each["first_offset"] for each in leading["leader_epochs"]},
        leading["end_offset"] or 0,
        leading["high_watermark"],
    )


def _latest_epoch(row: PartitionEntry) -> int:
    return max((each["epoch"] for each in row["leader_epochs"]), default=NO_EPOCH)


def _row(each: AbsentLeader) -> AbsentLeaderEntry:
    since = iso_time(each.since)
    when = "" if since is None else f" from {since} on"
    return {
        "leader": each.leader,
        "leader_epoch": each.leader_epoch,
        "since": since,
        "first_offset": each.first_offset,
        "why": f"broker {each.leader} led{when}, and no log in this dump shows what it wrote then",
    }


def _sentences(absent_leaders: Mapping[tuple[str, int], Sequence[AbsentLeader]]) -> list[str]:
    """Return one sentence a topic."""
    topics: dict[str, list[int]] = defaultdict(list)
    first: dict[str, list[int | None]] = defaultdict(list)
    for (topic, partition), absent in absent_leaders.items():
        if absent:
            topics[topic].append(partition)
            first[topic].append(absent[0].since)
    sentences = []
    for topic, partitions in topics.items():
        times = [each for each in first[topic] if each is not None]
        since = iso_time(min(times)) if len(times) == len(partitions) else None
        when = "" if since is None else f" since {since}"
        sentences.append(
            f"what happened in {topic} {ranges(partitions)}{when}: another broker led from then "
            f"on, and no log in this dump shows what it wrote"
        )
    return sentences
