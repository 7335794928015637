"""`groupscope diff` and `restore` on the bundled failover, held against what brokers answered.

The dead line is what broker-1 knew before the unclean election, the surviving one what the others
knew at the end; `tools/state-before.json.gz` and `tools/state.json.gz` are their answers.
"""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from analytics.replay.log.topic_homes import home_of
from jobs.cli.main import cli
from tests.support.cuts import cuts_of

if TYPE_CHECKING:
    from tests.conftest import Groupscope

PARTITIONS = 10
OFFSETS = "__consumer_offsets"
Key = tuple[str, str, int]


@pytest.fixture(scope="module")
def told(repository: Path) -> Path:
    """What Kafka's own tools and brokers said of the dump."""
    return repository / "tests" / "data" / "dumps" / "kafka-4.3.1-failover" / "tools"


@pytest.fixture(scope="module")
def dead(
    groupscope: Groupscope, failover_dump: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("lines") / "dead"
    result = groupscope("replay", failover_dump, "--out", out, "--prefer-copy", "broker-1")
    assert result.returncode == 0, result.stderr
    return out


@pytest.fixture(scope="module")
def alive(failover_workspace: Path) -> Path:
    return failover_workspace


def invoked(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(each) for each in arguments], standalone_mode=False)


def answered(*arguments: str | Path) -> dict[str, Any]:
    result = invoked(*arguments, "--format", "json")
    assert result.exception is None, result.stderr
    assert result.return_value == 0, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def state(path: Path) -> dict[str, Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        answer: dict[str, Any] = json.load(file)
    return answer


def offsets(answer: dict[str, Any]) -> dict[Key, int]:
    return {
        (each["group_id"], each["topic"], each["partition"]): each["offset"]
        for each in answer["committed_offsets"]
    }


def groups(answer: dict[str, Any]) -> set[str]:
    return {each["group_id"] for each in answer["groups"]}


def changed(rows: list[dict[str, Any]], kind: str, change: str) -> set[Any]:
    found = [row for row in rows if (row["kind"], row["change"]) == (kind, change)]
    if kind == "group":
        return {row["group_id"] for row in found}
    return {(row["group_id"], row["topic"], row["partition"]) for row in found}


@pytest.fixture(scope="module")
def parted(told: Path) -> dict[str, dict[str, Any]]:
    """By partition, how the dead line and the surviving one relate."""
    rows = json.loads((told / "divergence.json").read_text("utf-8"))
    return {each["partition"]: each for each in rows}


def is_on_the_dead_disk_alone(group: str, parted: dict[str, dict[str, Any]]) -> bool:
    """Whether the dead line of the group's partition lacks what the survivors wrote later."""
    relation = parted[f"{OFFSETS}-{home_of(group, PARTITIONS)}"]["relation"]
    return relation in {"diverged", "survivor is a prefix"}


def test_the_two_lines_differ_in_every_offset_and_group_that_the_election_lost(
    dead: Path, alive: Path, told: Path, parted: dict[str, dict[str, Any]]
) -> None:
    before, after = state(told / "state-before.json.gz"), state(told / "state.json.gz")
    answer = answered("diff", dead, alive)
    rows = answer["rows"]
    old, new = offsets(before), offsets(after)
    both = old.keys() & new.keys()
    assert changed(rows, "offset", "went_back") == {key for key in both if new[key] < old[key]}
    assert changed(rows, "offset", "moved") == {key for key in both if new[key] > old[key]}
    assert changed(rows, "offset", "vanished") == old.keys() - new.keys()
    # Where the survivors only went on, the dead disk has no line of its own.
    assert changed(rows, "offset", "appeared") == {
        key for key in new.keys() - old.keys() if is_on_the_dead_disk_alone(key[0], parted)
    }
    assert changed(rows, "group", "vanished") == groups(before) - groups(after)
    assert changed(rows, "group", "appeared") == {
        name for name in groups(after) - groups(before) if is_on_the_dead_disk_alone(name, parted)
    }
    assert answer["counts"]["offset"]["went_back"] == 9
    assert answer["counts"]["offset"]["vanished"] == 10
    types = {
        row["group_id"]: (row["from_group_type"], row["to_group_type"])
        for row in rows
        if row["kind"] == "group"
    }
    assert types["emergency-router"] == ("consumer", "classic")
    # The records under these offsets are others, though the numbers are equal.
    assert {key[0] for key in changed(rows, "offset", "leader_epoch_changed")} == {
        "fleet-telemetry"
    }


def test_two_instants_differ_as_the_brokers_answers_at_both_do(
    groupscope: Groupscope, alive: Path, told: Path
) -> None:
    (cut,) = (each for each in cuts_of(told.parent) if each.name == "broker-2-02")
    before, after = state(cut.path / "state.json.gz"), state(told / "state.json.gz")
    arguments = ("--from", str(cut.as_of_ms), "--to", "end", "--format", "json")
    result = groupscope("diff", alive, *arguments, "--fail-on-difference")
    assert result.returncode == 1, result.stderr
    rows = json.loads(result.stdout)["rows"]
    old, new = offsets(before), offsets(after)
    both = old.keys() & new.keys()
    assert changed(rows, "offset", "went_back") == {key for key in both if new[key] < old[key]}
    assert changed(rows, "offset", "moved") == {key for key in both if new[key] > old[key]}
    assert changed(rows, "offset", "vanished") == old.keys() - new.keys()
    assert changed(rows, "offset", "appeared") == new.keys() - old.keys()
    assert changed(rows, "group", "vanished") == groups(before) - groups(after)
    assert changed(rows, "group", "appeared") == groups(after) - groups(before)


def test_a_workspace_is_no_different_from_itself(alive: Path) -> None:
    result = invoked("diff", alive, alive, "--fail-on-difference")
    assert (result.stdout, result.return_value) == ("no difference\n", 0)


def test_filters_and_formats(dead: Path, alive: Path) -> None:
    result = invoked("diff", dead, alive, "--group", "night-*", "--format", "csv")
    rows = list(csv.DictReader(result.stdout.splitlines()))
    assert {row["kind"] for row in rows} == {"group", "offset"}
    assert {row["group_id"] for row in rows} == {"night-audit"}
    assert {row["change"] for row in rows} == {"vanished"}
    text = invoked("diff", dead, alive, "--group", "night-*").stdout
    assert "committed offsets: 3 vanished" in text
    markdown = invoked("diff", dead, alive, "--group", "night-*", "--format", "markdown").stdout
    assert markdown.startswith("## committed offsets: 3 vanished\n\n|")


def test_what_is_compared_has_to_be_said(alive: Path) -> None:
    for arguments in ((), ("--from-copy", "broker-1")):
        result = invoked("diff", alive, *arguments)
        assert result.exception is not None


@pytest.fixture(scope="module")
def rescue(dead: Path, alive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `restore` writes for all groups."""
    out = tmp_path_factory.mktemp("restore") / "rescue"
    result = invoked("restore", dead, "--against", alive, "--group", "*", "--out", out)
    assert result.exception is None
    assert result.return_value == 0, result.stderr
    assert "11 offsets to give back, 47 there already, 24 refused" in result.stdout
    return out


def given_back(folder: Path) -> dict[Key, int]:
    found = {}
    for path in folder.glob("*.csv"):
        if path.name != "refused.csv":
            for topic, partition, offset in csv.reader(path.read_text("utf-8").splitlines()):
                found[path.stem, topic, int(partition)] = int(offset)
    return found


def refused(folder: Path) -> dict[Key, str]:
    lines = (folder / "refused.csv").read_text("utf-8").splitlines()
    return {
        (row["group_id"], row["topic"], int(row["partition"])): row["reason"]
        for row in csv.DictReader(lines)
    }


def test_what_was_lost_is_given_back_where_the_data_is_still_there(
    rescue: Path, told: Path, parted: dict[str, dict[str, Any]]
) -> None:
    old = offsets(state(told / "state-before.json.gz"))
    new = offsets(state(told / "state.json.gz"))
    expected, moved_on, diverged = {}, set(), set()
    for key, offset in old.items():
        ends = parted[f"{key[1]}-{key[2]}"]["diverges_at"]
        if new.get(key) == offset:
            continue
        if key in new and new[key] > offset:
            moved_on.add(key)
        elif ends is not None and offset > ends:
            diverged.add(key)
        else:
            expected[key] = offset
    assert given_back(rescue) == expected
    reasons = refused(rescue)
    assert {key for key, why in reasons.items() if "moved_on" in why} == moved_on
    assert {key for key, why in reasons.items() if "data_diverged" in why} == diverged
    assert [key for key, why in reasons.items() if why == "pending_transaction"] == [
        ("billing-ledger", "invoices", 2)
    ]
    shares = {key[0] for key, why in reasons.items() if why == "share_group"}
    assert shares == {"label-printers", "overflow-printers", "pickup-dispatch"}
    assert (len(expected), len(moved_on), len(diverged)) == (11, 7, 8)


def test_the_commands_say_what_has_to_be_done_first(rescue: Path) -> None:
    script = (rescue / "commands.sh").read_text("utf-8")
    dry, _, change = script.partition("[ ")
    for part, mode in ((dry, "--dry-run"), (change, "--execute")):
        lines = [line for line in part.splitlines() if line.startswith("kafka-")]
        assert len(lines) == 5
        assert all(line.endswith(mode) for line in lines)
    assert "# hotfix-reprocessor is not there" in script
    assert "# billing-eos: 2 offsets were committed in transactions" in script


def test_rewinding_is_done_only_where_it_is_asked_for(
    dead: Path, alive: Path, tmp_path: Path
) -> None:
    arguments = ("restore", dead, "--against", alive, "--group", "eta-predictor", "--out", tmp_path)
    answer = answered(*arguments)
    assert answer["counts"] == {
        "restore": 0,
        "unchanged": 6,
        "refused": 3,
        "reasons": {"moved_on": 3},
    }
    assert given_back(tmp_path) == {}
    # A second run replaces what the first one wrote.
    answer = answered(*arguments, "--include-live")
    assert given_back(tmp_path) == {
        ("eta-predictor", "vehicle-pings", each): 30 for each in range(3)
    }
    (note,) = (row["note"] for row in answer["rows"] if row["kind"] == "group")
    assert note == "is Stable with 1 member: stop it first, it has to be inactive"
    answered(*arguments)
    assert given_back(tmp_path) == {}


def test_ends_of_logs_may_be_given(dead: Path, alive: Path, tmp_path: Path) -> None:
    ends = tmp_path / "ends.csv"
    ends.write_text("topic,partition,log_start_offset,log_end_offset\ninvoices,0,36,60\n")
    out = tmp_path / "out"
    arguments = ("--group", "night-audit", "--end-offsets", ends, "--out", out)
    answered("restore", dead, "--against", alive, *arguments)
    assert refused(out) == {("night-audit", "invoices", 0): "below_log_start"}


def test_a_folder_of_something_else_is_left_alone(dead: Path, alive: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    result = invoked("restore", dead, "--against", alive, "--group", "*", "--out", tmp_path)
    assert "was not written by restore" in str(result.exception)
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]


def test_a_group_that_was_not_there_is_told(dead: Path, alive: Path, tmp_path: Path) -> None:
    arguments = ("--group", "claims", "--out", tmp_path / "out")
    result = invoked("restore", dead, "--against", alive, *arguments)
    assert result.return_value == 1
    assert "group claims does not exist" in result.stderr


def test_one_dump_is_compared_with_its_own_past(
    groupscope: Groupscope, failover_dump: Path, tmp_path: Path
) -> None:
    # One partition is enough to go the whole way from segments to files.
    part = failover_dump / "broker-2" / f"{OFFSETS}-9"
    instant = ("--as-of", "2026-11-21T09:17:10Z", "--format", "json")
    result = groupscope(*("restore", part, "--group", "*", *instant, "--out", tmp_path / "out"))
    assert result.returncode in (0, 3), result.stderr
    answer = json.loads(result.stdout)
    assert answer["against"]["as_of"]["is_end"] is True
    assert answer["against"]["as_of"]["time"].endswith("Z")
    assert answer["counts"]["refused"] > 0


def test_share_groups_of_the_dead_line_are_as_its_broker_described_them(
    dead: Path, alive: Path, told: Path, tmp_path: Path
) -> None:
    """Lag, start offset and leader epoch before the election; the survivors say otherwise."""
    ends = tmp_path / "ends.csv"
    logs = [*(f"pickup-jobs,{each}" for each in range(4)), "label-prints,0", "label-prints,1"]
    lines = ["topic,partition,log_start_offset,log_end_offset", *(f"{log},0,60" for log in logs)]
    ends.write_text("\n".join(lines), encoding="utf-8")
    said = {
        (each["group_id"], each["topic"], each["partition"]): tuple(
            None if each["described"][name] == -1 else each["described"][name]
            for name in ("startOffset", "lag")
        )
        for each in state(told / "state-before.json.gz")["share_partitions"]
        if each["described"].get("startOffset", -1) != -1
    }
    rows = answered("share", dead, "--end-offsets", ends)["rows"]
    found = {
        (row["group_id"], row["topic"], row["partition"]): (row["start_offset"], row["lag"])
        for row in rows
        if row["start_offset"] is not None
    }
    assert found == said
    assert len(said) > 5
    later = answered("share", alive)["rows"]
    assert found != {
        (row["group_id"], row["topic"], row["partition"]): (row["start_offset"], row["lag"])
        for row in later
        if row["start_offset"] is not None
    }
