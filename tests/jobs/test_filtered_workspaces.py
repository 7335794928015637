"""A workspace made with `--group` or `--topic`: what it answers, and what it cannot tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from analytics.library.dump import open_dump
from jobs.cli.main import cli

DUMP = Path(__file__).parents[2] / "examples" / "kafka-4.3.1-failover"
GROUP = ("--group", "parcel-router")
TOPIC = ("--topic", "parcels")
EARLIER = ("--as-of", "2026-11-21T09:21:00Z")
REGION = Path(__file__).parents[1] / "data" / "regions" / "billing"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, arguments)], standalone_mode=False)


def answered(*arguments: object) -> dict[str, Any]:
    """Return the answer to a question that cannot be answered whole."""
    asked = run(*arguments, "--format", "json")
    assert asked.return_value == 3, asked.stderr
    answer: dict[str, Any] = json.loads(asked.stdout)
    return answer


@pytest.fixture(scope="module")
def filtered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("filtered") / "replayed"
    run("replay", DUMP, *GROUP, "--out", out)
    return out


@pytest.fixture(scope="module")
def of_a_topic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Filtered when it was decoded, not when it was replayed."""
    folder = tmp_path_factory.mktemp("of-a-topic")
    run("decode", DUMP, *TOPIC, "--out", folder / "decoded")
    run("replay", folder / "decoded", "--out", folder / "replayed")
    return folder / "replayed"


@pytest.mark.parametrize("command", ["describe", "lag", "timeline"])
def test_a_filter_changes_nothing_of_what_it_holds(
    command: str, filtered: Path, failover_workspace: Path
) -> None:
    whole, part = (
        json.loads(run(command, each, *GROUP, "--format", "json").stdout)
        for each in (failover_workspace, filtered)
    )
    # When a coordinator changed is told by the first record of it, which may be another group's.
    untimed = [row for row in part["rows"] if row.get("event") == "coordinator_changed"]
    assert len(untimed) < len(part["rows"])
    assert [row for row in part["rows"] if row not in untimed] == [
        row for row in whole["rows"] if row.get("event") != "coordinator_changed"
    ]
    assert part.get("verdicts") == whole.get("verdicts")
    assert (whole["filters"], part["filters"]) == ({}, {"groups": ["parcel-router"]})
    codes = {each["code"] for each in part["gaps"]} - {each["code"] for each in whole["gaps"]}
    assert codes == ({"elections_unread"} if command == "timeline" else set())


@pytest.mark.parametrize("command", ["list", "lag", "usage", "expiration"])
def test_a_question_beyond_the_filter_cannot_be_answered_whole(
    command: str, filtered: Path
) -> None:
    asked = run(command, filtered, "--format", "json")
    assert asked.return_value == 3
    assert "groups other than those of --group parcel-router" in asked.stderr
    found = json.loads(asked.stdout)
    (left_out,) = found["left_out"]
    assert {"other_groups_left_out": left_out}.items() <= {
        each["code"]: each["words"] for each in found["gaps"]
    }.items()


@pytest.mark.parametrize(
    ("group", "codes"), [("lost-and-found", ["removals_of_others_unread"]), ("parcel-router", [])]
)
def test_causes_of_removals_may_stand_in_records_that_were_left_out(
    group: str, codes: list[str], tmp_path: Path
) -> None:
    run("replay", DUMP, "--group", group, "--out", tmp_path)
    asked = run("expiration", tmp_path, "--group", group, "--format", "json")
    answer = json.loads(asked.stdout)
    assert bool(answer["removals"]) == bool(codes)
    assert [each["code"] for each in answer["gaps"]] == codes
    assert asked.return_value == (3 if codes else 0)


def test_a_group_that_was_left_out_is_not_said_to_be_none(filtered: Path) -> None:
    asked = run("describe", filtered, "--group", "depot")
    assert asked.return_value == 3
    assert "cannot tell" in asked.stderr
    assert "does not exist" not in asked.stderr


def test_topics_that_other_groups_may_read_are_not_called_unread(filtered: Path) -> None:
    for names in ((), GROUP):
        asked = run("lag", filtered, "--by", "topic", *names)
        assert "no group is known to read" not in asked.stdout


@pytest.mark.parametrize("command", ["describe", "lag", "timeline"])
def test_offsets_of_topics_that_were_left_out_are_not_called_never_committed(
    command: str, of_a_topic: Path, failover_workspace: Path
) -> None:
    name = "verdicts" if command == "timeline" else "rows"
    names = ("--group", "*") if command == "timeline" else ()
    whole = json.loads(run(command, failover_workspace, *names, "--format", "json").stdout)[name]
    part = answered(command, of_a_topic, *names)[name]
    lost = [row for row in part if row["topic"] is None]
    assert [row for row in part if row not in whole and row not in lost] == []
    # `--topic` is about committed offsets; share groups have none.
    shared = {"label-prints", "pickup-jobs"}
    assert {row["topic"] for row in part} - {None} - shared == {"parcels"}
    # A group that only a lost line has is told of, whatever offsets it had there.
    for row in lost:
        assert "other topics" in row["reason"], row


