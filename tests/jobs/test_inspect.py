"""`groupscope inspect`, run as a person would: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Groupscope
from tests.support.log_dirs import LogDir, written

OFFSETS = "__consumer_offsets-0"


def as_json(groupscope: Groupscope, *arguments: str | Path) -> dict[str, Any]:
    ran = groupscope("inspect", *arguments, "--format", "json")
    assert (ran.returncode, ran.stderr) == (0, "")
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.fixture
def disk(tmp_path: Path) -> LogDir:
    made = LogDir.create(tmp_path / "broker-1")
    made.partition(OFFSETS, {0: [written(0, 5)], 5: [written(5, 5)]})
    return made


def test_results_go_to_stdout_and_nothing_else_does(
    groupscope: Groupscope, failover_dump: Path
) -> None:
    ran = groupscope("inspect", failover_dump)
    assert ran.returncode == 0
    assert ran.stderr == ""
    assert ran.stdout.startswith("Kafka 4.3 or newer")
    assert "! 426 records only on lines of history that did not survive" in ran.stdout
    assert "Cannot tell" in ran.stdout


def test_times_are_utc_with_milliseconds(groupscope: Groupscope, failover_dump: Path) -> None:
    ran = groupscope("inspect", failover_dump)
    assert "2026-11-21T09:16:03.927Z" in ran.stdout


def test_json_is_one_object_that_answers_the_manifests_questions(
    groupscope: Groupscope, failover_dump: Path
) -> None:
    found = as_json(groupscope, failover_dump)
    assert found["schema_version"] == 3
    time = "2026-11-21T09:23:34.172Z"
    assert found["as_of"] == {"time": time, "is_end": True, "offsets": {}}
    assert found["input"] == [str(failover_dump)]
    assert found["rows"] == found["partitions"]
    assert len(found["rows"]) == 29 + 12 + 11 + 4
    lost = [each for each in found["divergences"] if each["topic"] == "__consumer_offsets"]
    assert sum(each["lost_records"] for each in lost) == 404


def test_what_was_recognised_is_said_when_asked(
    groupscope: Groupscope, failover_dump: Path, tmp_path: Path
) -> None:
    dump = tmp_path / "dump"
    shutil.copytree(failover_dump / "controller-100", dump / "controller-100")
    (dump / "tools").mkdir()
    ran = groupscope("inspect", dump, "--verbose")
    assert ran.returncode == 0
    assert "a folder of log directories (controller-100)" in ran.stderr
    assert "tools: not a log directory; not read" in ran.stderr


@pytest.mark.parametrize("form", ["log directory", "partition", "segment", "glob", "named"])
def test_every_form_of_input(groupscope: Groupscope, disk: LogDir, form: str) -> None:
    given = {
        "log directory": str(disk.path),
        "partition": str(disk.path / OFFSETS),
        "segment": str(disk.path / OFFSETS / f"{0:020d}.log"),
        "glob": str(disk.path.parent / "broker-*"),
        "named": f"dead={disk.path}",
    }[form]
    found = as_json(groupscope, given)
    (row,) = found["rows"]
    assert row["copy"] == ("dead" if form == "named" else "broker-1")
    assert row["records"] == (5 if form == "segment" else 10)


def test_a_segment_elsewhere_with_its_owner_named(groupscope: Groupscope, tmp_path: Path) -> None:
    segment = tmp_path / f"{0:020d}.log"
    segment.write_bytes(written(0, 3))
    ran = groupscope("inspect", segment)
    assert ran.returncode == 2
    assert "--topic-partition" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    (row,) = as_json(groupscope, segment, "--topic-partition", "__consumer_offsets-17")["rows"]
    assert (row["partition"], row["records"]) == (17, 3)


def test_an_input_that_is_nothing_known_says_what_was_looked_for_and_found(
    groupscope: Groupscope, tmp_path: Path
) -> None:
    (tmp_path / "holiday.jpg").touch()
    ran = groupscope("inspect", tmp_path)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert "Looked for a segment" in ran.stderr
    assert "Found holiday.jpg" in ran.stderr
    assert str(tmp_path) in ran.stderr


def test_an_input_that_is_not_there(groupscope: Groupscope, tmp_path: Path) -> None:
    ran = groupscope("inspect", tmp_path / "gone")
    assert ran.returncode == 2
    assert "there is no such file or folder" in ran.stderr


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_shown(
    groupscope: Groupscope, disk: LogDir
) -> None:
    # A link that leads nowhere: what permissions deny to others root may read.
    segment = disk.path / OFFSETS / f"{0:020d}.log"
    segment.unlink()
    segment.symlink_to(disk.path / "gone")
    ran = groupscope("inspect", disk.path)
    assert ran.returncode == 3
    assert "! 1 file could not be read" in ran.stdout
    assert f"{segment}: cannot be read" in " ".join(ran.stdout.split())
    (row,) = json.loads(groupscope("inspect", disk.path, "--format", "json").stdout)["rows"]
    assert row["records"] == 5


def test_a_pipe_in_a_log_directory_is_not_waited_for(installed: Groupscope, disk: LogDir) -> None:
    os.mkfifo(disk.path / OFFSETS / f"{50:020d}.log")
    os.mkfifo(disk.path / "replication-offset-checkpoint")
    os.mkfifo(disk.path / OFFSETS / "leader-epoch-checkpoint")
    ran = installed("inspect", disk.path, timeout=60)
    assert ran.returncode == 0
    assert "a pipe, a socket or a device" in ran.stdout


def test_an_unfinished_workspace_is_unreadable(groupscope: Groupscope, tmp_path: Path) -> None:
    (tmp_path / ".groupscope").touch()
    ran = groupscope("inspect", tmp_path)
    assert ran.returncode == 3
    assert "never finished" in ran.stderr


def test_damage_gaps_and_tails_are_shown(groupscope: Groupscope, tmp_path: Path) -> None:
    disk = LogDir.create(tmp_path / "b")
    disk.partition(
        OFFSETS,
        {0: [written(0, 2), b"\x7f" * 99, written(2, 2)], 9: [written(9, 1), written(10)[:30]]},
    )
    disk.checkpoint("cleaner-offset-checkpoint", {})
    ran = groupscope("inspect", disk.path)
    assert ran.returncode == 0
    assert "! 1 gap that compaction does not account for" in ran.stdout
    assert "! 99 B damaged" in ran.stdout
    assert "last batch cut off (30 B)" in ran.stdout
    assert "missing_segment" in ran.stdout
    assert "garbage_between_batches" in ran.stdout


def test_checksums_are_summed_when_asked(groupscope: Groupscope, tmp_path: Path) -> None:
    disk = LogDir.create(tmp_path / "b")
    rotten = bytearray(written(2, 2))
    rotten[-1] ^= 1
    disk.partition(OFFSETS, {0: [written(0, 2), bytes(rotten), written(4, 2)]})
    assert as_json(groupscope, disk.path)["rows"][0]["crc_failures"] is None
    row = as_json(groupscope, disk.path, "--check-crc")["rows"][0]
    assert row["crc_failures"] == 1
    assert row["damages"][0]["reason"] == "bad_crc"


def test_a_copy_may_be_preferred_and_must_be_there(
    groupscope: Groupscope, failover_dump: Path
) -> None:
    found = as_json(groupscope, failover_dump, "--prefer-copy", "broker-1")
    assert found["options"]["prefer_copy"] == "broker-1"
    ran = groupscope("inspect", failover_dump, "--prefer-copy", "broker-7")
    assert ran.returncode == 2
    assert "there are broker-1, broker-2, broker-3, controller-100" in ran.stderr


def test_options_are_read_from_the_environment(installed: Groupscope, failover_dump: Path) -> None:
    ran = installed("inspect", failover_dump, env={"GROUPSCOPE_FORMAT": "json"})
    assert json.loads(ran.stdout)["schema_version"] == 3


def test_the_help_teaches_and_ends_with_examples_that_work(
    groupscope: Groupscope, repository: Path
) -> None:
    ran = groupscope("inspect", "--help")
    assert ran.returncode == 0
    lines = ran.stdout.splitlines()
    examples = [line.split()[1:] for line in lines if line.strip().startswith("groupscope inspect")]
    assert len(examples) == 2
    for example in examples:
        assert groupscope(*example, cwd=repository).returncode == 0


def test_hostile_bytes_end_in_an_answer(groupscope: Groupscope, tmp_path: Path) -> None:
    disk = LogDir.create(tmp_path / "b")
    folder = disk.partition(OFFSETS, {0: []})
    (folder / f"{0:020d}.log").write_bytes(bytes(range(256)) * 64)
    for name in (
        *("replication-offset-checkpoint", "log-start-offset-checkpoint"),
        *("cleaner-offset-checkpoint", "meta.properties", ".kafka_cleanshutdown"),
    ):
        (disk.path / name).write_bytes(bytes(range(256)))
    (folder / "leader-epoch-checkpoint").write_bytes(b"\xff\xfe\n" * 9)
    (folder / "partition.metadata").write_bytes(b"\x00")
    ran = groupscope("inspect", disk.path)
    assert ran.returncode == 0
    assert "damaged" in ran.stdout
    assert "Notes" in ran.stdout


def test_a_file_name_cannot_write_on_the_terminal(groupscope: Groupscope, disk: LogDir) -> None:
    (disk.path / OFFSETS / "x\x1b[31m\n.log").touch()
    ran = groupscope("inspect", disk.path)
    assert ran.returncode == 0
    assert "x\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}.log" in ran.stdout
