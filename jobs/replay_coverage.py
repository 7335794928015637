"""What a replay has to know of the dump besides its records: its edges, and names of topic ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from analytics.dump.survey import COMPACTION
from analytics.replay.coverage import Coverage
from analytics.replay.topic_sources import PARTITION_METADATA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from analytics.replay.as_of import AsOf
    from jobs.topic_ids import NamedTopic


def coverage_of(manifest: Mapping[str, Any], instant: AsOf) -> Coverage:
    """Return where the dump's edges are, as far as they matter at an instant.

    Holes that compaction leaves are none, and what the log start leaves behind the broker does not
    know either.
    """
    starts: dict[tuple[str, int], int] = {}
    shown: dict[tuple[str, int], int] = {}
    cleaned: dict[tuple[str, int], int] = {}
    present: dict[str, set[int]] = {}
    for each in manifest["partitions"]:
        if each.get("is_leading", True):
            key = each["topic"], each["partition"]
            present.setdefault(key[0], set()).add(key[1])
            lost = list(_ends_of_losses(each, instant.offsets.get(key)))
            if not instant.is_end:
                lost.append(_first_kept(manifest, each))
            if max(lost, default=0):
                starts[key] = max(lost)
            if each.get("complete_from"):
                shown[key] = each["complete_from"]
                if key not in starts and _is_only_cleaned(each):
                    cleaned[key] = each["complete_from"]
    absent = {topic: frozenset(numbers) for topic, numbers in manifest["absent_partitions"].items()}
    return Coverage(
        complete_from=starts,
        partitions={
            topic: max(numbers | absent.get(topic, frozenset())) + 1
            for topic, numbers in present.items()
        },
        absent=absent,
        shown_from=shown,
        cleaned_until=cleaned,
        data_topics=_topics_on_disk(manifest),
    )


def _topics_on_disk(manifest: Mapping[str, Any]) -> frozenset[str] | None:
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


def _is_only_cleaned(partition: Mapping[str, Any]) -> bool:
    """Return whether the log begins at offset 0 and lacks nothing but what the cleaner took."""
    names = [PurePath(each["name"]).stem for each in partition["files"] if each["kind"] == "log"]
    begins_at_0 = bool(names) and min(names).strip("0") == ""
    is_told = partition.get("first_dirty_offset") == partition["complete_from"]
    return is_told and begins_at_0 and not partition.get("log_start_offset")


def log_starts(manifest: Mapping[str, Any]) -> dict[tuple[str, int], int]:
    """Return where logs begin whose deleted records a workspace holds nevertheless."""
    if not manifest["options"].get("keep_below_log_start"):
        return {}
    return {
        (each["topic"], each["partition"]): each["log_start_offset"]
        for each in manifest["partitions"]
        if each.get("is_leading", True) and each.get("log_start_offset")
    }


def _first_kept(manifest: Mapping[str, Any], partition: Mapping[str, Any]) -> int:
    """Return the offset below which records were deleted that counted before the end of the dump.

    Those from the first file's start on are still there, unless they were left out.
    """
    first, start = partition.get("first_offset"), partition.get("log_start_offset")
    if first is None or not start:
        return 0
    kept = manifest["options"].get("keep_below_log_start", False)
    return int(min(first, start) if kept else start)


def _ends_of_losses(partition: Mapping[str, Any], end: int | None) -> Iterator[int]:
    """Yield the first offset after each loss; one that reaches past the cut ends there."""
    losses = [
        (gap["first_offset"], gap["end_offset"])
        for gap in partition.get("gaps", ())
        if gap["kind"] != COMPACTION
    ]
    losses += [
        (damage["offset"], damage["offset"] + 1)
        for damage in partition.get("damages", ())
        if damage["offset"] is not None
    ]
    for first, after in losses:
        if end is None or first < end:
            yield after if end is None else min(after, end)


def topics_beside(
    spark: SparkSession, manifest: Mapping[str, Any], side_file: Iterable[NamedTopic]
) -> DataFrame:
    """Return topic ids that no record tells: of partition directories, and of a side file.

    Returns:
        `topic`, `topic_id`, `partitions` (null where not known), `source`.
    """
    named = {
        (each["topic"], each["topic_id"])
        for each in [*manifest["partitions"], *manifest.get("data_topics", ())]
        if each.get("topic_id")
    }
    rows = [(topic, topic_id, None, PARTITION_METADATA) for topic, topic_id in sorted(named)]
    return spark.createDataFrame(
        [*rows, *((*each, "side_file") for each in side_file)],
        "topic string, topic_id string, partitions int, source string",
    )
