"""Checkpoint files: what a broker writes is read, what is broken is said with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.dump.files.model import Note
from analytics.dump.files.segments import (
    QuorumState,
    parse_leader_epochs,
    parse_offsets,
    parse_properties,
    read_disk_files,
    read_quorum_state,
    read_topic_id,
)


def offsets_of(text: str) -> tuple[dict[tuple[str, int], int], list[Note]]:
    notes: list[Note] = []
    return parse_offsets(text, "f", notes), notes


def test_offsets_are_read_by_topic_and_partition() -> None:
    found, notes = offsets_of("0\n2\n__consumer_offsets 9 158\na-b.c 0 7\n")
    assert found == {("__consumer_offsets", 9): 158, ("a-b.c", 0): 7}
    assert notes == []


def test_an_empty_file_was_created_and_never_written() -> None:
    assert offsets_of("") == ({}, [])


@pytest.mark.parametrize(
    "line", ["t 0", "t x 1", "t 0 -1", "t 0 99999999999999999999", "t -1 5", "t 0 1 2"]
)
def test_a_line_that_is_no_entry_is_noted_with_its_number_and_the_others_are_used(
    line: str,
) -> None:
    found, notes = offsets_of(f"0\n2\n{line}\nt 1 5\n")
    assert found == {("t", 1): 5}
    assert len(notes) == 1
    assert notes[0].where == "f"
    assert "line 3" in notes[0].what


def test_a_count_that_is_not_true_is_noted() -> None:
    found, notes = offsets_of("0\n3\nt 1 5\n")
    assert found == {("t", 1): 5}
    assert "promises '3' entries, 1 are there" in notes[0].what


def test_a_version_nobody_knows_is_noted() -> None:
    _, notes = offsets_of("1\n0\n")
    assert "line 1" in notes[0].what


def test_leader_epochs_are_read_in_order() -> None:
    notes: list[Note] = []
    assert parse_leader_epochs("0\n2\n0 0\n4 137\n", "f", notes) == ((0, 0), (4, 137))
    assert notes == []


def test_leader_epochs_never_go_back() -> None:
    notes: list[Note] = []
    assert parse_leader_epochs("0\n4\n1 0\n1 5\n3 9\n4 8\n", "f", notes) == ((1, 0), (3, 9))
    assert [note.what.split(":")[0] for note in notes] == ["line 4", "line 6"]


def test_properties_as_java_writes_them() -> None:
    text = "#\n#Sat Nov 21 09:24:09 UTC 2026\nnode.id=1\n cluster.id = a\\=b \n!x\n"
    assert parse_properties(text) == {"node.id": "1", "cluster.id": "a=b"}


def test_a_disk_says_whose_it_is(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=3\n")
    (tmp_path / ".kafka_cleanshutdown").write_text("")
    files = read_disk_files(
        {"meta.properties", ".kafka_cleanshutdown"}, lambda name: str(tmp_path / name)
    )
    assert (files.node_id, files.cluster_id, files.directory_id) == (3, None, None)
    assert files.clean_shutdown == ""
    assert files.high_watermarks == {}


def test_a_checkpoint_that_cannot_be_read_is_noted(tmp_path: Path) -> None:
    files = read_disk_files(
        {"replication-offset-checkpoint"}, lambda name: str(tmp_path / "gone" / name)
    )
    assert files.high_watermarks == {}
    assert "cannot be read" in files.notes[0].what


def test_a_topic_id_is_22_characters(tmp_path: Path) -> None:
    path = tmp_path / "partition.metadata"
    notes: list[Note] = []
    path.write_text("version: 0\ntopic_id: 2X0yNF4RQa6efEeWT_Zh3A")
    assert read_topic_id(str(path), notes) == "2X0yNF4RQa6efEeWT_Zh3A"
    assert notes == []
    path.write_text("version: 0\ntopic_id: nonsense")
    assert read_topic_id(str(path), notes) is None
    assert len(notes) == 1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"currentVoters":[{}]}', '{"currentVoters":3}'])
def test_a_broken_quorum_state_says_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "quorum-state"
    path.write_text(text)
    assert read_quorum_state(str(path), []) == QuorumState()


def test_a_quorum_state_names_the_voters(tmp_path: Path) -> None:
    path = tmp_path / "quorum-state"
    path.write_text('{"leaderId":-1,"leaderEpoch":5,"currentVoters":[{"voterId":3},{"voterId":2}]}')
    assert read_quorum_state(str(path), []) == QuorumState(None, 5, (3, 2))


def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "replication-offset-checkpoint"
    path.write_bytes(bytes(range(256)) * 10)
    files = read_disk_files({path.name}, lambda name: str(tmp_path / name))
    assert files.high_watermarks == {}
    assert files.notes
