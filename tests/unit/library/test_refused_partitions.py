"""Partitions that a broker refuses to load are named with the first record that is why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from analytics.decode.selection import Selection
from analytics.gaps.group_selection import select_groups
from analytics.gaps.internal_topics import refused_partitions
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import Workspace
from jobs.cli.console import Console
from jobs.workspaces.replayed import replayed
from tests.support.written_workspace import group, write_workspace

if TYPE_CHECKING:
    from pathlib import Path


def fault(partition: int, offset: int, word: str = "no_group", **more: Any) -> dict[str, Any]:
    return {
        "topic": "__consumer_offsets",
        "coordinator_partition": partition,
        "record_offset": offset,
        "group_id": "share",
        "record_type": 14,
        "fault": word,
        "stops_loading": True,
        "detail": "there is no group",
        **more,
    }


def test_the_first_record_that_stops_loading_is_told_for_each_partition(tmp_path: Path) -> None:
    unreadable = {"group_id": None, "record_type": None, "detail": "key: 1 byte"}
    rows = [
        fault(12, 9),
        fault(12, 7),
        fault(3, 5, "truncated", topic="__share_group_state", **unreadable),
        fault(12, 2, "replaces_other_type", stops_loading=False),
    ]
    workspace = Workspace(str(write_workspace(tmp_path, {"load_faults": rows})))
    first, second = refused_partitions(StoredTables(workspace), "4.0")
    assert first == (
        "by the rules of Kafka 4.0 a broker answers for none of the groups of __consumer_offsets-12"
        ": it fails to load it at offset 7, ShareGroupCurrentMemberAssignment of group share: "
        "there is no group (no_group)"
    )
    assert second == (
        "by the rules of Kafka 4.0 a broker answers for none of the groups of __share_group_state-3"
        ": it fails to load it at offset 5, a record that does not decode: key: 1 byte (truncated)"
    )
    classic = refused_partitions(StoredTables(workspace), "3.9.1")
    assert classic[0].startswith(
        "by the rules of Kafka 3.9.1 a broker answers as if there were none of the groups and "
        "offsets of __consumer_offsets-12: it fails to load it at offset 7"
    )


def test_where_only_some_patch_releases_refuse_a_partition_that_is_said(tmp_path: Path) -> None:
    some = {"stops_loading": None, "patch_releases": "4.1.0 to 4.1.1"}
    rows = [fault(12, 7, "partition_still_owned", **some), fault(12, 9), fault(12, 11)]
    workspace = Workspace(str(write_workspace(tmp_path, {"load_faults": rows})))
    may_stop, stops = refused_partitions(StoredTables(workspace), "4.1")
    assert may_stop == (
        "cannot tell from Kafka 4.1 alone whether a broker answers for none of the groups of "
        "__consumer_offsets-12: 4.1.0 to 4.1.1 fails to load it at offset 7, "
        "ShareGroupCurrentMemberAssignment of group share: there is no group "
        "(partition_still_owned); name the patch release with --kafka-version"
    )
    assert "fails to load it at offset 9" in stops


def test_of_a_record_that_may_fit_what_the_dump_lacks_nothing_is_claimed(tmp_path: Path) -> None:
    lacks = {"stops_loading": None, "complete": False, "missing": "it lacks offsets 3 to 6 (gone)"}
    workspace = Workspace(str(write_workspace(tmp_path, {"load_faults": [fault(12, 7, **lacks)]})))
    (sentence,) = refused_partitions(StoredTables(workspace), "4.0")
    assert sentence == (
        "cannot tell whether a broker of Kafka 4.0 answers for none of the groups of "
        "__consumer_offsets-12: as far as the dump shows it fails to load it at offset 7, "
        "ShareGroupCurrentMemberAssignment of group share: there is no group (no_group), but it "
        "lacks offsets 3 to 6 (gone)"
    )


@pytest.mark.parametrize(("home", "told"), [(12, 1), (13, 0)])
def test_who_asks_about_groups_is_told_of_their_partitions(
    tmp_path: Path, home: int, told: int
) -> None:
    tables = {"groups": [group("my-group", home=home)], "load_faults": [fault(12, 7)]}
    workspace = write_workspace(tmp_path, tables, partitions=[])
    with replayed(Console(), inputs=[str(workspace)], groups=("my-group",)) as state:
        assert state.tables.selection == Selection(("my-group",))
        warnings = select_groups(state).refused
    assert "".join(warnings).count("none of the groups of __consumer_offsets-12") == told


def test_a_workspace_without_the_table_says_nothing(tmp_path: Path) -> None:
    workspace = Workspace(str(write_workspace(tmp_path, {"groups": [group("my-group", home=1)]})))
    assert refused_partitions(StoredTables(workspace), "4.0") == []
