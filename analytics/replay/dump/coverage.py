"""What a replay has to know of the dump besides its records: edges, clocks, names of topic ids.

What a running cluster answered to `snapshot`: topics with ids, settings, where logs end.

It answered at an instant of its own. What it said of topics and settings is in force at the end of
the dump; of earlier instants nothing of it is certain but which id a topic's name has by now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from analytics.contracts import contract_schema
from analytics.dump.inspection.found_losses import OPEN_END
from analytics.replay.dump.choices import NO_TRANSACTIONS, archived, are_elections_clean
from analytics.replay.dump.times import last_time
from analytics.replay.log.ends_at import ends_at, leading, losses_at
from analytics.replay.log.log_times import LogClock, Span
from analytics.replay.log.losses import Coverage
from analytics.replay.metadata_log import CERTAIN
from analytics.replay.topics import PARTITION_METADATA, SIDE_FILE, SNAPSHOT
from schemas import CONSUMER_OFFSETS, INTERNAL_TOPICS
from schemas.names import BROKER, GROUP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.replay.dump.followed_lines import FollowedLine
    from analytics.replay.log.log_times import AsOf
    from analytics.replay.log.topic_homes import TopicHomes
    from analytics.workspace import Workspace
    from schemas.manifest import Manifest, PartitionEntry, SnapshotBroker, SnapshotEntry


def coverage_of(
    manifest: Manifest,
    instant: AsOf,
    source: Workspace | None = None,
    lines: Iterable[FollowedLine] = (),
    assumed: Collection[str] = (),
    homes: Mapping[str, TopicHomes] = MappingProxyType({}),
) -> Coverage:
    """Return where the dump's edges are, as far as they matter at an instant.

    Args:
        manifest: Of a workspace with decoded tables.
        instant: The instant.
        source: That workspace, where the instant is a time: the records say what was later.
        lines: The lines that are followed instead of the surviving ones.
        assumed: What a person vouches for where archived rows cannot tell.
        homes: Of `topic_homes`.
    """
    ends = ends_at(source, manifest, instant.timestamp_ms, INTERNAL_TOPICS, instant.offsets)
    are_clean = are_elections_clean(assumed)
    losses = losses_at(manifest, ends, lines, are_elections_clean=are_clean)
    shown: dict[tuple[str, int], int] = {}
    cleaned: dict[tuple[str, int], int] = {}
    present: dict[str, set[int]] = {}
    for each in leading(manifest):
        key = each["topic"], each["partition"]
        present.setdefault(key[0], set()).add(key[1])
        if start := each.get("complete_from"):
            shown[key] = start
            if key not in losses and _is_only_cleaned(each):
                cleaned[key] = start
    absent = {topic: frozenset(numbers) for topic, numbers in manifest["absent_partitions"].items()}
    for topic, home in homes.items():
        absent[topic] = frozenset(range(home.partitions)) - present.get(topic, set())
    return Coverage(
        complete_from={key: each[-1].end for key, each in losses.items()},
        partitions={
            topic: homes[topic].partitions
            if topic in homes
            else max(numbers | absent.get(topic, frozenset())) + 1
            for topic, numbers in present.items()
        },
        homes=dict(homes),
        absent=absent,
        uncompacted_from=shown,
        cleaned_until=cleaned,
        data_topics=_topics_on_disk(manifest),
        losses=losses,
        frames=instant.frames,
        leader_epochs=_leader_epochs(manifest, instant, ends.later),
        clocks=clocks_in(
            manifest,
            {
                # Where times go back a later time is not the end of what may count.
                **_counted_until(manifest, instant, ends.later),
                **{key: each.possible_end for key, each in instant.frames.items()},
            },
        ),
        believed_until=last_time(manifest),
        is_of_running=not instant.offsets,
        undecided=frozenset()
        if NO_TRANSACTIONS in assumed
        else archived(manifest, CONSUMER_OFFSETS),
    )


def log_starts(manifest: Manifest) -> dict[tuple[str, int], int]:
    """Return where logs begin whose deleted records a workspace holds nevertheless."""
    if not manifest["options"].get("keep_below_log_start"):
        return {}
    return {
        (each["topic"], each["partition"]): start
        for each in manifest["partitions"]
        if each.get("is_leading", True) and (start := each.get("log_start_offset"))
    }


def log_sizes(manifest: Manifest) -> dict[tuple[str, int], int]:
    """Return the bytes of the surviving logs by topic and partition."""
    return {
        (each["topic"], each["partition"]): each.get("size") or 0
        for each in manifest["partitions"]
        if each.get("is_leading", True)
    }


def topics_beside(
    manifest: Manifest, side_file: Iterable[tuple[str, str, int | None]]
) -> pl.DataFrame:
    """Return topic ids that no record tells: of partition directories, and of a side file.

    Returns:
        `topic`, `topic_id`, `partitions` (null where not known), `source`.
    """
    named = {
        (each["topic"], topic_id)
        for each in [*manifest["partitions"], *manifest.get("data_topics", ())]
        if (topic_id := each.get("topic_id"))
    }
    rows = [(topic, topic_id, None, PARTITION_METADATA) for topic, topic_id in sorted(named)]
    schema = {"topic": str, "topic_id": str, "partitions": pl.Int32, "source": str}
    return pl.DataFrame([*rows, *((*each, SIDE_FILE) for each in side_file)], schema, orient="row")


def clocks_in(
    manifest: Manifest, ends: Mapping[tuple[str, int], int | None]
) -> dict[Any, LogClock]:
    """Return the clocks of the partitions in which one was set or wrong, by topic and partition.

    Steps back are those that headers of batches show (`clock_steps` of a partition); whose clock
    was wrong, and in which leader epochs, the metadata log does (`leader_clocks`).

    Args:
        manifest: Of a workspace with decoded tables.
        ends: Up to which offset records count, by topic and partition; None or not named: to the
            end.
    """
    led: dict[tuple[str, int], set[int]] = defaultdict(set)
    for clock in manifest.get("leader_clocks", ()):
        for each in clock["led"]:
            led[each["topic"], each["partition"]].add(each["leader_epoch"])
    found = {}
    for row in leading(manifest):
        key = row["topic"], row["partition"]
        steps = tuple((first, last) for first, last, _ in row.get("clock_steps") or ())
        own = LogClock(steps, tuple(_stretches(row, led.get(key, set()))))
        kept = own.until(ends.get(key))
        if kept is not None:
            found[key] = kept
    return found


def _leader_epochs(
    manifest: Manifest, instant: AsOf, later: Mapping[tuple[str, int], int]
) -> dict[tuple[str, int], dict[int, int]]:
    """Return the first offsets of the leader epochs that had begun at the instant."""
    found = {}
    counted = _counted_until(manifest, instant, later)
    for each in leading(manifest):
        key = each["topic"], each["partition"]
        end = counted[key]
        noted = {one["epoch"]: one["first_offset"] for one in each.get("leader_epochs") or ()}
        if end is not None:
            found[key] = {epoch: first for epoch, first in noted.items() if first < end}
    return found


def _counted_until(
    manifest: Manifest, instant: AsOf, later: Mapping[tuple[str, int], int]
) -> dict[tuple[str, int], int | None]:
    """Return up to which offset the records of each partition count; None where not known."""
    found = {}
    for each in leading(manifest):
        key = each["topic"], each["partition"]
        ends = (each.get("end_offset"), instant.offsets.get(key), later.get(key))
        found[key] = min((end for end in ends if end is not None), default=None)
    return found


def _topics_on_disk(manifest: Manifest) -> frozenset[str] | None:
    """Return the topics that have directories; None where a topic may be there without one.

    That is so where there are none at all, and on the disk of one broker of several, which shows in
    partitions that it lacks.
    """
    numbers: dict[str, set[int]] = {}
    for each in manifest.get("data_topics", ()):
        numbers.setdefault(each["topic"], set()).update(each["partitions"])
    lacks = any(manifest["absent_partitions"].values()) or any(
        len(held) <= max(held) for held in numbers.values()
    )
    return None if lacks or not numbers else frozenset(numbers)


def _is_only_cleaned(partition: PartitionEntry) -> bool:
    """Return whether the log begins at offset 0 and lacks nothing but what the cleaner took."""
    names = [PurePath(each["name"]).stem for each in partition["files"] if each["kind"] == "log"]
    begins_at_0 = bool(names) and min(names).strip("0") == ""
    is_told = partition.get("first_dirty_offset") == partition["complete_from"]
    return is_told and begins_at_0 and not partition.get("log_start_offset")


def _stretches(row: PartitionEntry, epochs: set[int]) -> Iterator[Span]:
    """Yield which offsets were written in leader epochs, neighbours as one."""
    noted = sorted((each["first_offset"], each["epoch"]) for each in row.get("leader_epochs") or ())
    held: Span | None = None
    for (first, epoch), (end, _) in pairwise([*noted, (OPEN_END, 0)]):
        if epoch not in epochs:
            continue
        if held is not None and held[1] == first:
            held = held[0], end
            continue
        if held is not None:
            yield held
        held = first, end
    if held is not None:
        yield held


ALL_BROKERS: Final = ""
"""The resource of settings in which all brokers agree."""
_TOPIC: Final = "topic"
_TOPICS: Final = {"topic": str, "topic_id": str, "partitions": pl.Int32, "source": str}
_Row = tuple[str, str, str, str]
"""Type of a resource, its name, a setting's name and value."""


