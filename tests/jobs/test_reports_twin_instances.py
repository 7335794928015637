"""Two processes with one `group.instance.id`, as users reported them."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from jobs.cli.main import cli

CASE = Path(__file__).parents[1] / "cases" / "reports" / "twin-instances"


def test_both_hosts_are_named_and_that_nothing_moves() -> None:
    asked = CliRunner().invoke(
        cli,
        ["rebalances", str(CASE / "dump"), "--group", "*", "--format", "json"],
        standalone_mode=False,
    )
    (row,) = [
        each for each in json.loads(asked.stdout)["standing"] if each["kind"] == "shared_instance"
    ]
    assert row["detail"] == (
        "static name worker-0 is used by processes at /10.0.0.5 and /10.0.0.6, each of which "
        "fences the other: taken 39 times; no progress on 3 of its 3 partitions since"
    )
