"""`groupscope decode` as the command line's contract has it, as a person calls it."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.archived import rows_of_partition, write_parquet

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Groupscope

SEGMENT = "00000000000000000000.log"


def rows(workspace: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(workspace / table).to_pylist()
    return found


def manifest_of(workspace: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((workspace / "manifest.json").read_text("utf-8"))
    return manifest


@pytest.fixture(scope="module")
def decoded(
    groupscope: Groupscope, failover_dump: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The bundled dump, decoded once."""
    out = tmp_path_factory.mktemp("decoded") / "workspace"
    result = groupscope("decode", failover_dump, "--out", out)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert "Lines of history that did not survive" in result.stdout
    return out


def test_every_table_of_the_contract_exists_though_it_may_be_empty(decoded: Path) -> None:
    from analytics.decode.tasks import table_schemas  # noqa: PLC0415

    assert {path.name for path in (decoded / "decoded").iterdir()} == table_schemas().keys()
    assert rows(decoded, "decoded/share_group_partition_metadata") == []


def test_every_record_and_every_byte_is_accounted_for(decoded: Path) -> None:
    accounts = manifest_of(decoded)["reconciliation"]
    assert len(accounts) == 18 + 18 + 19 + 1  # partitions on each disk
    assert all(account["reconciles"] for account in accounts)
    kept = sum(account["decoded"] for account in accounts)
    written = [*(decoded / "decoded").iterdir(), *(decoded / "diverged/broker-1/decoded").iterdir()]
    tables = [path for path in written if path.name not in ("control_markers", "undecoded")]
    assert sum(pq.read_table(path).num_rows for path in tables) == kept


def test_what_the_election_cost_is_in_the_manifest_and_in_the_table(decoded: Path) -> None:
    of_groups = [
        each
        for each in rows(decoded, "history/divergences")
        if each["topic"] == "__consumer_offsets"
    ]
    assert {each["partition"]: each["lost_records"] for each in of_groups} == {
        0: 24,
        1: 14,
        5: 102,
        6: 64,
        9: 200,
    }
    only_there = {group for each in of_groups for group in each["groups_only_there"]}
    assert only_there == {"night-audit", "hotfix-reprocessor", "overflow-printers"}
    in_manifest = manifest_of(decoded)["divergences"]
    assert sum(each["lost_records"] for each in in_manifest) == 404 + 22


def test_the_lost_line_is_decoded_apart(decoded: Path) -> None:
    lost = rows(decoded, "diverged/broker-1/decoded/offset_commit")
    assert {row["copy"] for row in lost} == {"broker-1"}
    assert min(row["offset"] for row in lost if row["partition"] == 9) == 245
    surviving = rows(decoded, "decoded/offset_commit")
    places = [(row["partition"], row["offset"]) for row in surviving]
    assert len(places) == len(set(places))


def test_the_manifest_says_what_was_read_and_which_release_wrote_it(decoded: Path) -> None:
    manifest = manifest_of(decoded)
    assert [each["name"] for each in manifest["copies"]] == [
        "broker-1",
        "broker-2",
        "broker-3",
        "controller-100",
    ]
    assert manifest["kafka_version"]["at_least"] == "4.3"
    digests = [file["sha256"] for each in manifest["partitions"] for file in each["files"]]
    assert all(digest is not None and len(digest) == 64 for digest in digests)


