"""Checkpoints of stream engines: a folder of Spark's, a file exported from Flink.

Offsets that tables keep beside their data: Hudi's commits, Iceberg's metadata.
"""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro

from analytics.seeds.region.contributions import CheckpointKey, Contribution, Partition
from analytics.seeds.region.document_fields import (
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
_MARKERS = {
    -1: "the marker -1 (the latest offset)",
    -2: "the marker -2 (the earliest offset)",
    -3: "the marker -3 (the committed offset)",
}
"""Of ``KafkaPartitionSplit``: such a split was not read yet; no number tells where it begins."""
_FOLDER_MARKERS = {number: _MARKERS[number] for number in (-1, -2)}
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


# Commits of a Hudi table that a streamer wrote from Kafka: the files of its timeline.
#
# The metadata of a commit has, under `streamer.checkpoint.key.v2` or
# `deltastreamer.checkpoint.key`, ``topic,0:123,1:456``: the next offset to read of each
# partition. Tables of version 8 and later (Hudi 1.x) write the file as Avro, earlier ones as
# JSON.

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


# Snapshots of an Iceberg table that its Kafka Connect sink wrote: the table's metadata file.
#
# The summary of a snapshot has ``kafka.connect.offsets.<control topic>.<connect group>``: offsets
# by partition of the **control topic**, which the sink's coordinator commits as the group
# ``<connect group>-coord``. Offsets of source topics are committed by the connect group alone.

ICEBERG = "iceberg"
_PREFIX = "kafka.connect.offsets."
_COORDINATOR = "-coord"
_GROUPS = ("connect-", "cg-control-", "cg-")
"""What the sink's connect groups begin with by default, in its releases."""
_SUFFIXES = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
_GZIP = b"\x1f\x8b"


def is_iceberg(document: Document) -> bool:
    """Return whether a document is the metadata of a table."""
    return "snapshots" in document and "format-version" in document


def metadata_file(folder: Path) -> Path | None:
    """Return the newest metadata file of a table's folder, None where it has none."""
    for place in (folder / "metadata", folder):
        files = [each for each in place.glob("*") if each.name.endswith(_SUFFIXES)]
        if files:
            return max(files, key=lambda each: (_version(each.name), each.name))
    return None


def iceberg_file(path: Path, source: str, group: str | None) -> list[Contribution]:
    """Return what the snapshots of a metadata file say.

    Raises:
        InputNotRecognizedError: It is not what it has to be.
        InputUnreadableError: It cannot be read.
    """
    data = read_bytes(path)
    if data.startswith(_GZIP):
        data = gzip.decompress(data)
    document = read_json(data, str(path))
    if not isinstance(document, dict) or not is_iceberg(document):
        raise bad(str(path), "the document", type(document).__name__, "the metadata of a table")
    return iceberg_metadata(document, str(path), source, group)


def iceberg_metadata(
    document: Document, where: str, source: str, group: str | None
) -> list[Contribution]:
    """Return what each snapshot says of the control topic.

    Raises:
        InputNotRecognizedError: A field is not what it has to be.
    """
    found: list[Contribution] = []
    snapshots = listed(document, "snapshots", where)
    ordered = sorted(snapshots, key=lambda each: _number(each, where))
    for place, each in enumerate(ordered):
        at = f"{where}, snapshot {each.get('snapshot-id', place)}"
        summary = each.get("summary") or {}
        if not isinstance(summary, dict):
            raise bad(at, "summary", summary, "an object")
        for name, value in summary.items():
            if name.startswith(_PREFIX):
                found.append(_snapshot(each, (name, value), at, source, group))
    return found


def _snapshot(
    snapshot: Document, named: tuple[str, Any], where: str, source: str, group: str | None
) -> Contribution:
    name, value = named
    if not isinstance(value, str):
        raise bad(f"{where}, summary", name, value, "a text, offsets by partition")
    topic, connect = _split(name.removeprefix(_PREFIX), group, where, name)
    offsets = by_partition(read_json(value, f"{where}, {name}"), name, where)
    key = CheckpointKey(
        group or f"{connect}{_COORDINATOR}", ICEBERG, source, _number(snapshot, where)
    )
    return Contribution(
        key,
        ("coordinator",),
        ("coordinator",),
        1,
        tuple(sorted(((topic, number), offset) for number, offset in offsets.items())),
        at=whole(snapshot, "timestamp-ms", where),
        is_finished=True,
    )


def _number(snapshot: Document, where: str) -> int:
    """Return by what snapshots are in order: version 1 of the format has no sequence numbers."""
    number = whole_or_none(snapshot, "sequence-number", where)
    return number or whole(snapshot, "timestamp-ms", where)


def _split(text: str, group: str | None, where: str, name: str) -> tuple[str, str]:
    """Return control topic and connect group: both may have dots in them."""
    known = None if group is None else group.removesuffix(_COORDINATOR)
    if known and text.endswith(f".{known}"):
        return text.removesuffix(f".{known}"), known
    cuts = [match.start() for match in re.finditer(r"\.", text)]
    if len(cuts) > 1:
        cuts = [each for each in cuts if text[each + 1 :].startswith(_GROUPS)]
    if len(cuts) != 1:
        wanted = "one control topic and one connect group: name the group with --checkpoint-group"
        raise bad(where, "summary", name, wanted)
    return text[: cuts[0]], text[cuts[0] + 1 :]


def _version(name: str) -> int:
    match = re.match(r"v?(\d+)", name)
    return int(match[1]) if match else -1