def test_a_group_that_may_have_offsets_of_other_topics_alone_is_not_said_to_be_none(
    of_a_topic: Path,
) -> None:
    asked = run("describe", of_a_topic, "--group", "billing-ledger", *TOPIC)
    assert asked.return_value == 3
    assert "made with --topic" in asked.stderr
    assert "does not exist" not in asked.stderr


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("side", ["filtered", "of_a_topic"])
def test_what_one_state_was_made_without_is_no_difference(
    side: str, failover_workspace: Path, request: pytest.FixtureRequest, *, is_first: bool
) -> None:
    part = request.getfixturevalue(side)
    sides = (part, failover_workspace) if is_first else (failover_workspace, part)
    found = answered("diff", *sides)
    assert {row["change"] for row in found["rows"]} == {"cannot_tell"}
    assert found["left_out"]["from" if is_first else "to"]
    assert not found["left_out"]["to" if is_first else "from"]
    # Of what both have nothing differs: it is the same instant.
    assert "parcel-router" not in {row["group_id"] for row in found["rows"]}


def test_a_difference_does_not_hide_that_not_all_was_compared(
    filtered: Path, failover_workspace: Path, tmp_path: Path
) -> None:
    run("replay", failover_workspace, *GROUP, *EARLIER, "--out", tmp_path / "earlier")
    sides = (tmp_path / "earlier", filtered)
    assert run("diff", *sides, "--fail-on-difference").return_value == 3
    assert run("diff", *sides, *GROUP, "--fail-on-difference").return_value == 1


