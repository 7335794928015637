"""What a dump cannot tell of groups is said, and never taken for nothing."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.decode.selection import Selection
from analytics.gaps.group_completeness import GroupCompleteness
from analytics.gaps.group_selection import GroupSelection, select_groups
from analytics.gaps.internal_topics import partitions_that_fit
from analytics.replay.log.topic_homes import home_of
from jobs.cli.console import Console
from jobs.cli.incomplete_groups import groups_exit_code
from jobs.workspaces.replayed import replayed
from tests.support.written_workspace import OFFSETS, group, write_workspace


@pytest.mark.parametrize(
    ("group_id", "partition"),
    [
        ("", 0),
        ("group", 47),
        ("my-group", 12),
        ("console-consumer-12345", 6),
        ("gruppe-ä", 48),
        ("\N{GRINNING FACE}", 49),
        ("polygenelubricants", 0),
    ],
)
def test_a_group_lives_where_java_hashes_it_to(group_id: str, partition: int) -> None:
    assert home_of(group_id, 50) == partition


def test_the_number_of_partitions_is_one_by_which_every_group_is_at_home() -> None:
    names = [f"group-{number}" for number in range(8)]
    for partitions in (1, 4, 10, 50, 100):
        homes = [(name, home_of(name, partitions)) for name in names]
        assert partitions_that_fit(homes, max(home for _, home in homes) + 1) == partitions
    assert partitions_that_fit([], 10) == 50, "the first 10 of 50 look like a topic of 10"
    assert partitions_that_fit([], 60) == 60
    assert partitions_that_fit([("group", 1), ("group", 2)], 3) is None


def asked(workspace: Path, *groups: str, **options: Any) -> GroupSelection:
    with replayed(Console(quiet=True), inputs=[str(workspace)], groups=groups, **options) as found:
        return select_groups(found)


def partitions(*numbers: int, **more: Any) -> list[dict[str, Any]]:
    return [{"partition": number, "complete_from": 0, **more} for number in numbers]


def test_a_group_whose_partition_has_no_copy_cannot_be_told(tmp_path: Path) -> None:
    rows = [group("group", home=47), group("my-group", home=12)]
    workspace = write_workspace(tmp_path, {"groups": rows}, partitions=partitions(12, 47))
    answer = asked(workspace, "console-consumer-12345")
    assert answer.cannot_tell == (
        f"console-consumer-12345 belongs to {OFFSETS}-6, of which this dump has no copy",
    )
    assert groups_exit_code(answer) == 3
    assert groups_exit_code(asked(workspace, "group")) == 0


def test_a_group_whose_partition_is_there_and_that_is_not_does_not_exist(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path, {"groups": []}, partitions=partitions(*range(50)))
    answer = asked(workspace, "billing")
    assert (answer.missing, answer.instant) == (("billing",), "the end of the dump")
    assert (answer.cannot_tell, groups_exit_code(answer)) == ((), 1)


def test_where_groups_are_not_named_what_may_be_missing_is_said(tmp_path: Path) -> None:
    workspace = write_workspace(
        tmp_path, {"groups": [group("my-group", home=12)]}, partitions=partitions(12)
    )
    lacks = f"groups of {OFFSETS} 0-11, 13-49: this dump has no copy of these"
    everything = asked(workspace)
    assert groups_exit_code(everything) == 3
    assert everything.cannot_tell == (lacks,)
    some = asked(workspace, "my*")
    assert groups_exit_code(some) == 3
    assert some.cannot_tell == (f"whether more groups match 'my*': {lacks}",)
    assert asked(workspace, "my-group").cannot_tell == ()


def test_partitions_that_were_not_asked_for_are_not_missed(tmp_path: Path) -> None:
    workspace = write_workspace(
        tmp_path,
        {"groups": [group("my-group", home=12)]},
        partitions=partitions(12),
        options={"partitions": [12]},
    )
    assert groups_exit_code(asked(workspace)) == 0


@pytest.mark.parametrize(
    ("value", "there", "home", "words"),
    [
        # Ten partitions are there, and are all that brokers make.
        ("10", 10, None, "is taken to have 10 partitions: nothing in the dump says it"),
        ("12", 10, None, "is taken to have 12 partitions: nothing in the dump says it"),
        # More are there than brokers make now; a group lies where it would not.
        ("8", 10, None, "does not fit the partitions"),
        ("10", 10, home_of("my-group", 10) + 1, "does not fit the partitions"),
    ],
)
def test_a_setting_tells_how_many_partitions_there_are_where_nothing_contradicts_it(
    value: str, there: int, home: int | None, words: str, tmp_path: Path
) -> None:
    own = home_of("my-group", int(value)) if home is None else home
    rows = [group("my-group", home=own if own < there else 0)]
    workspace = write_workspace(
        tmp_path / "workspace", {"groups": rows}, partitions=partitions(*range(there))
    )
    file = tmp_path / "server.properties"
    file.write_text(f"node.id=1\noffsets.topic.num.partitions={value}\n")
    with replayed(
        Console(quiet=True), inputs=[str(workspace)], broker_configs=[str(file)]
    ) as state:
        answer, said = select_groups(state), state.response_metadata["by_settings"]
    assert any(words in each for each in said)
    assert any(words in each for each in answer.remarks)
    if "does not fit" in words:
        # As without it.
        assert answer.cannot_tell == asked(workspace).cannot_tell
    elif value == "10":
        assert answer.cannot_tell == ()
    else:
        (reason,) = answer.cannot_tell
        assert reason.startswith(f"groups of {OFFSETS} 10-11: this dump has no copy of these (")
        assert "offsets.topic.num.partitions=12 does" in reason


def test_a_setting_adds_nothing_to_what_a_dump_shows(tmp_path: Path) -> None:
    topic = {"topic": OFFSETS, "topic_id": "A" * 22, "partitions": 50, "source": "metadata_log"}
    workspace = write_workspace(
        tmp_path / "workspace", {"groups": [], "topics": [topic]}, partitions=partitions(0)
    )
    file = tmp_path / "server.properties"
    file.write_text("node.id=1\noffsets.topic.num.partitions=1\n")
    with replayed(
        Console(quiet=True), inputs=[str(workspace)], broker_configs=[str(file)]
    ) as state:
        assert "by_settings" not in state.response_metadata
        (reason,) = select_groups(state).cannot_tell
    assert reason == f"groups of {OFFSETS} 1-49: this dump has no copy of these"


LOST_TAIL = {
    "losses": [
        {"first_offset": 3, "end_offset": 5, "why": "a segment file is missing or cut off"},
        {"first_offset": 9, "end_offset": None, "why": f"{0:020d}.log ends within a batch"},
    ]
}


@pytest.fixture
def lossy(tmp_path: Path) -> Path:
    """Partition 12 has lost records; of its two groups one is still there."""
    there = [
        group("my-group", home=12, complete=False, missing="the last records"),
        group("group", home=47),
    ]
    others = [number for number in range(50) if number != 12]
    rows = [*partitions(*others), *partitions(12, **LOST_TAIL)]
    return write_workspace(tmp_path, {"groups": there}, partitions=rows)


def test_a_group_that_may_be_among_lost_records_is_not_said_not_to_exist(lossy: Path) -> None:
    lost = next(name for number in range(999) if home_of(name := f"g{number}", 50) == 12)
    answer = asked(lossy, lost)
    assert (answer.missing, groups_exit_code(answer)) == ((), 3)
    (reason,) = answer.cannot_tell
    assert reason == (
        f"{lost} is not in the records that can be read, and {OFFSETS}-12 lacks offsets 3 to 4 "
        f"(a segment file is missing or cut off), all from offset 9 on "
        f"(00000000000000000000.log ends within a batch)"
    )
    assert asked(lossy, "billing").missing == ("billing",), "it belongs to another partition"


def test_all_groups_cannot_be_told_where_records_of_any_partition_are_lost(lossy: Path) -> None:
    answer = asked(lossy)
    assert groups_exit_code(answer) == 3
    assert f"groups may be missing: {OFFSETS}-12 lacks offsets 3 to 4" in answer.cannot_tell[0]


def test_why_offsets_membership_and_history_cannot_be_told(lossy: Path) -> None:
    with replayed(Console(quiet=True), inputs=[str(lossy)]) as state:
        gaps = GroupCompleteness(state).gaps_of("my-group")
        assert GroupCompleteness(state).gaps_of("group").every == ()
    assert [each.words for each in gaps.membership] == ["my-group: the last records"]
    (of_offsets,), (of_history,) = gaps.offsets, gaps.history
    assert (of_offsets.code, of_history.code) == ("offsets_lack_records", "history_lacks_records")
    assert of_offsets.place == {
        **dict.fromkeys(("from_time", "to_time")),
        "topic": OFFSETS,
        "partition": 12,
        "from_offset": 3,
        "to_offset": None,
        "group_id": "my-group",
    }
    assert "its offsets may be missing or replaced" in of_offsets.words
    assert len(gaps.every) == 3
    assert groups_exit_code(asked(lossy, "my-group")) == 3
    assert groups_exit_code(asked(lossy, "group")) == 0


@pytest.mark.parametrize("here", [range(50), range(25), (1, 7, 12, 47)])
def test_only_groups_without_gaps_are_left_out_of_those_that_may_have_some(
    tmp_path: Path, here: Collection[int]
) -> None:
    names = [f"group-{number}" for number in range(200)]
    groups = [group(name, home=home_of(name, 50)) for name in names if home_of(name, 50) in here]
    groups[0] |= {"complete": False, "missing": "the last records"}
    rows = [*partitions(*(each for each in here if each != 12)), *partitions(12, **LOST_TAIL)]
    workspace = write_workspace(tmp_path, {"groups": groups}, partitions=rows)
    with replayed(Console(quiet=True), inputs=[str(workspace)]) as state:
        completeness = GroupCompleteness(state)
        may = completeness.may_have_gaps(state.tables.read("groups"))
        all_groups = [str(each["group_id"]) for each in groups]
        lacking = {each for each in all_groups if completeness.gaps_of(each).every}
    assert lacking
    assert lacking <= set(may) < set(all_groups)


@pytest.mark.parametrize(("end", "is_told"), [(3, True), (4, False)])
def test_losses_behind_the_instant_do_not_matter(lossy: Path, end: int, *, is_told: bool) -> None:
    manifest = json.loads((lossy / "manifest.json").read_text("utf-8"))
    manifest["replay"]["as_of"] = {"time": None, "offsets": {f"{OFFSETS}-12": end}}
    (lossy / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    with replayed(Console(quiet=True), inputs=[str(lossy)]) as state:
        assert (GroupCompleteness(state).gaps_of("my-group").offsets == ()) is is_told


def test_a_dump_without_the_offsets_topic_tells_of_no_group(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path, {})
    for groups in ((), ("billing",)):
        answer = asked(workspace, *groups)
        assert "no copy of any partition" in answer.cannot_tell[0]
        assert groups_exit_code(answer) == 3


def test_an_incomplete_group_is_shown_and_said_to_be_so(tmp_path: Path) -> None:
    lost = "records of __consumer_offsets-12 below offset 7 are missing"
    rows = [group("my-group", home=12, complete=False, missing=lost)]
    workspace = write_workspace(tmp_path, {"groups": rows}, partitions=partitions(*range(50)))
    answer = asked(workspace, "my-group")
    assert answer.rows["group_id"].to_pylist() == ["my-group"]
    assert answer.cannot_tell == (f"my-group: {lost}",)


@pytest.mark.parametrize("name", ["*", "/.*/", "a?"])
def test_a_group_whose_name_looks_like_a_pattern_is_said_to_have_been_meant(
    tmp_path: Path, name: str
) -> None:
    rows = [group(each, home=home_of(each, 50)) for each in (name, "ab")]
    workspace = write_workspace(tmp_path, {"groups": rows}, partitions=partitions(*range(50)))
    answer = asked(workspace, name)
    assert answer.rows["group_id"].to_pylist() == [name]
    (remark,) = answer.remarks
    assert f"--group {name!r} was taken for the group of that very name" in remark
    (regex,) = shlex.split(remark.rpartition("--group ")[2])
    assert set(asked(workspace, regex).rows["group_id"].to_pylist()) == {name, "ab"}
    assert asked(workspace, "ab").remarks == []


@pytest.mark.parametrize(("end", "is_told"), [(99, False), (100, True)])
def test_at_an_offset_before_complete_from_nothing_can_be_told(
    tmp_path: Path,
    end: int,
    is_told: bool,
) -> None:
    all_of_them = partitions(*range(50), complete_from=100)
    as_of = {"time": None, "offsets": {f"{OFFSETS}-12": end}}
    workspace = write_workspace(
        tmp_path, {"groups": []}, partitions=all_of_them, replay={"as_of": as_of}
    )
    answer = asked(workspace, "my-group")
    assert bool(answer.missing) is is_told
    assert groups_exit_code(answer) == (1 if is_told else 3)
    if not is_told:
        assert "history before offset 100 was compacted" in answer.cannot_tell[0]
        assert f"{OFFSETS} 12 at" in asked(workspace).cannot_tell[0]


@pytest.mark.parametrize(("minute", "is_told"), [(29, False), (30, True)])
def test_at_a_time_before_complete_from_nothing_can_be_told(
    tmp_path: Path,
    minute: int,
    is_told: bool,
) -> None:
    """What the cleaner took had a later value, which it left: at half past in this log."""
    all_of_them = partitions(*range(50), complete_from=100)
    as_of = {"time": f"2026-11-21T09:{minute}:00.000Z", "offsets": {}}
    workspace = write_workspace(
        tmp_path,
        {"groups": []},
        partitions=all_of_them,
        replay={"as_of": as_of},
        record_types=[{"topic": OFFSETS, "table": "offset_commit", "records": 2}],
    )
    half_past = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
    commits = pa.table(
        {
            "topic": [OFFSETS, OFFSETS],
            "partition": pa.array([12, 12], pa.int32()),
            "offset": pa.array([99, 100], pa.int64()),
            "value": pa.array([{"commit_timestamp": -1}] * 2),
            "timestamp": pa.array(
                [half_past, half_past.replace(hour=11)], pa.timestamp("us", "UTC")
            ),
        }
    )
    (workspace / "decoded" / "offset_commit").mkdir(parents=True)
    pq.write_table(commits, workspace / "decoded" / "offset_commit" / "part.parquet")
    assert groups_exit_code(asked(workspace, "my-group")) == (1 if is_told else 3)


def test_what_was_left_out_while_decoding_cannot_be_told(tmp_path: Path) -> None:
    workspace = write_workspace(
        tmp_path,
        {"groups": [group("my-group", home=12)]},
        partitions=partitions(*range(50)),
        options={"groups": ["my*"], "exclude_groups": []},
    )
    assert groups_exit_code(asked(workspace, "billing")) == 3
    assert groups_exit_code(asked(workspace, "my-group")) == 0


def test_a_type_narrows_what_is_found_not_what_is_there(tmp_path: Path) -> None:
    rows = [group("classic"), group("cron", "simple"), group("queue", "share")]
    workspace = write_workspace(tmp_path, {"groups": rows}, partitions=partitions(*range(50)))
    with replayed(Console(quiet=True), inputs=[str(workspace)]) as found:
        by_type = {
            kind: select_groups(found, kind).rows["group_id"].to_pylist()
            for kind in ("classic", "simple", "share", "streams")
        }
        assert found.tables.selection == Selection()
    assert by_type == {
        "classic": ["classic", "cron"],
        "simple": ["cron"],
        "share": ["queue"],
        "streams": [],
    }