def test_equal_input_gives_equal_bytes(
    decoded: Path, groupscope: Groupscope, failover_dump: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again"
    assert groupscope("decode", failover_dump, "--out", again, "--quiet").returncode == 0
    files = [path.relative_to(decoded) for path in sorted(decoded.rglob("*.parquet"))]
    assert files == [path.relative_to(again) for path in sorted(again.rglob("*.parquet"))]
    assert all((decoded / file).read_bytes() == (again / file).read_bytes() for file in files)
    assert (decoded / "manifest.json").read_bytes() == (again / "manifest.json").read_bytes()


def test_a_second_run_replaces_the_first_and_options_come_from_the_environment(
    groupscope: Groupscope,
    failover_dump: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = failover_dump / "broker-1"
    monkeypatch.setenv("GROUPSCOPE_OUT", str(tmp_path / "out"))
    monkeypatch.setenv("GROUPSCOPE_FORMAT", "json")
    first = groupscope("decode", disk, "--topics", "__consumer_offsets")
    assert first.returncode == 0, first.stderr
    manifest = manifest_of(tmp_path / "out")
    assert manifest.pop("files")
    assert json.loads(first.stdout) == manifest
    second = groupscope("decode", disk, "--partitions", "9", "--group", "parcel-*")
    assert second.returncode == 0, second.stderr
    commits = rows(tmp_path / "out", "decoded/offset_commit")
    assert {row["key"]["group"] for row in commits} == {"parcel-router"}
    assert {row["partition"] for row in commits} == {9}
    account = [
        each
        for each in manifest_of(tmp_path / "out")["reconciliation"]
        if each["topic"] == "__consumer_offsets"
    ]
    assert [each["partition"] for each in account] == [9]
    assert account[0]["left_out"]["filtered"] > 0
    assert account[0]["reconciles"]


def test_the_dead_line_is_decoded_where_it_is_preferred(
    groupscope: Groupscope, failover_dump: Path, tmp_path: Path
) -> None:
    arguments = ["--prefer-copy", "broker-1", "--topics", "__consumer_offsets", "--partitions", "9"]
    result = groupscope("decode", failover_dump, *arguments, "--out", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    offsets = [row["offset"] for row in rows(tmp_path / "out", "decoded/offset_commit")]
    assert max(offsets) < 445
    surviving = [path.name for path in (tmp_path / "out/diverged").iterdir()]
    assert len(surviving) == 1
    assert surviving != ["broker-1"]


def test_inputs_of_several_forms_are_one_dump_and_a_missing_out_is_a_temporary_one(
    groupscope: Groupscope, failover_dump: Path, tmp_path: Path
) -> None:
    stray = tmp_path / SEGMENT
    shutil.copy(failover_dump / "broker-3/__consumer_offsets-9" / SEGMENT, stray)
    uri = (failover_dump / "broker-3/__consumer_offsets-7").as_uri()
    result = groupscope(
        "decode",
        stray,
        "--topic-partition",
        "__consumer_offsets-9",
        f"other={failover_dump / 'broker-3' / '__share_group_state-1'}",
        uri,
        str(failover_dump / "broker-3/__consumer_offsets-[56]"),
        "--format",
        "json",
        "--verbose",
    )
    assert result.returncode == 0, result.stderr
    assert "working in " in result.stderr
    manifest = json.loads(result.stdout)
    read = {(each["topic"], each["partition"]) for each in manifest["partitions"]}
    assert read == {
        ("__consumer_offsets", 5),
        ("__consumer_offsets", 6),
        ("__consumer_offsets", 7),
        ("__consumer_offsets", 9),
        ("__share_group_state", 1),
    }
    folder = result.stderr.split("working in ")[1].split(",")[0]
    assert not os.path.exists(folder)  # noqa: PTH110 - a path the command printed


def test_archived_rows_are_decoded_and_what_they_cannot_tell_is_said(
    groupscope: Groupscope, tmp_path: Path, decoded: Path
) -> None:
    commits = [
        row
        for row in rows(decoded, "decoded/offset_commit")
        if row["partition"] == 9 and not row["is_tombstone"]
    ]
    archive = tmp_path / "rows.parquet"
    key = b"\x00\x02\x00\x01g"
    pq.write_table(
        pa.table(
            {
                "key": pa.array([key, key], pa.binary()),
                "value": pa.array([None, b"\x00\x63"], pa.binary()),
                "topic": ["__consumer_offsets"] * 2,
                "partition": pa.array([0, 0], pa.int32()),
                "offset": [7, 8],
                "timestamp": pa.array([commits[0]["timestamp"]] * 2),
            }
        ),
        archive,
    )
    out = tmp_path / "out"
    result = groupscope("decode", archive, "--out", out, "--max-undecoded", "10%")
    assert result.returncode == 3, result.stderr  # one of two rows is of an unknown version
    (tombstone,) = rows(out, "decoded/group_metadata")
    assert tombstone["is_tombstone"]
    assert tombstone["leader_epoch"] is None
    assert tombstone["segment"] is None
    assert [row["reason"] for row in rows(out, "decoded/undecoded")] == ["unsupported_version"]
    assert any("aborted" in sentence for sentence in manifest_of(out)["unanswerable"])


def test_rows_of_which_none_can_be_decoded_end_with_3_and_say_what_they_look_like(
    groupscope: Groupscope, tmp_path: Path, failover_dump: Path
) -> None:
    archived = rows_of_partition(failover_dump / "broker-3" / "__consumer_offsets-9")
    archive = write_parquet(tmp_path / "rows.parquet", archived, "hex")
    result = groupscope("decode", archive, "--out", tmp_path / "out")
    assert result.returncode == 3
    # Nobody may take it for an empty partition.
    (partition,) = manifest_of(tmp_path / "out")["partitions"]
    last = max(row["offset"] for row in archived)
    assert (partition["losses"][0]["first_offset"], partition["losses"][-1]["end_offset"]) == (
        0,
        last + 1,
    )
    assert (
        f"{len(archived)} of {len(archived)} archived rows could not be decoded: their keys and "
        f"values look like hex text: try --value-encoding hex"
    ) in result.stderr.replace(",", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere", "--out", "new"], "nowhere"),
        (["DUMP", "--out", "notes.txt"], "is a file"),
        (["DUMP", "--out", "full"], "is not empty and is no workspace"),
        (["DUMP", "--out", "new", "--max-undecoded", "many"], "give a count or a percentage"),
        (["DUMP", "--out", "new", "--topics", "orders"], "__consumer_offsets"),
        (["DUMP", "--out", "new", "--group", "/(/"], "/(/"),
        (["DUMP", "--out", "new", "--prefer-copy", "broker-9"], "broker-9"),
        (["--out", "new"], "INPUT"),
    ],
)
def test_a_wrong_call_is_one_clear_message_exit_code_2_and_leaves_nothing(
    groupscope: Groupscope, failover_dump: Path, tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").write_text("mine")
    called = [str(failover_dump) if each == "DUMP" else each for each in arguments]
    result = groupscope("decode", *called, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stdout == ""
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "new/manifest.json").exists()
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine"]


def test_help_teaches_with_examples_that_work_on_the_bundled_dump(groupscope: Groupscope) -> None:
    text = groupscope("decode", "--help").stdout
    examples = [
        line.strip() for line in text.splitlines() if line.strip().startswith("groupscope ")
    ]
    assert len(examples) == 2
    assert all("examples/kafka-4.3.1-failover" in example for example in examples)
