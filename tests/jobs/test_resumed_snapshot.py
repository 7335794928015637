"""`snapshot --resume`: what an earlier snapshot has is kept, and it stays as it is."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.recorded_cluster import (
    FETCH,
    METADATA,
    RECORDING,
    Change,
    Request,
    decoded_metadata,
    document,
    encoded_metadata,
    files_of,
    recorded_cluster,
    snapshot_of_recording,
    unchanged,
)

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from tests.conftest import Groupscope


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory, groupscope: Groupscope) -> Path:
    """The recorded cluster's snapshot."""
    return snapshot_of_recording(groupscope, tmp_path_factory.mktemp("snapshot") / "earlier")


def segments_of(folder: Path) -> dict[str, bytes]:
    return {name: content for name, content in files_of(folder).items() if name.endswith(".log")}


def resumed(
    groupscope: Groupscope, earlier: Path, out: Path, change: Change = unchanged
) -> CompletedProcess[str]:
    with recorded_cluster(RECORDING, change) as address:
        return groupscope(
            *("snapshot", "--bootstrap-server", address, "--resume", earlier, "--out", out),
            *("--timeout", "2"),
        )


def test_of_a_cluster_that_is_still_nothing_is_fetched_again(
    groupscope: Groupscope, earlier: Path, tmp_path: Path
) -> None:
    before, out = files_of(earlier), tmp_path / "out"
    fetched = 0

    def count(request: Request, response: bytes) -> bytes:
        nonlocal fetched
        fetched += request.api == FETCH
        return response

    ran = resumed(groupscope, earlier, out, count)
    assert ran.returncode == 0, ran.stderr
    assert segments_of(out) == segments_of(earlier)
    assert files_of(earlier) == before
    logs = document(out).logs
    with_batches = [each for each in logs if each.bytes]
    # One batch of each is looked at.
    assert fetched == len(with_batches)
    assert all(each.fetched_from == each.next_offset for each in with_batches)
    assert document(out).resumed_from == document(earlier).taken_at
    assert f"goes on from the snapshot of {document(earlier).taken_at}" in ran.stdout
    # The files are the same, not copies.
    name = next(iter(name for name, content in segments_of(out).items() if content))
    assert (out / name).samefile(earlier / name)
    listed = [groupscope("list", each, "--format", "json").stdout for each in (earlier, out)]
    assert json.loads(listed[0])["rows"] == json.loads(listed[1])["rows"]


def test_where_files_cannot_have_a_second_name_they_are_copied(
    groupscope: Groupscope, earlier: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(os, "link", refuse)
    ran = resumed(groupscope, earlier, tmp_path / "out")
    assert ran.returncode == 0, ran.stderr
    assert segments_of(tmp_path / "out") == segments_of(earlier)


def test_a_partition_whose_files_changed_is_read_whole_and_named(
    groupscope: Groupscope, earlier: Path, tmp_path: Path
) -> None:
    harmed, out = tmp_path / "harmed", tmp_path / "out"
    shutil.copytree(earlier, harmed)
    name = next(name for name in segments_of(harmed) if name.startswith("__consumer_offsets-1/"))
    (harmed / name).write_bytes(b"\0" + (harmed / name).read_bytes()[:-2])
    ran = resumed(groupscope, harmed, out)
    assert ran.returncode == 0, ran.stderr
    why = "files of the earlier snapshot are not as they were written"
    assert f"  __consumer_offsets-1 was read whole again: {why}" in ran.stdout
    assert segments_of(out) == segments_of(earlier)
    (log,) = [each for each in document(out).logs if each.why_whole is not None]
    assert (log.topic, log.partition, log.why_whole) == ("__consumer_offsets", 1, why)


def test_a_last_batch_that_is_another_one_has_the_partition_read_whole(
    groupscope: Groupscope, earlier: Path, tmp_path: Path
) -> None:
    harmed, out = tmp_path / "harmed", tmp_path / "out"
    shutil.copytree(earlier, harmed)
    name = next(name for name in segments_of(harmed) if name.startswith("__consumer_offsets-1/"))
    content = (harmed / name).read_bytes()
    (harmed / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    ran = resumed(groupscope, harmed, out)
    assert ran.returncode == 0, ran.stderr
    assert "  __consumer_offsets-1 was read whole again: its batch at offset " in ran.stdout
    assert segments_of(out) == segments_of(earlier)


@pytest.mark.parametrize(
    "cut_at",
    [*(pytest.param(each, marks=pytest.mark.long) for each in (1, 6)), 3],
)
def test_one_that_fails_leaves_the_earlier_as_it_was_and_no_half_of_its_own(
    groupscope: Groupscope, earlier: Path, tmp_path: Path, cut_at: int
) -> None:
    before, out, fetched = files_of(earlier), tmp_path / "out", 0

    def cut(request: Request, response: bytes) -> bytes | None:
        nonlocal fetched
        fetched += request.api == FETCH
        return None if request.api == FETCH and fetched >= cut_at else response

    ran = resumed(groupscope, earlier, out, cut)
    assert ran.returncode == 3
    assert files_of(earlier) == before
    assert sorted(tmp_path.iterdir()) == ([out] if out.exists() else [])
    if out.exists():
        assert document(out).unread


def of_another_cluster(request: Request, response: bytes) -> bytes:
    if request.api != METADATA:
        return response
    decoded = decoded_metadata(request, response)
    decoded.cluster_id = "another"
    return encoded_metadata(request, decoded)


def test_another_cluster_is_refused(groupscope: Groupscope, earlier: Path, tmp_path: Path) -> None:
    ran = resumed(groupscope, earlier, tmp_path / "out", of_another_cluster)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "is a snapshot of cluster groupscope-brokers-00A, and another answers" in ran.stderr
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (None, "is no snapshot that can be gone on from"),
        (".unfinished-snapshot", "is a snapshot that never came to its end"),
    ],
)
def test_what_is_no_whole_snapshot_is_refused_before_anything_is_asked(
    groupscope: Groupscope, tmp_path: Path, name: str | None, why: str
) -> None:
    folder = tmp_path / "earlier"
    folder.mkdir()
    if name is not None:
        (folder / name).touch()
    ran = groupscope(
        *("snapshot", "--bootstrap-server", "127.0.0.1:1", "--resume", folder),
        *("--out", tmp_path / "out"),
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert why in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_the_earlier_one_is_no_place_for_the_new_one(groupscope: Groupscope, earlier: Path) -> None:
    before = files_of(earlier)
    ran = resumed(groupscope, earlier, earlier)
    assert ran.returncode == 2
    assert "is not empty" in ran.stderr
    assert files_of(earlier) == before


@pytest.mark.parametrize("inner", ["new", "__consumer_offsets-0/new"])
def test_nor_is_a_folder_in_it(groupscope: Groupscope, earlier: Path, inner: str) -> None:
    before = files_of(earlier)
    ran = resumed(groupscope, earlier, earlier / inner)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.endswith("which stays as it is; choose another --out\n")
    assert files_of(earlier) == before


def test_usage_says_that_files_have_what_the_cleaner_removed(
    groupscope: Groupscope, earlier: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert resumed(groupscope, earlier, out).returncode == 0
    said = [groupscope("usage", each).stderr for each in (earlier, out)]
    words = f"goes on from that of {document(earlier).taken_at}: its files have what"
    assert [words in each for each in said] == [False, True]
    workspace = tmp_path / "workspace"
    assert groupscope("decode", out, "--out", workspace).returncode in {0, 3}
    (entry,) = json.loads((workspace / "manifest.json").read_text("utf-8"))["snapshots"]
    assert entry["resumed_from"] == document(earlier).taken_at
