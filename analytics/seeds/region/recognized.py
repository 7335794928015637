"""What a CHECKPOINTS argument is, and the contributions in it.

One form is a merge as the job control plane of a region keeps it, as JSON:
``{"consolidatedOffsetMap": [[{"topic", "partition", "toString"}, offset], ...],
"contributedOperatorNames": [...], "nExpectedContributions", "nContributions", "complete",
"key": {"sequenceId", "resetAttempt"}}``. It names no group.
"""

from __future__ import annotations

import io
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.errors import InputNotRecognizedError
from analytics.seeds.region.contributions import MERGE, CheckpointKey, Contribution, Partition
from analytics.seeds.region.document_fields import (
    Document,
    is_region_row,
    partition_of,
    region_row,
    text_or_none,
    texts,
    time_or_none,
    whole,
    whole_or_none,
)
from analytics.seeds.region.foreign_formats import (
    FLINK,
    HUDI,
    ICEBERG,
    METADATA,
    flink_export,
    hudi_commit,
    hudi_folder,
    iceberg_file,
    iceberg_metadata,
    is_flink_export,
    is_hudi_commit,
    is_hudi_folder,
    is_iceberg,
    is_spark_folder,
    metadata_file,
    spark_folder,
)
from analytics.side_files import MOST_INT, bad, read_bytes, read_json

_IN_FILES = (FLINK, HUDI, ICEBERG)
"""Forms of which each file has a checkpoint, or some."""
_PARQUET = b"PAR1"
_ROWS = (".jsonl", ".ndjson", ".json", ".parquet")
_FORMS = (
    "contributions of operators (JSON Lines, JSON, Parquet), the merge of a region (JSON), the "
    "checkpoint folder of a Spark query (offsets/, commits/), a Flink checkpoint exported as JSON, "
    "a Hudi table (.hoodie/) or an Iceberg table (metadata/*.metadata.json)"
)

_MAP = "consolidatedOffsetMap"
_NAMES = "contributedOperatorNames"


def read_checkpoints(
    paths: Sequence[str], group: str | None, remarks: list[str] | None = None
) -> list[Contribution]:
    """Return the contributions in files and folders.

    Args:
        paths: As given.
        group: The group of checkpoints that name none.
        remarks: Takes what is to be said of checkpoints without offsets of Kafka.

    Raises:
        InputNotRecognizedError: One is none of the forms, or a field is not what it has to be.
        InputUnreadableError: A file cannot be read.
    """
    to_say = [] if remarks is None else remarks
    return _of_one_writer([each for path in paths for each in _read(Path(path), group, to_say)])


def _of_one_writer(contribution: list[Contribution]) -> list[Contribution]:
    """Return contributions that one job or table wrote into several files under one source.

    Of Flink these are the checkpoints of a group; of what names no group, and of tables, the files
    of a folder. Which is the latest then goes by their sequence ids.
    """
    sources: dict[object, set[str]] = defaultdict(set)
    for each in contribution:
        sources[_writer(each)].add(each.key.source or "")
    found = []
    for each in contribution:
        written = sources[_writer(each)]
        one = os.path.commonpath(written) if len(written) > 1 else each.key.source
        found.append(replace(each, key=replace(each.key, source=one)))
    return found


def _writer(contribution: Contribution) -> object:
    key = contribution.key
    if key.form == FLINK and key.group_id is not None:
        return key.form, key.group_id
    is_file = key.form in _IN_FILES and key.source is not None and Path(key.source).is_file()
    return key.form, key.group_id, str(Path(str(key.source)).parent) if is_file else key.source


def _read(path: Path, group: str | None, remarks: list[str]) -> list[Contribution]:
    if path.is_dir():
        return _folder(path, group, remarks)
    if not path.exists():
        raise InputNotRecognizedError(f"{path}: no such file or folder")
    return _file(path, group, remarks)


def _folder(folder: Path, group: str | None, remarks: list[str]) -> list[Contribution]:
    if is_spark_folder(folder):
        return spark_folder(folder, group)
    if is_hudi_folder(folder):
        return hudi_folder(folder, group, remarks)
    metadata = metadata_file(folder)
    if metadata is not None:
        return iceberg_file(metadata, str(folder), group)
    if (folder / METADATA).is_file():
        return _file(folder / METADATA, group, remarks)
    files = sorted(each for each in folder.iterdir() if each.suffix in _ROWS)
    if not files:
        raise InputNotRecognizedError(f"{folder}: looked for {_FORMS}, and found none")
    return [each for path in files for each in _file(path, group, remarks)]


