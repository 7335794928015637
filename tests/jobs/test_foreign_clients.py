"""Groups of clients that are not Kafka's own, on a real broker: asked as a person asks.

Three of the ten offsets partitions are there, with the metadata log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Groupscope

DUMP = Path("tests/data/dumps/kafka-4.3.1-foreign")
NOT_CONSUMERS = "not a consumer group (connect)"

Row = Mapping[str, Any]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("foreign") / "out"


@pytest.fixture(scope="module")
def balance(groupscope: Groupscope, repository: Path, workspace: Path) -> dict[str, Any]:
    broker = repository / DUMP / "broker-1"
    run = groupscope("balance", broker, "--out", workspace, "--format", "json")
    assert run.returncode == 3, run.stderr
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer


@pytest.fixture(scope="module")
def by_group(balance: dict[str, Any]) -> dict[str, Row]:
    return {row["group_id"]: row for row in balance["rows"]}


def members(groupscope: Groupscope, workspace: Path, group: str) -> tuple[int, list[Row]]:
    asked = ("--members", "--verbose", "--group", group, "--format", "json")
    run = groupscope("describe", workspace, *asked)
    rows: list[Row] = json.loads(run.stdout)["rows"]
    return run.returncode, rows


@pytest.mark.parametrize("group", ["faust-app", "kafkajs-own"])
def test_subscriptions_without_their_last_field_are_read(
    by_group: dict[str, Row], group: str
) -> None:
    row = by_group[group]
    assert row["verdict"] != "cannot_tell"
    assert row["unassigned_partitions"] == 0


def test_an_assignment_without_its_last_field_is_read(
    groupscope: Groupscope, balance: dict[str, Any], workspace: Path
) -> None:
    assert balance["rows"]
    code, (row,) = members(groupscope, workspace, "short-bytes")
    assert (code, row["partition_count"], row["complete"]) == (0, 1, True)
    assert row["current_assignment"] == "orders:0"
    text = groupscope("describe", workspace, "--members", "--group", "short-bytes").stdout
    assert "Kafka's tools fail on it" in " ".join(text.split())


def test_what_members_of_another_protocol_have_is_cannot_tell_and_not_nothing(
    groupscope: Groupscope, by_group: dict[str, Row], workspace: Path
) -> None:
    assert by_group["connect-zoo"]["verdict"] == "cannot_tell"
    assert NOT_CONSUMERS in by_group["connect-zoo"]["cause"]
    code, rows = members(groupscope, workspace, "connect-zoo")
    assert code == 3
    assert [(row["partition_count"], row["complete"]) for row in rows] == [(None, False)] * 2
    assert all(NOT_CONSUMERS in row["missing"] for row in rows)
    for question in ("describe", "timeline"):
        run = groupscope(question, workspace, "--group", "connect-zoo")
        assert run.returncode == 3, run.stderr
        assert f"cannot tell: connect-zoo: the group is {NOT_CONSUMERS}" in run.stderr
    text = groupscope("describe", workspace, "--members", "--group", "connect-zoo", "--wide")
    (line, _) = [each for each in text.stdout.splitlines() if "connect-zoo" in each]
    assert "cannot tell: the group is not a consumer group (connect)" in line


def test_two_owners_are_no_error_where_the_assignor_may_mean_them(
    by_group: dict[str, Row],
) -> None:
    """Faust gives standby copies of its tables to several members."""
    assert by_group["faust-app"]["verdict"] == "doubled"
    assert "whether the assignor faust means that is not known" in by_group["faust-app"]["cause"]


def test_who_has_most_is_named(by_group: dict[str, Row]) -> None:
    row = by_group["rd-rr"]
    assert row["member_with_most"].startswith("rr-a-")
    assert (row["max_partitions"], row["min_partitions"]) == (9, 2)


@pytest.mark.parametrize("view", ["offsets", "members"])
def test_what_kafkas_tool_printed_equals_ours_and_the_rest_is_not_compared(
    groupscope: Groupscope, repository: Path, balance: dict[str, Any], workspace: Path, view: str
) -> None:
    assert balance["rows"]
    saved = repository / DUMP / "tools" / "describe" / f"named-{view}.txt"
    run = groupscope("describe", workspace, "--against", saved, "--format", "json")
    answer = json.loads(run.stdout)
    assert run.returncode == 3, "seven partitions are not in this dump"
    assert answer["equal"] == {"offsets": 144, "members": 26}[view]
    # Names with line breaks and padding cannot be put together without a dump that has them.
    differing = {row["row"].split()[0] for row in answer["rows"]}
    assert differing == {"offsets": {"gone", "line", "spaces"}, "members": set()}[view]
    why = answer["groups_not_compared"]
    assert "the tool fails" in why["short-bytes"]
    assert "cannot tell" in why["sarama-rr"]


def test_a_group_that_is_called_like_a_pattern_is_meant_by_its_name(
    groupscope: Groupscope, balance: dict[str, Any], workspace: Path
) -> None:
    assert balance["rows"]
    run = groupscope("describe", workspace, "--group", "*", "--format", "json")
    assert {row["group_id"] for row in json.loads(run.stdout)["rows"]} == {"*"}