@pytest.mark.parametrize("options", [(), ("--include-live",)])
@pytest.mark.parametrize("side", ["filtered", "of_a_topic"])
def test_nothing_is_restored_over_what_was_left_out(
    side: str,
    options: tuple[str, ...],
    failover_workspace: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    part = request.getfixturevalue(side)
    found = answered(
        *("restore", failover_workspace, "--against", part, "--group", "*"),
        *("--out", tmp_path / "restored", *options),
    )
    assert found["against"]["left_out"]
    left_out = [
        row
        for row in found["rows"]
        if row["kind"] == "offset"
        and row["reason"] != "share_group"
        and (
            row["group_id"] != "parcel-router" if side == "filtered" else row["topic"] != "parcels"
        )
    ]
    assert left_out
    for row in left_out:
        if "--include-live" not in options:
            assert row["verdict"] == "refused", row
            assert "left out" in row["detail"] or "made with" in row["detail"], row
    absent = [row for row in found["rows"] if row["kind"] == "group" and row["note"]]
    assert not [row for row in absent if "is not there" in row["note"]]


def test_growth_since_a_filtered_workspace_is_not_whole(
    failover_workspace: Path, tmp_path: Path
) -> None:
    run("replay", DUMP, *TOPIC, *EARLIER, "--out", tmp_path / "earlier")
    asked = run("lag", failover_workspace, "--since", tmp_path / "earlier", "--format", "json")
    assert asked.return_value == 3
    (limit,) = json.loads(asked.stdout)["cannot_tell"]
    assert "topics other than those of --topic parcels" in limit
    # Once, and of the earlier workspace: the one that is asked lacks nothing.
    assert asked.stderr.count("topics other than those of --topic parcels") == 1
    assert f"cannot tell: {limit}" in asked.stderr
    assert f"--since {tmp_path / 'earlier'}: " in limit
    whole = run("lag", failover_workspace, "--since", tmp_path / "earlier", *TOPIC)
    assert whole.return_value == 0, whole.stderr


def test_growth_since_a_dump_that_lacks_partitions_of_groups_cannot_be_told(
    failover_workspace: Path, tmp_path: Path
) -> None:
    """No group of them was in `lag_growth`, as if none had grown."""
    log = DUMP / "broker-2" / "__consumer_offsets-9"
    run("replay", log, *EARLIER, "--out", tmp_path / "earlier")
    found = answered("lag", failover_workspace, "--since", tmp_path / "earlier")
    assert [each["code"] for each in found["gaps"]] == ["earlier_lacks"]
    (limit,) = found["cannot_tell"]
    assert limit.startswith(f"--since {tmp_path / 'earlier'}: groups of __consumer_offsets 0-8: ")
    whole = run("lag", failover_workspace, "--since", tmp_path / "earlier", *GROUP)
    assert whole.return_value == 0, whole.stderr


@pytest.mark.parametrize("command", ["list", "lag", "share"])
def test_groups_of_other_partitions_cannot_be_told(command: str, tmp_path: Path) -> None:
    """A group that is named is one of that partition, or is said not to be."""
    run("replay", DUMP, "--partitions", 9, "--out", tmp_path / "part")
    found = answered(command, tmp_path / "part")
    (limit,) = found["left_out"]
    assert limit.startswith("what is in partitions other than those of --partitions 9: ")
    assert [each["code"] for each in found["gaps"]] == ["other_partitions_left_out"]
    asked = run(command, tmp_path / "part", *GROUP)
    assert asked.return_value == 0, asked.stderr


def test_a_notebook_is_told_what_a_workspace_was_made_without(filtered: Path) -> None:
    with open_dump(str(filtered)) as dump:
        state = dump.replay()
        lag = state.lag()
    assert [each["code"] for each in lag.gaps.to_dicts()] == ["other_groups_left_out"]
    assert lag.cannot_tell == tuple(answered("lag", filtered)["left_out"])
    assert any("made with --group parcel-router" in each for each in state.remarks)


def test_growth_a_day_since_some_partitions_cannot_be_told(
    failover_workspace: Path, tmp_path: Path
) -> None:
    """The last record of those that were read is no end of the copies."""
    run("decode", DUMP, "--partitions", 1, "--out", tmp_path / "earlier")
    found = answered("usage", failover_workspace, "--since", tmp_path / "earlier", "--disk", "2GB")
    assert any("made of some partitions only" in each for each in found["cannot_tell"])
    rows = found["usage_growth"]
    assert {row["appended_records"] for row in rows} == {0}
    assert {row["bytes_per_day"] for row in rows} == {None}
    assert found["disk"] == []


def test_how_many_members_a_group_could_use_is_not_told_of_some_of_its_topics(
    of_a_topic: Path, failover_workspace: Path
) -> None:
    for workspace in (of_a_topic, failover_workspace):
        found = answered("lag", workspace, *TOPIC, "--by", "group")
        assert found["group_capacity"] == []
        assert {row["useful_members"] for row in found["rows"]} == {None}
        assert any("only some of their topics" in each for each in found["cannot_tell"])


def test_checkpoints_are_not_held_against_commits_that_were_left_out(tmp_path: Path) -> None:
    ends = ("--end-offsets", REGION / "end-offsets.csv")
    for name, options in (("whole", ()), ("part", ("--topic", "other"))):
        run("replay", REGION / "broker-1", *options, "--out", tmp_path / name)
    whole, part = (
        answered("region", REGION / "checkpoints.jsonl", "--dump", tmp_path / name, *ends)
        for name in ("whole", "part")
    )
    assert {row["verdict"] for row in whole["region_drains"]} == {"clean", "partial", "cannot_tell"}
    assert {row["verdict"] for row in part["region_drains"]} == {"cannot_tell"}
    assert "no_commit" not in {row["commit_is"] for row in part["region_seek_plan"]}
    owners = [
        {(row["topic"], row["partition"]): row["member_id"] for row in each["region_seek_plan"]}
        for each in (whole, part)
    ]
    assert owners[0] == owners[1]


@pytest.mark.parametrize(
    "command",
    [
        ("restore", "--as-of", "2026-11-21T09:18:30Z"),
        ("diff", "--from", "2026-11-21T09:18:30Z", "--to", "end"),
    ],
    ids=["restore", "diff"],
)
def test_a_dump_that_is_asked_about_some_groups_is_not_lacking_the_others(
    command: tuple[str, ...], failover_dump: Path, tmp_path: Path
) -> None:
    name, *options = command
    out = ("--out", tmp_path / "out") if name == "restore" else ()
    result = run(name, failover_dump, *GROUP, *options, *out, "--format", "json")

    assert result.return_value == 0, result.stderr
    assert "made without" not in result.stderr
    answer = json.loads(result.stdout)
    assert answer["rows"]
    assert answer["left_out"] in ([], {"from": [], "to": []})


@pytest.fixture(scope="module")
def of_an_instant(filtered: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Replayed at an instant, without the topic that the group reads."""
    out = tmp_path_factory.mktemp("of-an-instant") / "replayed"
    run("replay", filtered, "--topic", "invoices", *EARLIER, "--out", out)
    return out


@pytest.mark.parametrize("options", [(), ("--kafka-version", "4.0")], ids=" ".join)
def test_what_is_replayed_again_for_a_question_is_replayed_at_the_instant_of_the_workspace(
    options: tuple[str, ...], of_an_instant: Path
) -> None:
    asked = run("describe", of_an_instant, *GROUP, *options, "--format", "json")
    answer = json.loads(asked.stdout)
    assert answer["as_of"] == {"time": "2026-11-21T09:21:00.000Z", "is_end": False, "offsets": {}}
    assert f"{of_an_instant}: as of 2026-11-21T09:21:00.000Z" in asked.stderr
    assert {row["topic"] for row in answer["rows"]} == {"parcels"}
