"""The command `timeline`, as a person runs it on the bundled failover."""

from __future__ import annotations

import csv
import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner, Result

from jobs.cli.main import cli

if TYPE_CHECKING:
    from tests.conftest import Groupscope

DUMP = Path(__file__).parents[2] / "examples" / "kafka-4.3.1-failover"
PARCEL_ROUTER = ("--group", "parcel-router")
HEADER = ((">q", 0), (">i", 23))
"""Of a batch: its base offset and its last offset delta, and where they lie."""


@pytest.fixture
def workspace(failover_workspace: Path) -> Path:
    return failover_workspace


def asked(workspace: Path, *arguments: str) -> Result:
    """Ask in this process, which is what the installed command does in another."""
    return CliRunner().invoke(cli, ["timeline", str(workspace), *arguments], standalone_mode=False)


def verdicts(workspace: Path, *arguments: str) -> list[dict[str, Any]]:
    result = asked(workspace, *arguments, "--format", "json")
    assert result.return_value == 0, result.stderr
    rows: list[dict[str, Any]] = json.loads(result.stdout)["verdicts"]
    return rows


def test_events_are_in_order_and_the_worst_verdict_comes_first(
    groupscope: Groupscope, workspace: Path
) -> None:
    done = groupscope("timeline", workspace, "--group", "*", "--format", "json")
    told = json.loads(done.stdout)
    assert told["rows"]
    times = [row["time"] for row in told["rows"] if row["time"]]
    assert times == sorted(times)
    words = [row["verdict"] for row in told["verdicts"]]
    assert list(dict.fromkeys(words)) == [
        "lost_by_election",
        "group_deleted",
        "rewound_by_member",
        "pending",
        "no_loss_found",
    ]


def test_a_loss_is_told_though_the_group_has_caught_up(workspace: Path) -> None:
    rows = {row["partition"]: row for row in verdicts(workspace, *PARCEL_ROUTER)}
    lost = {number: row for number, row in rows.items() if row["verdict"] == "lost_by_election"}
    assert {number: (row["was"], row["became"], row["cost"]) for number, row in lost.items()} == {
        0: (200, 195, 5),
        2: (180, 0, 180),
        3: (180, 5, 175),
        5: (200, 195, 5),
    }
    # On both lines of the log these were 0 all along.
    assert all(rows[number]["verdict"] == "no_loss_found" for number in (1, 4))
    row = lost[3]
    assert (row["at"], row["confidence"]) == ("2026-11-21T09:20:36.859Z", "high")
    assert row["reason"] == (
        "only copy broker-1 has it (--prefer-copy broker-1); the surviving log had 0, and the next "
        "commit was 5"
    )


def test_deletions_that_were_lost_brought_offsets_back(workspace: Path) -> None:
    rows = verdicts(workspace, "--group", "mirror-checkpoints", "--group", "old-reports")
    came_back = {
        (row["group_id"], row["partition"]): row["became"] for row in rows if row["was"] is None
    }
    assert (
        came_back.items()
        >= {
            ("mirror-checkpoints", 1): 21,
            ("mirror-checkpoints", 4): 24,
            ("old-reports", 0): 50,
            ("old-reports", 1): 50,
            ("old-reports", 2): 49,
        }.items()
    )


def test_a_transaction_that_only_the_lost_line_committed_is_a_loss(workspace: Path) -> None:
    rows = verdicts(workspace, "--group", "billing-eos")
    lost = [row for row in rows if row["verdict"] == "lost_by_election"]
    told = [(row["partition"], row["was"], row["became"], row["cost"]) for row in lost]
    assert told == [(0, 46, 10, 36), (1, 47, 33, 14)]
    (pending,) = (row for row in rows if row["verdict"] == "pending")
    assert (pending["partition"], pending["reason"][:15]) == (2, "21 is committed")


def test_verdicts_are_of_the_whole_history_and_events_of_the_window(workspace: Path) -> None:
    whole = verdicts(workspace, *PARCEL_ROUTER)
    late = ("--from", "2026-11-22T00:00:00Z", "--format", "json")
    beyond = asked(workspace, *PARCEL_ROUTER, *late)
    told = json.loads(beyond.stdout)
    assert (told["rows"], told["verdicts"]) == ([], whole)
    assert "is after the dump ends" in beyond.stderr
    before = verdicts(workspace, *PARCEL_ROUTER, "--to", "2026-11-21T09:17:00Z")
    assert {row["verdict"] for row in before} == {"no_loss_found"}


