"""What `expiration` takes for the retention in force, and what it only tries."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Groupscope


@pytest.fixture(scope="module")
def told(groupscope: Groupscope, failover_workspace: Path) -> dict[str, Any]:
    run = groupscope(
        "expiration", failover_workspace, "--retention-minutes", "1,1440", "--format", "json"
    )
    assert run.returncode == 0, run.stderr
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer


def test_what_is_tried_is_not_in_force(told: dict[str, Any]) -> None:
    assert told["retention"][0].startswith(
        "offsets.retention.minutes = 10080 (Kafka's default, assumed: no broker settings were given"
    )
    assert told["retention_tried"] == [1, 1440]
    assert {row["retention_source"] for row in told["rows"]} == {"default_assumed"}


def test_minutes_of_log_do_not_show_that_a_day_is_safe(told: dict[str, Any]) -> None:
    words = defaultdict(set)
    for row in told["what_if"]:
        words[row["retention_minutes"]].add(row["verdict"])
    assert words[1440] == {"not_lost_in_period"}
    assert "would_lose_now" in words[1]


def test_a_file_that_sets_nothing_known_is_refused(
    groupscope: Groupscope, failover_workspace: Path, tmp_path: Path
) -> None:
    passwd = tmp_path / "passwd"
    passwd.write_text("root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/:/sbin/nologin\n")
    run = groupscope("expiration", failover_workspace, "--broker-config", passwd)
    assert run.returncode == 2
    assert "this is not a server.properties" in run.stderr
    assert not run.stdout


@pytest.mark.parametrize("output_format", ["text", "csv"])
def test_by_which_rules_it_was_answered_is_said_once(
    groupscope: Groupscope, failover_workspace: Path, output_format: str
) -> None:
    call = ("expiration", failover_workspace, "--retention-minutes", "5", "--top", "1")
    run = groupscope(*call, "--format", output_format)
    printed = " ".join(f"{run.stdout} {run.stderr}".split())
    assert printed.count("rules: current (by release") == 1
    assert printed.count("offsets.retention.check.interval.ms = 600000") == 1
    assert printed.count("what-if tries offsets.retention.minutes") == 1


def test_a_retention_that_is_no_number_is_called_wrongly(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    run = groupscope("expiration", failover_workspace, "--retention-minutes", "1,soon")
    assert run.returncode == 2
    assert "soon" in run.stderr
