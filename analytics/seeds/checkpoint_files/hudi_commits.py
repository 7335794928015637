"""Commits of a Hudi table that a streamer wrote from Kafka: the files of its timeline.

The metadata of a commit has, under `streamer.checkpoint.key.v2` or `deltastreamer.checkpoint.key`,
``topic,0:123,1:456``: the next offset to read of each partition. Tables of version 8 and later
(Hudi 1.x) write the file as Avro, earlier ones as JSON.
"""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro

from analytics.seeds.region.contributions import CheckpointKey, Contribution, Partition
from analytics.side_files import bad, read_bytes, read_json

HUDI = "hudi"
FOLDER = ".hoodie"
_KEYS = ("streamer.checkpoint.key.v2", "deltastreamer.checkpoint.key")
_FILE = re.compile(r"(\d{14,17})(?:_\d{14,17})?\.(commit|deltacommit|replacecommit)")
_CHECKPOINT = re.compile(r"([^,:]+)((?:,\d{1,9}:\d{1,18})+)")
_OF_A_PARTITION = re.compile(r"[,:]")
"""What the checkpoint of a Kafka source has in it, sound or not."""
_AVRO = b"Obj\x01"
_STREAMER = "streamer"


def is_hudi_folder(folder: Path) -> bool:
    """Return whether a folder is a table, or the timeline of one."""
    return (folder / FOLDER).is_dir() or folder.name == FOLDER


def is_hudi_commit(path: Path) -> bool:
    """Return whether a file is a finished commit of a timeline."""
    return _FILE.fullmatch(path.name) is not None


def hudi_folder(folder: Path, group: str | None, remarks: list[str]) -> list[Contribution]:
    """Return the checkpoints of a table's commits; commits of other writers have none.

    Args:
        folder: The table, or its timeline.
        group: The group its offsets are held against: it names none.
        remarks: Takes what is to be said of commits without a checkpoint of Kafka.

    Raises:
        InputNotRecognizedError: A commit is not what it has to be.
        InputUnreadableError: A file cannot be read.
    """
    timeline = folder if folder.name == FOLDER else folder / FOLDER
    found: list[Contribution] = []
    for place in (timeline, timeline / "timeline"):
        if place.is_dir():
            for path in sorted(each for each in place.iterdir() if is_hudi_commit(each)):
                found += hudi_commit(path, str(folder), group, remarks)
    return found


def hudi_commit(
    path: Path, source: str, group: str | None, remarks: list[str]
) -> list[Contribution]:
    """Return the checkpoint of a commit, none where another writer or source made it.

    Raises:
        InputNotRecognizedError: It is not what it has to be.
        InputUnreadableError: It cannot be read.
    """
    where = str(path)
    extra = _document(read_bytes(path), where).get("extraMetadata") or {}
    if not isinstance(extra, dict):
        raise bad(where, "extraMetadata", extra, "an object")
    name = next((each for each in _KEYS if extra.get(each)), None)
    if name is None:
        return []
    if _is_of_another_source(extra[name]):
        remarks.append(
            f"{where}: {name} is {extra[name]!r:.60}, the checkpoint of another source than Kafka: "
            "this commit has none of Kafka"
        )
        return []
    match = _FILE.fullmatch(path.name)
    instant = match[1] if match else path.stem
    key = CheckpointKey(group, HUDI, source, int(instant))
    offsets = checkpoint_offsets(extra[name], f"{where}, extraMetadata", name)
    return [
        Contribution(
            key, (_STREAMER,), (_STREAMER,), 1, offsets, at=_time(instant, where), is_finished=True
        )
    ]


def _is_of_another_source(value: Any) -> bool:  # noqa: ANN401 - as the file has it
    """Return whether a streamer that reads no topic wrote a checkpoint: all share one key.

    Of files it is when the last one was changed, of other tables an instant.
    """
    return isinstance(value, str) and not _OF_A_PARTITION.search(value)


def checkpoint_offsets(
    value: Any,  # noqa: ANN401 - as the file has it
    where: str,
    field: str,
) -> tuple[tuple[Partition, int | None], ...]:
    """Return the offsets of ``topic,0:123,1:456`` (``KafkaOffsetGen.CheckpointUtils``).

    Raises:
        InputNotRecognizedError: It is something else.
    """
    match = _CHECKPOINT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise bad(where, field, value, "topic,0:123,1:456, the checkpoint of a Kafka source")
    pairs = (each.split(":") for each in match[2].removeprefix(",").split(","))
    return tuple(sorted(((match[1], int(number)), int(offset)) for number, offset in pairs))


def _document(data: bytes, where: str) -> dict[str, Any]:
    document: Any
    if data.startswith(_AVRO):
        try:
            document = next(iter(fastavro.reader(io.BytesIO(data))), None)
        except Exception as error:  # what fastavro raises on damaged bytes is of many kinds
            raise bad(where, "the Avro file", str(error), "the metadata of a commit") from error
    else:
        document = read_json(data, where)
    if not isinstance(document, dict):
        raise bad(where, "the document", document, "the metadata of a commit")
    return document


def _time(instant: str, where: str) -> int:
    """Return when a commit began: ``yyyyMMddHHmmssSSS``, taken for UTC."""
    padded = f"{instant:0<17}"
    try:
        time = datetime.strptime(padded[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise bad(where, "the name", instant, "the time of an instant, yyyyMMddHHmmss") from None
    return round(time.timestamp()) * 1000 + int(padded[14:])
