"""`groupscope describe` and `list` as a person runs them, held against Kafka's own tools."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from jobs.cli.main import cli

if TYPE_CHECKING:
    from tests.conftest import Groupscope

DUMP = "kafka-4.3.1-failover"
LEFT_MEANWHILE = "parcel-router"
"""The tools ran before the members of this group timed out; the logs go on until after that."""


def invoked(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(each) for each in arguments], standalone_mode=False)


def outputs(repository: Path, dump: str) -> list[Path]:
    folder = repository / "tests" / "data" / "dumps" / dump / "tools" / "describe"
    return sorted(folder.glob("*.txt"))


@pytest.fixture
def workspace(failover_workspace: Path) -> Path:
    return failover_workspace


def test_every_row_equals_what_kafkas_tools_printed(repository: Path, workspace: Path) -> None:
    compared = 0
    for file in outputs(repository, DUMP):
        result = invoked(
            "describe", workspace, "--against", file, "--exclude-group", LEFT_MEANWHILE
        )
        equal, total = re.match(r"([\d,]+) of ([\d,]+) rows equal", result.stdout).groups()  # type: ignore[union-attr]
        assert (equal, result.return_value) == (total, 0), (file.name, result.output)
        compared += int(total)
        assert "not compared" not in result.stdout
    assert compared == 72 * 2 + 11 + 27 * 2 + (6 + 3 + 2 + 3 + 1 + 1) * 2


def test_a_row_that_differs_is_shown_and_ends_with_code_1(
    repository: Path, workspace: Path
) -> None:
    (file,) = [each for each in outputs(repository, DUMP) if each.stem == "consumer-groups-state"]
    result = invoked("describe", workspace, "--against", file)
    assert result.return_value == 1
    assert "27 of 28 rows equal" in result.stdout
    assert re.search(r"parcel-router\s+STATE\s+Stable\s+Empty", result.stdout)


def test_a_workspace_answers_in_every_format(workspace: Path) -> None:
    answer = json.loads(invoked("describe", workspace, "--format", "json").stdout)
    assert list(answer)[:3] == ["schema_version", "as_of", "input"]
    families = {row["group_type"] for row in answer["rows"]}
    assert families == {"classic", "simple", "consumer", "share", "streams"}
    text = invoked("describe", workspace).stdout
    assert text.count("GROUP") == 3, "one table for each of Kafka's tools"
    assert invoked("describe", workspace, "--format", "csv").stdout.startswith("group_id,topic,")
    markdown = invoked("list", workspace, "--format", "markdown").stdout
    assert markdown.startswith("| GROUP | TYPE | PROTOCOL |")


def test_an_epoch_before_the_election_has_the_members_of_then(workspace: Path) -> None:
    result = invoked("describe", workspace, "--group", LEFT_MEANWHILE, "--epoch", "1", "--wide")
    assert [line.split()[3] for line in result.stdout.splitlines()[1:]] == ["router-0", "router-1"]
    assert "parcels:0,1,2" in result.stdout


def test_a_group_of_a_partition_without_a_copy_cannot_be_told(
    groupscope: Groupscope, failover_dump: Path
) -> None:
    part = failover_dump / "broker-2" / "__consumer_offsets-3"
    result = groupscope("describe", part, "--group", "billing")
    assert result.returncode == 3
    assert result.stdout == ""
    assert "cannot tell: billing belongs to __consumer_offsets-" in result.stderr
    assert "of which this dump has no copy" in result.stderr
    assert "hint: --out DIR keeps this work" in result.stderr


@pytest.mark.long
@pytest.mark.long
def test_share_groups_of_4_0_equal_what_its_tools_printed(
    groupscope: Groupscope, repository: Path, tmp_path: Path
) -> None:
    """Data topics were left out of this dump: ends of logs are not known."""
    dump = repository / "tests" / "data" / "dumps" / "kafka-4.0.2-share"
    out = tmp_path / "out"
    assert groupscope("replay", dump, "--out", out).returncode == 0
    for file in outputs(repository, dump.name):
        result = invoked("describe", out, "--against", file)
        equal, total = re.match(r"([\d,]+) of ([\d,]+) rows equal", result.stdout).groups()  # type: ignore[union-attr]
        assert equal == total, (file.name, result.output)
