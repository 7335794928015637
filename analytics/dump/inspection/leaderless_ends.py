"""Partitions whose last leader's records are not in the dump, as the manifest has them.

What lies after the election of such a leader is unknown, at every instant from then on; what was
before stays known (`analytics.dump.copies.leadership`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from analytics.dump.copies.epochs import NO_EPOCH
from analytics.dump.copies.leadership import AbsentLeader, Leaders, absent_leaders
from analytics.dump.inspection.limitations import ranges
from analytics.epoch_times import iso_time

Row = Mapping[str, Any]


def with_absent_leaders(manifest: Row, leaders: Leaders) -> dict[str, Any]:
    """Return a manifest whose partitions name the leaders whose records no copy need have.

    Each partition that is decoded has `absent_leaders`: `leader`, `leader_epoch`, `since` (null
    where the time is not known), `first_offset` (from which on it may have other records) and
    `why`. The first sentence of `unanswerable` names such partitions.

    Args:
        manifest: Of a dump.
        leaders: What its metadata log knows.
    """
    by_key: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in manifest["partitions"]:
        if row.get("copy") is not None:
            by_key[row["topic"], row["partition"]].append(row)
    found = {
        key: _absent(rows, leaders) for key, rows in by_key.items() if key in leaders.registered
    }
    rows = [
        {**row, "absent_leaders": [_row(each) for each in found[row["topic"], row["partition"]]]}
        if row.get("is_leading") and (row["topic"], row["partition"]) in found
        else row
        for row in manifest["partitions"]
    ]
    said = _sentences(found)
    return {**manifest, "partitions": rows, "unanswerable": [*said, *manifest["unanswerable"]]}


def _absent(rows: Sequence[Row], leaders: Leaders) -> list[AbsentLeader]:
    (leading, *_) = [row for row in rows if row["is_leading"]]
    latest = {row["copy"]: _latest_epoch(row) for row in rows}
    key = leading["topic"], leading["partition"]
    return absent_leaders(
        leaders.registered[key].steps,
        leaders.last_witnessed(key, latest).values(),
        {each["epoch"]: each["first_offset"] for each in leading["leader_epochs"]},
        leading["end_offset"],
        leading["high_watermark"],
    )


def _latest_epoch(row: Row) -> int:
    return max((each["epoch"] for each in row["leader_epochs"]), default=NO_EPOCH)


def _row(each: AbsentLeader) -> dict[str, Any]:
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
