"""Checkpoints of stream engines: a folder of Spark's, a file exported from Flink."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from analytics.seeds.checkpoint_files.fields import (
    Document,
    by_partition,
    listed,
    partition_of,
    text,
    text_or_none,
    time_or_none,
    whole,
    whole_or_none,
)
from analytics.seeds.region.contributions import CheckpointKey, Contribution, Partition
from analytics.side_files import bad, read_bytes, read_json

# The checkpoint folder of a Structured Streaming query: `offsets/` and `commits/`, a file a
# batch.
#
# A file of `offsets/` has a version, metadata and an offset a source: where the batch ends, which
# is the next offset to read (``OffsetSeqLog``; `v1` by place, `v2` by the source's name). A batch
# whose number is in `commits/` is finished; the last one that is not is run again from the one
# before.

SPARK = "spark"
_OFFSETS, _COMMITS = "offsets", "commits"
_NO_OFFSET = "-"
_FOLDER_MARKERS = {
    -1: "the marker -1 (the latest offset)",
    -2: "the marker -2 (the earliest offset)",
}
"""Neither is known yet."""
_VERSIONS = ("v1", "v2")


def is_spark_folder(folder: Path) -> bool:
    """Return whether a folder is the checkpoint of a query."""
    return (folder / _OFFSETS).is_dir() and (
        (folder / _COMMITS).is_dir() or (folder / "metadata").is_file()
    )


def spark_folder(folder: Path, group: str | None) -> list[Contribution]:
    """Return what the sources of each batch contribute.

    Args:
        folder: The query's checkpoint.
        group: The group its offsets are held against: it names none.

    Raises:
        InputNotRecognizedError: A file of it is not what it has to be.
        InputUnreadableError: A file cannot be read.
    """
    finished = _batches(folder / _COMMITS)
    planned = _batches(folder / _OFFSETS)
    unusable = _unusable(planned)
    found: list[Contribution] = []
    for number, path in sorted(planned.items()):
        key = CheckpointKey(group, SPARK, str(folder), number)
        at, sources = _batch(path)
        names = tuple(sources)
        found += [
            Contribution(
                key,
                (name,),
                names,
                len(names),
                tuple((place, end if end >= 0 else None) for place, end in ends),
                at=at,
                is_finished=number in finished,
                markers=tuple((place, _FOLDER_MARKERS[end]) for place, end in ends if end < 0),
                unusable=unusable,
            )
            for name, each in sources.items()
            for ends in (_kafka_offsets(each, str(path), name),)
        ]
    return found


def _unusable(planned: Mapping[int, Path]) -> str | None:
    """Return why Spark does not start the query, None where its batches are there.

    It begins with the last two (``MicroBatchExecution.populateStartOffsets``), and refuses where
    the one before the last is not there.
    """
    last = max(planned, default=0)
    if last == 0 or last - 1 in planned:
        return None
    return (
        f"{_OFFSETS}/{last - 1} is missing before {_OFFSETS}/{last}: Spark does not start the query"
    )


def _batches(folder: Path) -> dict[int, Path]:
    """Return files of a log by number; `.crc` files and unfinished ones have other names."""
    if not folder.is_dir():
        return {}
    return {int(each.name): each for each in folder.iterdir() if each.name.isdecimal()}


def _batch(path: Path) -> tuple[int | None, dict[str, Any]]:
    """Return when a batch was planned, and the end of each source in it."""
    where = str(path)
    lines = read_bytes(path).decode("utf-8", "replace").splitlines()
    version = lines[0].strip() if lines else ""
    if version not in _VERSIONS:
        raise bad(where, "version", version, "v1 or v2 in the first line")
    if len(lines) < 3:
        raise bad(where, "sources", lines[2:], "an offset a source below the metadata")
    metadata = read_json(lines[1], f"{where}, metadata") if lines[1].strip() else {}
    at = metadata.get("batchTimestampMs") if isinstance(metadata, dict) else None
    made = at if isinstance(at, int) and at > 0 else None
    return made, _by_name(lines[2:], where) if version == "v2" else _by_place(lines[2:], where)


def _by_place(lines: list[str], where: str) -> dict[str, Any]:
    return {
        f"source {place}": _offset(line.strip(), f"{where}, source {place}")
        for place, line in enumerate(lines)
        if line.strip()
    }


def _by_name(lines: list[str], where: str) -> dict[str, Any]:
    """Return sources of `v2`: one object of texts by name, or `name:offset` a line."""
    try:
        whole = json.loads("\n".join(lines))
    except ValueError:
        whole = None
    if isinstance(whole, dict):
        pairs = [(name, "-" if each is None else each) for name, each in whole.items()]
    else:
        split = [line.partition(":") for line in lines if line.strip()]
        pairs = [(name, offset) for name, _, offset in split]
    return {
        name: _offset(each.strip(), f"{where}, {name}") if isinstance(each, str) else each
        for name, each in pairs
    }


def _offset(line: str, where: str) -> Any:  # noqa: ANN401 - as the source wrote it
    return None if line == _NO_OFFSET else read_json(line, where)


def _kafka_offsets(
    offset: Any,  # noqa: ANN401 - as the source wrote it
    where: str,
    name: str,
) -> tuple[tuple[Partition, int], ...]:
    """Return offsets by partition of Kafka's source, or markers; none of another source."""
    if not isinstance(offset, dict) or not offset:
        return ()
    if not all(isinstance(each, dict) for each in offset.values()):
        return ()
    found: dict[Partition, int] = {}
    for topic, each in offset.items():
        ends = by_partition(each, topic, f"{where}, {name}", least=min(_FOLDER_MARKERS))
        found |= {(topic, number): end for number, end in ends.items()}
    return tuple(sorted(found.items()))


