"""Dumps that something befell from one day to the next, and what decode runs have of them."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from jobs.cli.console import Console
from jobs.workspaces.decoding import decode_into
from tests.brokers.batches import Batch, batches_of

ROOT = Path(__file__).resolve().parents[2]
DUMPS = ROOT / "tests/data/dumps"
CLASSIC = DUMPS / "kafka-3.9.2-classic"
FAILOVER = ROOT / "examples/kafka-4.3.1-failover"
GROUPS = "__consumer_offsets-10"
OF_A_RUN = ("resumed", "decoded_pieces", "files")
"""Keys of the manifest that say how a run came to its tables."""
_EPOCH_AT = 12
_LOG_STARTS = "log-start-offset-checkpoint"

# --- dumps as they were, and as they are later -----------------------------------------------


def logs_of(dump: Path) -> list[Path]:
    """The folders of internal partitions that have batches."""
    found = sorted(each for each in dump.glob("*/__*-*") if each.is_dir())
    return [each for each in found if batches_of(each)]


def end_at(batch: Batch, torn: int = 0) -> None:
    """Let a log end before a batch, or so many bytes into it."""
    with batch.segment.open("r+b") as file:
        file.truncate(min(batch.start + torn, batch.end - 1))
    for segment in batch.segment.parent.glob("*.log"):
        if segment.stem > batch.segment.stem:
            segment.unlink()


def clean(batches: list[Batch], kept: list[bool]) -> None:
    """Let a cleaner remove batches; the last one stays, as a cleaner leaves it."""
    for segment in {each.segment for each in batches}:
        own = [
            batch.read()
            for batch, is_kept in zip(batches, [*kept, True], strict=True)
            if is_kept and batch.segment == segment
        ]
        segment.write_bytes(b"".join(own))


def led_by_another(batches: list[Batch]) -> None:
    """Let another leader have written batches: the checksum does not cover its epoch."""
    for batch in batches:
        with batch.segment.open("r+b") as file:
            file.seek(batch.start + _EPOCH_AT)
            (epoch,) = struct.unpack(">i", file.read(4))
            file.seek(batch.start + _EPOCH_AT)
            file.write(struct.pack(">i", epoch + 1))


def damage(batch: Batch) -> None:
    with batch.segment.open("r+b") as file:
        file.seek(batch.end - 1)
        (last,) = file.read(1)
        file.seek(batch.end - 1)
        file.write(bytes([last ^ 0x55]))


def start_at(partition: Path, offset: int) -> None:
    """Let a log begin at an offset, by the checkpoint."""
    checkpoint = partition.parent / _LOG_STARTS
    lines = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
    topic, _, number = partition.name.rpartition("-")
    kept = [line for line in lines if line.split()[:2] != [topic, number]]
    rows = [*kept, f"{topic} {number} {offset}"]
    checkpoint.write_text("\n".join(["0", str(len(rows)), *rows]) + "\n")


EVENTS = ("none", "end", "torn", "clean", "led", "damage", "start", "gone")


def befall(data: st.DataObject, dump: Path) -> None:
    """Let something befall some logs of a dump."""
    for partition in logs_of(dump):
        batches = batches_of(partition)
        event = data.draw(st.sampled_from(EVENTS), label=partition.name)
        at = data.draw(st.integers(0, len(batches) - 1)) if event not in ("none", "gone") else 0
        match event:
            case "end":
                end_at(batches[at])
            case "torn":
                end_at(batches[at], data.draw(st.integers(1, 90)))
            case "clean":
                size = len(batches) - 1
                clean(batches, data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
            case "led":
                led_by_another(batches[at:])
            case "damage":
                damage(batches[at])
            case "start":
                start_at(partition, batches[at].last_offset)
            case "gone":
                shutil.rmtree(partition)


# --- what runs have ----------------------------------------------------------------------------


def decoded(
    dump: Path | str, out: Path, resume: Path | None = None, **options: Any
) -> dict[str, Any]:
    """Decode a small dump in this process, and return the manifest."""
    decode_into(
        str(out),
        Console(quiet=True),
        inputs=[str(dump)],
        resume=None if resume is None else str(resume),
        may_be_here=True,
        **options,
    )
    manifest: dict[str, Any] = json.loads((out / "manifest.json").read_text("utf-8"))
    return manifest


def tables_of(out: Path) -> dict[str, tuple[pa.Schema, list[str]]]:
    """The columns of each table, and its rows in an order of their own."""
    found = {}
    for folder in {path.parent for path in out.rglob("*.parquet")}:
        rows = pq.read_table(sorted(folder.glob("*.parquet")))
        found[str(folder.relative_to(out))] = (rows.schema, sorted(map(repr, rows.to_pylist())))
    return found


def check_equal(resumed: Path, whole: Path) -> None:
    of_resumed, of_whole = tables_of(resumed), tables_of(whole)
    assert of_resumed.keys() == of_whole.keys()
    for name, rows in of_whole.items():
        assert of_resumed[name] == rows, name
    told, expected = (
        {
            key: value
            for key, value in json.loads((each / "manifest.json").read_text("utf-8")).items()
            if key not in OF_A_RUN
        }
        for each in (resumed, whole)
    )
    assert told == expected


def kept_of(manifest: dict[str, Any], name: str = GROUPS) -> tuple[int, int, list[str]]:
    """Bytes that were kept and decoded of a partition, and why."""
    (entry,) = (
        each
        for each in manifest["resumed"]["partitions"]
        if f"{each['topic']}-{each['partition']}" == name
    )
    return entry["bytes_kept"], entry["bytes_decoded"], entry["why"]


def inodes(out: Path) -> dict[str, int]:
    files = (out / "decoded").rglob("*.parquet")
    return {str(path.relative_to(out)): path.stat().st_ino for path in files}


def log_of(dump: Path, name: str = GROUPS) -> Path:
    """The folder of a partition."""
    return dump / "broker-1" / name