def _file(path: Path, group: str | None, remarks: list[str]) -> list[Contribution]:
    if path.name == METADATA:
        raise InputNotRecognizedError(
            f"{path}: Flink's own form of a checkpoint, which only Flink reads: export it as JSON "
            "with its state processor (docs/region.md has the form)"
        )
    if is_hudi_commit(path):
        return hudi_commit(path, str(path), group, remarks)
    data = read_bytes(path)
    if data.startswith(b"\x1f\x8b"):
        return iceberg_file(path, str(path), group)
    return [
        found
        for where, document in _documents(data, path)
        for found in _contributions(document, where, str(path), group)
    ]


def _documents(data: bytes, path: Path) -> Iterator[tuple[str, Document]]:
    """Yield the documents of a file, and where each is."""
    rows: list[Any]
    if data.startswith(_PARQUET):
        try:
            rows = pq.read_table(io.BytesIO(data)).to_pylist()
        except (pa.ArrowException, OSError) as error:
            raise InputNotRecognizedError(f"{path}: {error!s:.200}") from error
        unit = "row"
    else:
        rows, unit = _json_rows(data, path)
    for place, row in enumerate(rows, 1):
        where = f"{path}, {unit} {place}" if len(rows) > 1 else str(path)
        if not isinstance(row, dict):
            raise InputNotRecognizedError(f"{where}: looked for an object; this is {row!r:.60}")
        yield where, row


def _json_rows(data: bytes, path: Path) -> tuple[list[Any], str]:
    """Return the documents of one JSON text, or of one a line."""
    lines = [each for each in data.decode("utf-8", "replace").splitlines() if each.strip()]
    if not lines:
        raise InputNotRecognizedError(f"{path}: this is empty; looked for {_FORMS}")
    if len(lines) > 1 and lines[0].lstrip().startswith("{") and _ends_an_object(lines[0]):
        found = [read_json(each, f"{path}, line {place}") for place, each in enumerate(lines, 1)]
        return found, "line"
    whole = read_json(data, str(path))
    return (whole, "item") if isinstance(whole, list) else ([whole], "document")


def _ends_an_object(line: str) -> bool:
    return line.rstrip().endswith("}")


def _contributions(
    document: Document, where: str, source: str, group: str | None
) -> list[Contribution]:
    if _is_merge(document):
        return [_merge_document(document, where, group)]
    if is_flink_export(document):
        return flink_export(document, where, source, group)
    if is_iceberg(document):
        return iceberg_metadata(document, where, source, group)
    if is_region_row(document):
        return [region_row(document, where, group)]
    names = ", ".join(list(document)[:5]) or "nothing"
    raise InputNotRecognizedError(f"{where}: looked for {_FORMS}; this has {names}")


def _is_merge(document: Document) -> bool:
    """Return whether a document is a merge."""
    return _MAP in document


def _merge_document(document: Document, where: str, group: str | None) -> Contribution:
    """Return what all operators together contributed.

    Raises:
        InputNotRecognizedError: A field is not what it has to be.
    """
    key = document.get("key")
    if not isinstance(key, dict):
        raise bad(where, "key", key, 'an object, as in {"sequenceId": 7, "resetAttempt": 0}')
    names = tuple(dict.fromkeys(texts(document, _NAMES, where)))
    return Contribution(
        CheckpointKey(
            text_or_none(document, "group_id", where) or group,
            MERGE,
            None,
            whole(key, "sequenceId", f"{where}, key"),
        ),
        names,
        (),
        whole(document, "nExpectedContributions", where, most=MOST_INT),
        tuple(_offsets(document, where)),
        reset_attempt=_attempt(key, f"{where}, key"),
        at=time_or_none(document, "at", where),
    )


def _attempt(key: Document, where: str) -> int | None:
    """Return the reset attempt; -1 where it is not part of the key."""
    return whole_or_none(key, "resetAttempt", where, least=-1, most=MOST_INT)


def _offsets(document: Document, where: str) -> list[tuple[Partition, int | None]]:
    pairs = document.get(_MAP)
    wanted = "pairs of a partition and an offset"
    if not isinstance(pairs, list):
        raise bad(where, _MAP, pairs, wanted)
    found: dict[Partition, int | None] = {}
    for place, each in enumerate(pairs):
        at = f"{where}, {_MAP}[{place}]"
        if not isinstance(each, list) or len(each) != 2 or not isinstance(each[0], dict):
            raise bad(where, f"{_MAP}[{place}]", each, wanted)
        partition = partition_of(each[0], at)
        found[partition] = whole({"offset": each[1]}, "offset", at)
    return sorted(found.items())
