"""A record that does not decode may have changed anything of its partition: it is a loss there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.decode.unplaced_rows import with_undecoded_losses
from analytics.workspace import Part

TOPIC = "__consumer_offsets"
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("reason", pa.string()),
        ("key", pa.binary()),
    ]
)
COMMIT, NEWER, GARBAGE = b"\x00\x01rest", b"\x00\x63rest", b"\x7f\x01rest"


def record(
    offset: int | None, reason: str = "truncated", key: bytes | None = COMMIT, **more: Any
) -> dict[str, Any]:
    row = {"topic": TOPIC, "partition": 3, "offset": offset, "reason": reason, "key": key}
    return row | more


def log(copy: str | None, *, is_leading: bool = True, **more: Any) -> dict[str, Any]:
    row = {"topic": TOPIC, "partition": 3, "copy": copy, "is_leading": is_leading}
    return row | {"end_offset": 90, "losses": [], "lacks": None, "complete_from": 0} | more


def lost(
    tmp_path: Path, rows: list[dict[str, Any]], *logs: dict[str, Any], folder: str = "decoded"
) -> list[list[tuple[int, int | None]]]:
    path = tmp_path / "part.parquet"
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path)
    part = Part(f"{folder}/undecoded", str(path), len(rows))
    told = with_undecoded_losses({"partitions": list(logs)}, [part], str(tmp_path))
    return [
        [(each["first_offset"], each["end_offset"]) for each in row["losses"]]
        for row in told["partitions"]
    ]


def test_records_that_do_not_decode_are_losses_and_say_so(tmp_path: Path) -> None:
    rows = [record(7), record(8), record(12)]
    assert lost(tmp_path, rows, log("broker-1")) == [[(7, 9), (12, 13)]]


def test_they_join_what_is_lost_already(tmp_path: Path) -> None:
    gap = {"first_offset": 8, "end_offset": 10, "why": "a gap"}
    assert lost(tmp_path, [record(7)], log("broker-1", losses=[gap])) == [[(7, 10)]]


def test_a_type_of_a_newer_release_says_nothing_of_those_that_are_known(tmp_path: Path) -> None:
    newer = record(7, "unknown_record_type", NEWER)
    garbage = record(9, "unknown_record_type", GARBAGE)
    assert lost(tmp_path, [newer, garbage], log("broker-1")) == [[(9, 10)]]


def test_damaged_batches_and_other_topics_are_not_counted_twice(tmp_path: Path) -> None:
    rows = [record(None, "bad_crc"), record(5, topic="__cluster_metadata")]
    assert lost(tmp_path, rows, log("broker-1")) == [[]]


def test_what_a_lost_line_cannot_decode_is_a_loss_of_that_line(tmp_path: Path) -> None:
    logs = log("broker-2"), log("broker-1", is_leading=False)
    found = lost(tmp_path, [record(7)], *logs, folder="diverged/broker-1/decoded")
    assert found == [[], [(7, 8)]]


def test_of_very_many_the_first_become_one(tmp_path: Path) -> None:
    rows = [record(2 * number) for number in range(1_500)]
    (found,) = lost(tmp_path, rows, log("broker-1"))
    assert len(found) == 1_000
    assert (found[0][0], found[-1][1]) == (0, 2_999)


def test_archived_rows_say_themselves_what_they_lack(tmp_path: Path) -> None:
    assert lost(tmp_path, [record(7)], log(None)) == [[]]