# Checkpoints of Flink, exported as JSON: an object a checkpoint.
#
# ``{"checkpoint_id", "checkpoint_timestamp", "completed", "group_id", "operators": [{"uid",
# "subtask", "parallelism", "splits": [{"topic", "partition", "startingOffset"}]}]}``. No library
# but Flink's own reads `_metadata`: its state processor gives the splits of a ``KafkaSource``.

FLINK = "flink"
_MOST_SUBTASKS = 2**15
"""Flink takes no more."""
METADATA = "_metadata"
_MARKERS = {
    -1: "the marker -1 (the latest offset)",
    -2: "the marker -2 (the earliest offset)",
    -3: "the marker -3 (the committed offset)",
}
"""Of ``KafkaPartitionSplit``: such a split was not read yet; no number tells where it begins."""


def is_flink_export(document: Document) -> bool:
    """Return whether a document is an exported checkpoint."""
    return "checkpoint_id" in document and "operators" in document


def flink_export(
    document: Document, where: str, source: str, group: str | None
) -> list[Contribution]:
    """Return what the subtasks of each source contribute.

    Raises:
        InputNotRecognizedError: A field is not what it has to be.
    """
    key = CheckpointKey(
        text_or_none(document, "group_id", where) or group,
        FLINK,
        source,
        whole(document, "checkpoint_id", where),
    )
    finished = document.get("completed")
    if finished is not None and not isinstance(finished, bool):
        raise bad(where, "completed", finished, "true or false")
    subtasks = listed(document, "operators", where)
    names = _names(subtasks, where)
    return [
        Contribution(
            key,
            (_name(each, f"{where}, operators[{place}]"),),
            names,
            len(names),
            tuple((split, offset if offset >= 0 else None) for split, offset in splits),
            at=time_or_none(document, "checkpoint_timestamp", where),
            is_finished=finished,
            markers=tuple((split, _MARKERS[offset]) for split, offset in splits if offset < 0),
        )
        for place, each in enumerate(subtasks)
        for splits in (_splits(each, f"{where}, operators[{place}]"),)
    ]


def _name(subtask: Document, where: str) -> str:
    return f"{text(subtask, 'uid', where)}/{whole_or_none(subtask, 'subtask', where) or 0}"


def _names(subtasks: Sequence[Document], where: str) -> tuple[str, ...]:
    """Return the names of all subtasks there should be."""
    names: dict[str, None] = {}
    for place, each in enumerate(subtasks):
        at = f"{where}, operators[{place}]"
        names[_name(each, at)] = None
        count = whole_or_none(each, "parallelism", at, least=1, most=_MOST_SUBTASKS) or 0
        names |= {f"{text(each, 'uid', at)}/{number}": None for number in range(count)}
    return tuple(names)


def _splits(subtask: Document, where: str) -> list[tuple[Partition, int]]:
    """Return the next offset to read of each split, or the marker that stands for one."""
    found: dict[Partition, int] = {}
    for place, each in enumerate(listed(subtask, "splits", where)):
        at = f"{where}, splits[{place}]"
        found[partition_of(each, at)] = whole(each, "startingOffset", at, least=min(_MARKERS))
    return sorted(found.items())
