"""The checkpoint folder of a Structured Streaming query: `offsets/` and `commits/`, a file a batch.

A file of `offsets/` has a version, metadata and an offset a source: where the batch ends, which is
the next offset to read (``OffsetSeqLog``; `v1` by place, `v2` by the source's name). A batch whose
number is in `commits/` is finished; the last one that is not is run again from the one before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analytics.seeds.checkpoint_files.fields import by_partition
from analytics.seeds.region.contributions import CheckpointKey, Contribution, Partition
from analytics.side_files import bad, read_bytes, read_json

SPARK = "spark"
_OFFSETS, _COMMITS = "offsets", "commits"
_NO_OFFSET = "-"
_MARKERS = {
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
                markers=tuple((place, _MARKERS[end]) for place, end in ends if end < 0),
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
        ends = by_partition(each, topic, f"{where}, {name}", least=min(_MARKERS))
        found |= {(topic, number): end for number, end in ends.items()}
    return tuple(sorted(found.items()))
