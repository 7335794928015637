"""A run that goes on from an earlier one has the tables of one that decodes all of it."""

from __future__ import annotations

import json
import shutil
import struct
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.decode.decoded_pieces import PIECES
from analytics.errors import AbsentFileError
from jobs.cli.console import Console
from jobs.workspaces import decoding
from jobs.workspaces.decoding import decode_into
from jobs.workspaces.resumed_run import resumed_in_words
from tests.brokers.batches import Batch, batches_of

ROOT = Path(__file__).resolve().parents[3]
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


# --- what is kept, and what is not -------------------------------------------------------------


REAL = pytest.mark.parametrize(
    "source", [CLASSIC, DUMPS / "kafka-4.2.1-share", FAILOVER], ids=lambda path: path.name
)


@REAL
@settings(max_examples=2)
@given(data=st.data())
def test_whatever_befell_logs_meanwhile_every_row_and_fact_is_that_of_a_whole_run(
    source: Path, data: st.DataObject
) -> None:
    check_three_days(source, data)


@pytest.mark.long
@REAL
@settings(max_examples=25)
@given(data=st.data())
def test_so_it_is_of_many_dumps(source: Path, data: st.DataObject) -> None:
    check_three_days(source, data)


def check_three_days(source: Path, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dump, before = folder / "dump", None
        for day in range(3):
            shutil.rmtree(dump, ignore_errors=True)
            shutil.copytree(source, dump)
            befall(data, dump)
            out = folder / f"resumed-{day}"
            decoded(dump, out, before)
            before = out
        decoded(dump, folder / "whole")
        check_equal(out, folder / "whole")


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A dump that may be changed."""
    shutil.copytree(CLASSIC, tmp_path / "dump")
    return tmp_path / "dump"


def log_of(dump: Path, name: str = GROUPS) -> Path:
    return dump / "broker-1" / name


def test_of_a_dump_that_is_as_it_was_every_file_is_linked(dump: Path, tmp_path: Path) -> None:
    decoded(dump, tmp_path / "first")
    manifest = decoded(dump, tmp_path / "second", tmp_path / "first")
    assert all(each["bytes_decoded"] == 0 for each in manifest["resumed"]["partitions"])
    before, after = inodes(tmp_path / "first"), inodes(tmp_path / "second")
    rows = {name for name in before if pq.read_metadata(tmp_path / "first" / name).num_rows}
    assert rows
    assert {name: after[name] for name in rows} == {name: before[name] for name in rows}
    check_equal(tmp_path / "second", tmp_path / "first")


def test_of_a_log_that_grew_the_new_batches_alone_are_decoded(dump: Path, tmp_path: Path) -> None:
    batches = batches_of(log_of(dump))
    grown = log_of(dump) / batches[-5].segment.name
    content = grown.read_bytes()
    end_at(batches[-5], torn=30)
    decoded(dump, tmp_path / "first")
    grown.write_bytes(content)
    manifest = decoded(dump, tmp_path / "second", tmp_path / "first")
    start = batches[-5].start
    assert kept_of(manifest) == (start, len(content) - start, ["new"])
    decoded(dump, tmp_path / "whole")
    check_equal(tmp_path / "second", tmp_path / "whole")
    # And the day after all of it is kept.
    third = decoded(dump, tmp_path / "third", tmp_path / "second")
    assert kept_of(third) == (len(content), 0, [])
    check_equal(tmp_path / "third", tmp_path / "whole")


def test_what_was_cleaned_is_decoded_again_and_rows_of_the_other_logs_are_kept(
    dump: Path, tmp_path: Path
) -> None:
    decoded(dump, tmp_path / "first")
    batches = batches_of(log_of(dump))
    clean(batches, [number % 2 == 0 for number in range(len(batches) - 1)])
    manifest = decoded(dump, tmp_path / "second", tmp_path / "first")
    size = sum(each.stat().st_size for each in log_of(dump).glob("*.log"))
    assert kept_of(manifest) == (0, size, ["changed"])
    others = [each for each in manifest["resumed"]["partitions"] if each["why"] != ["changed"]]
    assert sum(each["bytes_kept"] for each in others) > 0
    assert all(each["bytes_decoded"] == 0 for each in others)
    decoded(dump, tmp_path / "whole")
    check_equal(tmp_path / "second", tmp_path / "whole")
    assert "__consumer_offsets 10: segments are not what they were" in resumed_in_words(
        manifest["resumed"]
    )


def test_a_log_that_begins_later_has_other_rules(dump: Path, tmp_path: Path) -> None:
    decoded(dump, tmp_path / "first")
    start_at(log_of(dump), batches_of(log_of(dump))[3].last_offset)
    manifest = decoded(dump, tmp_path / "second", tmp_path / "first")
    assert kept_of(manifest)[0] == 0
    assert kept_of(manifest)[2] == ["other_rules"]
    decoded(dump, tmp_path / "whole")
    check_equal(tmp_path / "second", tmp_path / "whole")


def test_what_lies_before_damage_is_judged_with_it(dump: Path, tmp_path: Path) -> None:
    batches = batches_of(log_of(dump))
    whole = batches[-1].segment.read_bytes()
    end_at(batches[-3])
    decoded(dump, tmp_path / "first")
    batches[-1].segment.write_bytes(whole)
    damage(batches[-2])
    manifest = decoded(dump, tmp_path / "second", tmp_path / "first")
    assert kept_of(manifest) == (0, len(whole), ["damaged"])
    decoded(dump, tmp_path / "whole")
    check_equal(tmp_path / "second", tmp_path / "whole")
    # What was damaged was no piece: its rows are in no file that is linked.
    decoded(dump, tmp_path / "third", tmp_path / "second")
    check_equal(tmp_path / "third", tmp_path / "whole")


def test_a_run_may_take_the_place_of_the_one_it_goes_on_from(dump: Path, tmp_path: Path) -> None:
    decoded(dump, tmp_path / "out")
    decoded(dump, tmp_path / "whole")
    manifest = decoded(dump, tmp_path / "out", tmp_path / "out")
    assert sum(each["bytes_kept"] for each in manifest["resumed"]["partitions"]) > 0
    check_equal(tmp_path / "out", tmp_path / "whole")


def test_the_earlier_workspace_stays_as_it_is(dump: Path, tmp_path: Path) -> None:
    decoded(dump, tmp_path / "first")
    before = {path: path.read_bytes() for path in (tmp_path / "first").rglob("*") if path.is_file()}
    decoded(dump, tmp_path / "second", tmp_path / "first")
    shutil.rmtree(tmp_path / "second")
    assert {path: path.read_bytes() for path in before} == before


# --- workspaces of which nothing is kept -------------------------------------------------------


def refusal(manifest: dict[str, Any]) -> str:
    return resumed_in_words(manifest["resumed"])


def check_nothing_kept(dump: Path, first: Path, folder: Path, why: str, **options: Any) -> None:
    manifest = decoded(dump, folder / "second", first, **options)
    assert refusal(manifest) == f"nothing is kept from {first}: {why}"
    decoded(dump, folder / "whole", **options)
    check_equal(folder / "second", folder / "whole")


def test_another_clusters_workspace(dump: Path, tmp_path: Path) -> None:
    decoded(DUMPS / "kafka-4.2.1-share", tmp_path / "first")
    why = "no segment of this dump begins as one that it was made of"
    check_nothing_kept(dump, tmp_path / "first", tmp_path, why)


def test_copies_of_other_names(dump: Path, tmp_path: Path) -> None:
    disk = dump / "broker-1"
    first = tmp_path / "first"
    decoded(disk, first)
    renamed = disk.rename(dump / "monday")
    manifest = decoded(renamed, tmp_path / "second", first)
    assert refusal(manifest) == (
        f"nothing is kept from {first}: it was made of copies of other names, broker-1 "
        "(NAME=PATH names a copy)"
    )
    named = decoded(f"broker-1={renamed}", tmp_path / "third", first)
    assert all(each["bytes_decoded"] == 0 for each in named["resumed"]["partitions"])


def test_another_filter(dump: Path, tmp_path: Path) -> None:
    decoded(dump, tmp_path / "first", groups=("a*",))
    why = "it was decoded for other groups or topics"
    check_nothing_kept(dump, tmp_path / "first", tmp_path, why)
    check_nothing_kept(dump, tmp_path / "whole", tmp_path / "b", why, exclude_groups=("a*",))


def test_another_release(dump: Path, tmp_path: Path) -> None:
    decoded(dump, tmp_path / "first")
    path = tmp_path / "first/manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**manifest, "groupscope_version": "0.1"}), "utf-8")
    check_nothing_kept(dump, tmp_path / "first", tmp_path, "groupscope 0.1 wrote it")


def test_a_workspace_that_was_never_finished(dump: Path, tmp_path: Path) -> None:
    first = tmp_path / "first"
    decoded(dump, first)
    (first / "manifest.json").unlink()
    why = f"{first} has no manifest.json: no run ever finished in it"
    check_nothing_kept(dump, first, tmp_path, why)


def test_a_workspace_that_lacks_a_file(dump: Path, tmp_path: Path) -> None:
    first = tmp_path / "first"
    decoded(dump, first)
    gone = first / "decoded/offset_commit/part-00000.parquet"
    gone.unlink()
    check_nothing_kept(dump, first, tmp_path, f"{gone} is gone (make the workspace again)")


@pytest.mark.parametrize("text", [None, "{}", "other"])
def test_a_workspace_that_does_not_say_what_it_was_decoded_of(
    dump: Path, tmp_path: Path, text: str | None
) -> None:
    decoded(dump, tmp_path / "first")
    (tmp_path / "first" / PIECES).unlink()
    if text is not None:
        (tmp_path / "first" / PIECES).write_text(text)
    why = "it does not say what its tables were decoded of"
    check_nothing_kept(dump, tmp_path / "first", tmp_path, why)


def test_a_folder_that_is_no_workspace_is_refused_before_anything_is_made(
    dump: Path, tmp_path: Path
) -> None:
    with pytest.raises(AbsentFileError, match="no workspace of groupscope is there"):
        decoded(dump, tmp_path / "out", tmp_path / "typo")
    with pytest.raises(AbsentFileError, match="no workspace of groupscope is there"):
        decoded(dump, tmp_path / "out", dump)
    assert not (tmp_path / "out").exists()


def test_little_growth_of_a_large_dump_starts_no_spark(
    dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded(dump, tmp_path / "first")
    # All of it is too much to be decoded in this process.
    monkeypatch.setattr(decoding, "SMALL_BYTES", 0)
    monkeypatch.setattr(decoding, "is_small_plan", lambda _: False)
    manifest = decoded(dump, tmp_path / "second", tmp_path / "first")
    assert all(each["bytes_decoded"] == 0 for each in manifest["resumed"]["partitions"])
