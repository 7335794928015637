"""A group that begins a new partition of its topic at the end, as users reported it (KIP-1327)."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from jobs.cli.main import cli

CASE = Path(__file__).parents[1] / "cases" / "reports" / "consumer-new-partition"


def test_what_lies_below_the_first_commit_is_told() -> None:
    arguments = ["lag", CASE / "dump", "--group", "mailer", "--format", "json"]
    arguments += ["--end-offsets", CASE / "ends.csv"]
    asked = CliRunner().invoke(cli, [*map(str, arguments)], standalone_mode=False)
    rows = {each["partition"]: each for each in json.loads(asked.stdout)["rows"]}
    assert rows[2]["offsets_below_first"] == 4010
    assert rows[2]["reason"].startswith("of offsets 0 to 4009 at most it never committed any")


def test_the_timeline_says_so_beside_that_nothing_was_lost() -> None:
    arguments = ["timeline", CASE / "dump", "--group", "mailer", "--format", "json"]
    arguments += ["--end-offsets", CASE / "ends.csv"]
    asked = CliRunner().invoke(cli, [*map(str, arguments)], standalone_mode=False)
    found = json.loads(asked.stdout)
    reasons = {each["partition"]: each["reason"] for each in found["verdicts"]}

    assert reasons[2].startswith("of offsets 0 to 4009 at most it never committed any")
    assert not any("never committed" in reasons[each] for each in (0, 1))
