"""Earlier runs that a run cannot go on from: it decodes all, and says why."""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from analytics.decode import log_decoding
from analytics.decode.resumption import kept_rows, resumed_entry
from analytics.decode.selection import Selection
from analytics.errors import AbsentFileError, ClusterUnfitError
from analytics.workspace import PIECES
from jobs.cli.console import Console
from jobs.workspaces import decoding
from jobs.workspaces.decoding import decode_into, earlier_run, resumed_in_words
from tests.support.resumed_runs import CLASSIC, DUMPS, check_equal, decoded, log_of


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A dump that may be changed."""
    shutil.copytree(CLASSIC, tmp_path / "dump")
    return tmp_path / "dump"


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


def test_a_workspace_with_a_damaged_file_of_the_same_length(dump: Path, tmp_path: Path) -> None:
    first = tmp_path / "first"
    decoded(dump, first)
    # Rows of a log that has gone are not kept: what others have is read, and written anew.
    shutil.rmtree(log_of(dump))
    damaged = max((first / "decoded/offset_commit").glob("*.parquet"))
    damaged.write_bytes(bytes(damaged.stat().st_size))
    manifest = decoded(dump, tmp_path / "second", first)
    assert refusal(manifest).startswith(f"nothing is kept from {first}: {damaged} cannot be read")
    decoded(dump, tmp_path / "whole")
    check_equal(tmp_path / "second", tmp_path / "whole")


@pytest.mark.parametrize("is_removed", [True, False])
def test_a_workspace_that_is_made_again_or_removed_while_it_is_read(
    dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_removed: bool
) -> None:
    first = tmp_path / "first"
    decoded(dump, first)

    def kept_late(*arguments: Any) -> Any:
        if is_removed:
            shutil.rmtree(first, ignore_errors=True)
        elif arguments[1].tasks:
            monkeypatch.undo()
            # Other rows in files of the same names.
            decoded(dump, first, groups=("a*",))
        return kept_rows(*arguments)

    monkeypatch.setattr(log_decoding, "kept_rows", kept_late)
    manifest = decoded(dump, tmp_path / "second", first)
    why = "is gone" if is_removed else f"{first} was made again, or removed, meanwhile"
    assert refusal(manifest).endswith(why)
    decoded(dump, tmp_path / "whole")
    check_equal(tmp_path / "second", tmp_path / "whole")


def test_where_no_logs_are_read_no_names_of_copies_are_to_blame(dump: Path, tmp_path: Path) -> None:
    decoded(dump, tmp_path / "first")
    earlier = earlier_run(str(tmp_path / "first"), Selection())
    assert earlier.tasks
    assert resumed_in_words(resumed_entry(earlier, [], [])) == (
        f"nothing is kept from {tmp_path / 'first'}: no logs are read, and archived rows are "
        "decoded anew"
    )


def test_nothing_is_looked_for_on_executors_before_they_are_known_to_be_fit(
    dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded(dump, tmp_path / "first")

    def unfit(*_: object) -> None:
        raise ClusterUnfitError("executors lack numpy")

    monkeypatch.setattr(decoding, "spark_session", lambda *_, **__: nullcontext(object()))
    monkeypatch.setattr(decoding, "progress", lambda *_: nullcontext())
    monkeypatch.setattr("analytics.decode.decoding.check_executors", unfit)
    monkeypatch.setattr(log_decoding, "matches_of", lambda *_: pytest.fail("too early"))
    with pytest.raises(ClusterUnfitError, match="executors lack numpy"):
        decode_into(
            str(tmp_path / "second"),
            Console(quiet=True),
            inputs=[str(dump)],
            resume=str(tmp_path / "first"),
        )


def test_a_folder_that_is_no_workspace_is_refused_before_anything_is_made(
    dump: Path, tmp_path: Path
) -> None:
    with pytest.raises(AbsentFileError, match="no workspace of groupscope is there"):
        decoded(dump, tmp_path / "out", tmp_path / "typo")
    with pytest.raises(AbsentFileError, match="no workspace of groupscope is there"):
        decoded(dump, tmp_path / "out", dump)
    assert not (tmp_path / "out").exists()
