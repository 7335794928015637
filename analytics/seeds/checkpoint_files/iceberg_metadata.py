"""Snapshots of an Iceberg table that its Kafka Connect sink wrote: the table's metadata file.

The summary of a snapshot has ``kafka.connect.offsets.<control topic>.<connect group>``: offsets by
partition of the **control topic**, which the sink's coordinator commits as the group
``<connect group>-coord``. Offsets of source topics are committed by the connect group alone.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

from analytics.seeds.checkpoint_files.fields import (
    Document,
    by_partition,
    listed,
    whole,
    whole_or_none,
)
from analytics.seeds.region.contributions import CheckpointKey, Contribution
from analytics.side_files import bad, read_bytes, read_json

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
