"""The command `timeline`, as a person runs it on the bundled failover."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Groupscope

DUMP = Path(__file__).parents[2] / "examples" / "kafka-4.3.1-failover"
HEADER = ((">q", 0), (">i", 23))
"""Of a batch: its base offset and its last offset delta, and where they lie."""


@pytest.fixture
def workspace(failover_workspace: Path) -> Path:
    return failover_workspace


def test_a_group_has_a_verdict_for_each_topic_and_events_in_order(
    groupscope: Groupscope, workspace: Path
) -> None:
    done = groupscope("timeline", workspace, "--group", "*", "--format", "json")
    told = json.loads(done.stdout)
    assert told["rows"]
    times = [row["time"] for row in told["rows"] if row["time"]]
    assert times == sorted(times)
    assert {row["verdict"] for row in told["verdicts"]} >= {"in force, never went back"}
    places = [(row["group_id"], row["topic"], row["partition"]) for row in told["verdicts"]]
    assert len(places) == len(set(places))


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


def test_what_the_election_lost_is_named(groupscope: Groupscope, workspace: Path) -> None:
    done = groupscope("timeline", workspace, "--group", "*", "--format", "json")
    lost = {
        row["group_id"]
        for row in json.loads(done.stdout)["verdicts"]
        if row["verdict"] == "lost by an election"
    }
    divergences = json.loads((workspace / "manifest.json").read_text("utf-8"))["divergences"]
    only_there = {group for each in divergences for group in each["groups_only_there"]}
    assert only_there
    assert only_there <= lost


def test_an_offset_that_only_the_lost_line_has_is_named_with_its_copy(
    groupscope: Groupscope, workspace: Path
) -> None:
    done = groupscope("timeline", workspace, "--group", "tracking-indexer", "--format", "json")
    verdicts = {row["partition"]: row for row in json.loads(done.stdout)["verdicts"]}
    # Its owner did not commit again: no record of the surviving line tells that it went back.
    last = verdicts[3]
    assert last["verdict"] == "lost by an election"
    assert (last["was"], last["now"], last["at"]) == (140, 100, "2026-11-21T09:20:41.197Z")
    assert "broker-1" in last["reason"]


def test_text_opens_with_the_verdicts(groupscope: Groupscope, workspace: Path) -> None:
    done = groupscope("timeline", workspace, "--group", "tracking-indexer")
    assert done.returncode in {0, 3}, done.stderr
    assert done.stdout.startswith("GROUP")
    assert "VERDICT" in done.stdout.splitlines()[0]
    assert "EVENT" in done.stdout


def test_a_group_that_never_was_is_not_made_up(groupscope: Groupscope, workspace: Path) -> None:
    done = groupscope("timeline", workspace, "--group", "nobody-knows-it")
    assert done.returncode in {1, 3}
    assert "nobody-knows-it" in done.stderr


def test_without_a_group_it_says_what_it_needs(groupscope: Groupscope, workspace: Path) -> None:
    done = groupscope("timeline", workspace)
    assert done.returncode == 2
    assert "--group" in done.stderr
