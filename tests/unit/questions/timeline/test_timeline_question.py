"""What `timeline` says from tables that are ready, and which of them it needs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from analytics.errors import SettingRefusedError
from analytics.questions.question import Answer
from analytics.questions.timeline import group_verdicts
from analytics.questions.timeline.question import TIMELINE, TimelineSettings
from jobs.cli.console import Console
from jobs.workspaces.replayed import replayed
from tests.support.written_workspace import STATE, group, write_workspace

BILLING = "billing"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
Row = Mapping[str, Any]


def minutes(after_noon: int) -> datetime:
    return NOON + timedelta(minutes=after_noon)


def space(folder: Path, tables: Mapping[str, Iterable[Row]], **manifest: Any) -> Path:
    history = {name: () for name in TIMELINE.needs if name not in STATE}
    groups = {"groups": [group("billing")]}
    first_leader = {"partition": 0, "leader_epochs": [{"epoch": 0, "first_offset": 0}]}
    return write_workspace(
        folder, history | groups | dict(tables), partitions=[first_leader], **manifest
    )


def answered(
    workspace: Path, settings: TimelineSettings | None = None, groups: tuple[str, ...] = (BILLING,)
) -> Answer:
    console = Console(quiet=True)
    with replayed(console, inputs=[str(workspace)], needs=TIMELINE.needs, groups=groups) as state:
        return TIMELINE.ask(state, settings or TimelineSettings())


def verdicts_on_billing(workspace: Path, end_offsets: Path | None = None) -> list[dict[str, Any]]:
    file = None if end_offsets is None else str(end_offsets)
    answer = answered(workspace, TimelineSettings(end_offsets=file))
    rows: list[dict[str, Any]] = answer.tables["offset_verdicts"].to_pylist()
    return rows


def committed(topic: str = "orders", topic_id: str | None = None, at: int = 0) -> dict[str, Any]:
    return {
        "group_id": "billing",
        "topic": topic,
        "topic_id": topic_id,
        "partition": 0,
        "committed_offset": 100,
        "commit_timestamp": minutes(at),
        "coordinator_partition": 0,
        "record_offset": 4711,
    }


def test_it_needs_no_table_but_those_it_names(tmp_path: Path) -> None:
    workspace = space(tmp_path / "space", {"committed_offsets": [committed()]})
    for name in set(STATE) - set(TIMELINE.needs):
        shutil.rmtree(workspace / "state" / name)
    (row,) = verdicts_on_billing(workspace)
    assert (row["verdict"], row["since"]) == ("no_loss_found", minutes(0))


def led_by_two(folder: Path, tables: Mapping[str, Iterable[Row]]) -> Path:
    """Return a workspace without a metadata log, whose partition had two leaders."""
    epochs = [{"epoch": each, "first_offset": 50 * each} for each in (0, 1)]
    led = {"topic": "__consumer_offsets", "partition": 0, "records": 1}
    leaders = [
        led | {"leader_epoch": each, "from_offset": 50 * each, "from_timestamp": minutes(at)}
        for each, at in ((0, -9), (1, 5))
    ]
    workspace = space(folder, {"coordinator_epochs": leaders, **tables})
    manifest = json.loads((workspace / "manifest.json").read_text())
    manifest["partitions"][0]["leader_epochs"] = epochs
    (workspace / "manifest.json").write_text(json.dumps(manifest))
    return workspace


def test_without_a_metadata_log_a_change_of_the_leader_may_have_lost_commits(
    tmp_path: Path,
) -> None:
    workspace = led_by_two(tmp_path / "space", {"committed_offsets": [committed()]})
    *untold, since = verdicts_on_billing(workspace)
    assert {(row["verdict"], row["at"]) for row in untold} == {("cannot_tell", minutes(5))}
    assert all("the dump has no metadata log" in row["reason"] for row in untold)
    assert (since["verdict"], since["since"]) == ("no_loss_found", minutes(5))


def test_a_group_that_no_table_has_is_looked_at_once_whatever_the_number_of_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("billing", "orders", "shipping")
    topic = {"topic": "__consumer_offsets", "partitions": 1, "source": "record"}
    workspace = led_by_two(
        tmp_path / "space",
        {
            "groups": [group(each) for each in names],
            "committed_offsets": [committed() | {"group_id": each} for each in names],
            "topics": [topic],
        },
    )
    asked = ("billing", "nobody", "shipping")
    whole = answered(workspace, groups=asked).tables["offset_verdicts"]
    assert whole["group_id"].to_pylist().count("nobody") == 1
    monkeypatch.setattr(group_verdicts, "AT_ONCE", 1)
    assert answered(workspace, groups=asked).tables["offset_verdicts"].equals(whole)


def test_nothing_may_be_left_of_what_was_compacted(tmp_path: Path) -> None:
    files = [
        {"name": f"__consumer_offsets-0/{base:020}.log", "kind": "log", "first_timestamp": time}
        for base, time in ((0, "2026-11-21T11:00:00Z"), (347, None), (403, "2026-11-21T12:05:00Z"))
    ]
    workspace = space(tmp_path / "space", {"committed_offsets": [committed()]})
    manifest = json.loads((workspace / "manifest.json").read_text())
    assert answered(workspace).summary["compacted"] == []
    manifest["partitions"][0] |= {"complete_from": 347, "files": files}
    (workspace / "manifest.json").write_text(json.dumps(manifest))
    assert answered(workspace).summary["compacted"] == [
        {
            "partition": 0,
            "before_offset": 347,
            "before_time": "2026-11-21T12:05:00Z",
            "what": "was compacted",
        }
    ]


def test_a_topic_that_was_created_again_is_told(tmp_path: Path) -> None:
    old, new = "CR5CrWzdSPKR1lSAstXFdw", "vIB_tJT3R_6WKBINnepBgQ"
    lives = [
        {"topic_id": old, "created_at": minutes(-9), "deleted_at": minutes(1)},
        {"topic_id": new, "created_at": minutes(2)},
    ]
    topics = [{"topic": "orders", "source": "metadata_log", **each} for each in lives]
    workspace = space(
        tmp_path / "space", {"committed_offsets": [committed(topic_id=old)], "topics": topics}
    )
    (row,) = verdicts_on_billing(workspace)
    assert row["verdict"] == "topic_recreated"
    assert new in row["reason"]


def test_without_a_metadata_log_commits_of_other_groups_tell_of_the_topic(tmp_path: Path) -> None:
    old, new = "CR5CrWzdSPKR1lSAstXFdw", "vIB_tJT3R_6WKBINnepBgQ"
    change = {
        "topic": "orders",
        "partition": 0,
        "event": "commit",
        "effective_offset": 1,
        "committed_offset": 100,
        "stored_offset": 100,
        "origin": "unknown",
        "coordinator_partition": 1,
        "record_offset": 1,
    }
    workspace = space(
        tmp_path / "space",
        {
            "committed_offsets": [committed(topic_id=old)],
            "topics": [
                {"topic": "orders", "topic_id": each, "source": "record"} for each in (old, new)
            ],
            "offset_history": [
                change | {"group_id": name, "topic_id": each, "commit_timestamp": minutes(at)}
                for name, each, at in (("billing", old, 0), ("shipping", new, 3))
            ],
        },
    )
    (row,) = verdicts_on_billing(workspace)
    assert (row["verdict"], row["confidence"]) == ("topic_recreated", "medium")


def test_an_offset_below_the_log_start_is_told_by_directories_and_by_side_files(
    tmp_path: Path,
) -> None:
    beside = {
        "topic": "orders",
        "partition": 0,
        "copy": "broker-1",
        "log_start_offset": 150,
        "log_end_offset": 900,
        "is_exact": True,
    }
    tables = {"committed_offsets": [committed()]}
    with_directories = space(tmp_path / "with", tables, data_partitions=[beside])
    without = space(tmp_path / "without", tables)
    file = tmp_path / "ends.csv"
    for start, end_offsets in (("", None), ("150", file), ("", file)):
        file.write_text(
            f"topic,partition,log_start_offset,log_end_offset\norders,0,{start},950\n", "utf-8"
        )
        (row,) = verdicts_on_billing(with_directories, end_offsets)
        assert row["verdict"] == "below_log_start"
    (row,) = verdicts_on_billing(without, file)
    assert row["verdict"] == "no_loss_found"


def test_events_are_those_of_the_time_asked_about_and_verdicts_of_all_before_its_end(
    tmp_path: Path,
) -> None:
    happened = {
        "group_id": BILLING,
        "event": "generation",
        "log": "__consumer_offsets",
        "coordinator_partition": 0,
    }
    workspace = space(
        tmp_path / "space",
        {
            "committed_offsets": [committed()],
            "group_events": [
                happened | {"at": minutes(at), "record_offset": at} for at in (0, 5, 10)
            ],
        },
        absent_partitions={},
    )

    def offsets(time_from: Any, time_to: Any) -> list[int]:
        answer = answered(workspace, TimelineSettings(time_from, time_to))
        events: list[int] = answer.tables["group_events"]["record_offset"].to_pylist()
        return sorted(events)

    assert offsets(None, None) == [0, 5, 10]
    assert offsets(minutes(5), None) == [5, 10]
    assert offsets("2026-11-21T12:05:00", "2026-11-21T13:08:00+01:00") == [5]
    whole = answered(workspace)
    assert [*whole.tables_to_keep] == ["offset_verdicts"]
    earlier = answered(workspace, TimelineSettings(time_to=minutes(8)))
    assert not earlier.tables_to_keep, "the workspace is of another instant"


@pytest.mark.parametrize("groups", [(), (BILLING,), ("gone",), ("lo*",), ("gone", "never", "no*")])
def test_without_events_all_else_is_the_same(tmp_path: Path, groups: tuple[str, ...]) -> None:
    happened = {"event": "group_deleted", "log": "__consumer_offsets", "coordinator_partition": 0}
    workspace = space(
        tmp_path / "space",
        {
            "committed_offsets": [committed()],
            "group_events": [
                happened | {"group_id": name, "at": minutes(0), "record_offset": 1}
                for name in ("gone", "lost")
            ],
        },
    )
    whole = answered(workspace, groups=groups)
    without = answered(workspace, TimelineSettings(with_events=False), groups)

    assert [*without.tables] == ["offset_verdicts"]
    assert without.tables["offset_verdicts"].equals(whole.tables["offset_verdicts"])
    assert [*without.tables_to_keep] == [*whole.tables_to_keep]
    assert (without.groups, without.gaps) == (whole.groups, whole.gaps)
    assert whole.groups is not None
    assert [*whole.groups.missing] == [each for each in groups if each in {"never", "no*"}]


def test_a_time_that_ends_before_it_begins_is_refused(tmp_path: Path) -> None:
    workspace = space(tmp_path / "space", {"committed_offsets": [committed()]})
    asked = TimelineSettings(minutes(5), minutes(4))
    with pytest.raises(SettingRefusedError, match=r"--from .*12:05.* is after --to .*12:04"):
        answered(workspace, asked)


def test_rows_that_cannot_be_told_are_no_doubts_of_their_own_and_the_answer_is_not_whole(
    tmp_path: Path,
) -> None:
    workspace = space(tmp_path / "space", {"committed_offsets": [committed()]})
    assert not answered(workspace).rows_cannot_tell
    manifest = json.loads((workspace / "manifest.json").read_text())
    manifest["partitions"][0]["leader_epochs"] = [
        {"epoch": each, "first_offset": 50 * each} for each in (0, 1)
    ]
    (workspace / "manifest.json").write_text(json.dumps(manifest))
    answer = answered(workspace)
    assert "cannot_tell" in answer.tables["offset_verdicts"]["verdict"].to_pylist()
    assert answer.rows_cannot_tell
    assert not answer.doubts
