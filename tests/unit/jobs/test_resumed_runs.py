"""A run that goes on from an earlier one has the tables of one that decodes all of it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from analytics.workspace import Workspace
from jobs.workspaces import decoding
from jobs.workspaces.decoding import resumed_in_words
from jobs.workspaces.kept_replay import copy_workspace
from tests.brokers.batches import batches_of
from tests.support.examples import examples
from tests.support.resumed_runs import (
    CLASSIC,
    DUMPS,
    FAILOVER,
    befall,
    check_equal,
    clean,
    damage,
    decoded,
    end_at,
    inodes,
    kept_of,
    log_of,
    start_at,
)

# --- what is kept, and what is not -------------------------------------------------------------


REAL = pytest.mark.parametrize(
    "source", [CLASSIC, DUMPS / "kafka-4.2.1-share", FAILOVER], ids=lambda path: path.name
)


@REAL
@examples(1, 25, data=st.data())
def test_whatever_befell_logs_meanwhile_every_row_and_fact_is_that_of_a_whole_run(
    source: Path, data: st.DataObject
) -> None:
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
    assert (
        "__consumer_offsets 10: segments were cleaned, truncated or written by another leader"
    ) in resumed_in_words(manifest["resumed"])


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


def test_a_copy_of_a_workspace_is_gone_on_from_as_the_workspace_is(
    dump: Path, tmp_path: Path
) -> None:
    decoded(dump, tmp_path / "first")
    copy_workspace(Workspace(str(tmp_path / "first")), str(tmp_path / "copy"))
    shutil.rmtree(tmp_path / "first")
    manifest = decoded(dump, tmp_path / "second", tmp_path / "copy")
    assert all(each["bytes_decoded"] == 0 for each in manifest["resumed"]["partitions"])
    check_equal(tmp_path / "second", tmp_path / "copy")


def test_a_workspace_is_known_by_its_whole_path(
    dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks run elsewhere, and a manifest is read from elsewhere."""
    decoded(dump, tmp_path / "first")
    monkeypatch.chdir(tmp_path)
    manifest = decoded(dump, tmp_path / "second", Path("first"))
    assert manifest["resumed"]["resumed_from"] == str(tmp_path / "first")
    assert all(each["bytes_decoded"] == 0 for each in manifest["resumed"]["partitions"])


def test_little_growth_of_a_large_dump_starts_no_spark(
    dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded(dump, tmp_path / "first")
    # All of it is too much to be decoded in this process.
    monkeypatch.setattr(decoding, "SMALL_BYTES", 0)
    monkeypatch.setattr(decoding, "is_small_plan", lambda _: False)
    manifest = decoded(dump, tmp_path / "second", tmp_path / "first")
    assert all(each["bytes_decoded"] == 0 for each in manifest["resumed"]["partitions"])