def test_while_a_line_was_in_force_that_was_lost_later_the_other_tells_nothing(
    workspace: Path,
) -> None:
    result = asked(workspace, *PARCEL_ROUTER, "--to", "2026-11-21T09:18:30Z", "--format", "json")
    assert result.return_value == 3
    rows = json.loads(result.stdout)["verdicts"]
    assert {row["verdict"] for row in rows} == {"cannot_tell"}
    (reason,) = {row["reason"] for row in rows}
    assert reason == (
        "copy broker-1 has what was in force then, which an election cost later: ask with --as-of "
        "2026-11-21T09:18:30.000Z"
    )


@pytest.mark.parametrize(
    ("window", "message"),
    [
        (
            ("--from", "2026-11-21T09:20:00Z", "--to", "2026-11-21T09:10:00Z"),
            "is after --to 2026-11-21T09:10:00.000Z",
        ),
        (("--to", "2026-11-20T00:00:00Z"), "is before the dump begins"),
    ],
)
def test_a_window_that_holds_nothing_is_refused(
    workspace: Path, window: tuple[str, ...], message: str
) -> None:
    refusal = asked(workspace, *PARCEL_ROUTER, *window).exception
    assert isinstance(refusal, click.UsageError)
    assert message in str(refusal)


def test_text_shows_what_each_partition_was_and_became(workspace: Path) -> None:
    done = asked(workspace, *PARCEL_ROUTER, "--wide")
    head, *lines = done.stdout.split("\n\n")[0].splitlines()
    assert {"WAS", "BECAME", "COST"} <= set(head.split())
    (line,) = (each for each in lines if " 175 " in each)
    assert {"parcels", "3", "180", "5", "175"} <= set(line.split())


def test_csv_has_the_verdicts_too(workspace: Path) -> None:
    done = asked(workspace, *PARCEL_ROUTER, "--format", "csv", "--table", "verdicts")
    rows = {row["partition"]: row for row in csv.DictReader(done.stdout.splitlines())}
    assert (rows["3"]["was"], rows["3"]["became"], rows["3"]["cost"]) == ("180", "5", "175")


def test_the_record_of_every_event_lies_where_it_says(
    groupscope: Groupscope, workspace: Path
) -> None:
    done = groupscope("timeline", workspace, "--group", "*", "--format", "json")
    rows = json.loads(done.stdout)["rows"]
    logs = {row["log"] for row in rows}
    assert logs == {"__consumer_offsets", "__share_group_state", "__cluster_metadata"}
    assert {"coordinator_changed", "topic_created", "config_changed"} <= {
        row["event"] for row in rows
    }
    places = {
        (row["copy"], row["segment"], row["batch_position"], row["record_offset"], row["log"])
        for row in rows
    }
    for copy, segment, position, offset, log in places:
        data = (DUMP / copy / segment).read_bytes()
        base, last = (struct.unpack_from(form, data, position + at)[0] for form, at in HEADER)
        assert base <= offset <= base + last, (copy, segment, offset)
        assert segment.startswith(f"{log}-")


def test_groups_that_only_the_lost_line_has_are_named(workspace: Path) -> None:
    rows = verdicts(workspace, "--group", "*")
    lost = {row["group_id"] for row in rows if row["verdict"] == "lost_by_election"}
    divergences = json.loads((workspace / "manifest.json").read_text("utf-8"))["divergences"]
    only_there = {group for each in divergences for group in each["groups_only_there"]}
    assert only_there
    assert only_there <= lost


def test_text_opens_with_the_verdicts(groupscope: Groupscope, workspace: Path) -> None:
    done = groupscope("timeline", workspace, "--group", "tracking-indexer")
    assert done.returncode in {0, 3}, done.stderr
    assert "VERDICT" in done.stdout.splitlines()[0]
    assert "\n! " in done.stdout
    assert "EVENT" in done.stdout


def test_a_group_that_never_was_is_not_made_up(groupscope: Groupscope, workspace: Path) -> None:
    done = groupscope("timeline", workspace, "--group", "nobody-knows-it")
    assert done.returncode in {1, 3}
    assert "nobody-knows-it" in done.stderr


def test_without_a_group_it_says_what_it_needs(groupscope: Groupscope, workspace: Path) -> None:
    done = groupscope("timeline", workspace)
    assert done.returncode == 2
    assert "--group" in done.stderr