def last_snapshot(manifest: Manifest) -> SnapshotEntry | None:
    """Return what the cluster answered last; None where no copy is a snapshot."""
    return max(
        manifest.get("snapshots", ()),
        key=lambda each: datetime.fromisoformat(each["taken_at"]),
        default=None,
    )


def snapshot_topics(manifest: Manifest, *, is_end: bool) -> pl.DataFrame:
    """Return topics as the cluster described them.

    Args:
        manifest: Of a workspace.
        is_end: The end of the dump is asked about: before it a topic may have had fewer partitions.

    Returns:
        `topic`, `topic_id` (null where releases have none), `partitions` (null before the end) and
        `source`.
    """
    snapshot = last_snapshot(manifest)
    rows = [
        (
            each["topic"],
            each["topic_id"],
            len(each["partitions"]) if is_end else None,
            SNAPSHOT,
        )
        for each in (snapshot["topics"] if snapshot is not None else ())
    ]
    return pl.DataFrame(rows, _TOPICS, orient="row")


def snapshot_configs(manifest: Manifest, *, is_end: bool) -> pl.DataFrame:
    """Return rows of the table `configs` that the cluster answered.

    What all brokers answer alike is of `ALL_BROKERS`, if all of them did; all else of the broker.

    Args:
        manifest: Of a workspace.
        is_end: The end of the dump is asked about: what was set before it nobody answered.
    """
    snapshot = last_snapshot(manifest)
    rows: list[dict[str, Any]] = []
    if snapshot is not None and is_end:
        at = datetime.fromisoformat(snapshot["taken_at"])
        names = ("resource_type", "resource", "name", "value")
        rows = [
            {**dict(zip(names, row, strict=True)), "since": at, "source": SNAPSHOT}
            for row in _settings(snapshot)
        ]
    schema = contract_schema("configs")
    beside = {name: kind for name, kind in schema.items() if name not in _MARKS}
    return pl.DataFrame(rows, beside, orient="row").with_columns(CERTAIN).select(list(schema))


_MARKS: Final = ("complete", "missing")


def _settings(snapshot: SnapshotEntry) -> Iterator[_Row]:
    yield from _of_brokers(snapshot["brokers"])
    for topic in snapshot["topics"]:
        for name, value in (topic["settings"] or {}).items():
            yield _TOPIC, topic["topic"], name, value
    for group in snapshot["groups"]:
        for name, value in group["settings"].items():
            yield GROUP, group["group_id"], name, value


def _of_brokers(brokers: Sequence[SnapshotBroker]) -> Iterator[_Row]:
    answered = [each["settings"] for each in brokers]
    whole = [each for each in answered if each is not None]
    agreed = set(whole[0].items()) if whole and len(whole) == len(answered) else set()
    for each in whole:
        agreed &= set(each.items())
    yield from ((BROKER, ALL_BROKERS, name, value) for name, value in sorted(agreed))
    for broker in brokers:
        for name, value in (broker["settings"] or {}).items():
            if (name, value) not in agreed:
                yield BROKER, str(broker["node_id"]), name, value
