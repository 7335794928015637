"""Dumps whose clocks were wrong for a while: the case `future-clock`, and others of its kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from jobs.cli.main import cli

END = "2025-11-13T02:15:20.000Z"


def invoked(*arguments: str | Path) -> Result:
    command = [*(str(each) for each in arguments), "--format", "json"]
    result = CliRunner().invoke(cli, command, standalone_mode=False)
    assert result.exception is None, result.stderr
    return result


@pytest.fixture(scope="module")
def future_clock(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three commits to `invoices` say 2038; those behind them are of 2025."""
    out = tmp_path_factory.mktemp("clocks") / "future"
    invoked("replay", repository / "tests/cases/reports/future-clock/broker-1", "--out", out)
    return out


def committed(workspace: Path, instant: str) -> dict[tuple[str, int], int | None]:
    result = invoked("describe", workspace, "--group", "*", "--as-of", instant)
    rows: list[dict[str, Any]] = json.loads(result.stdout)["rows"]
    return {
        (row["group_id"], row["partition"]): row["committed_offset"] if row["complete"] else None
        for row in rows
    }


def test_records_behind_a_wrong_clock_were_appended_after_it(future_clock: Path) -> None:
    found = committed(future_clock, "2025-11-13T02:16:00Z")
    assert found == {
        ("invoices", 0): 22,
        ("invoices", 1): 29,
        ("shipping", 0): 29,
        ("shipping", 1): 29,
    }


def test_what_was_written_while_the_clock_was_wrong_has_no_time(future_clock: Path) -> None:
    found = committed(future_clock, "2025-11-13T02:14:18Z")
    assert found["invoices", 0] is None, "before or after offsets 21 to 23: nobody can tell"
    assert (found["invoices", 1], found["shipping", 0]) == (19, 21)


def test_a_dump_does_not_end_with_a_time_that_records_behind_it_take_back(
    future_clock: Path,
) -> None:
    result = invoked("expiration", future_clock)
    told = json.loads(result.stdout)
    assert told["as_of"]["time"] == END
    assert "2038-01-19T03:14:17.000Z is not believed" in told["as_of"]["notes"][0]
    assert f"as of {END}, the end of the dump" in result.stderr
    assert {row["status"] for row in told["rows"]} == {"scheduled"}
    assert max(row["next_cleanup_at"] for row in told["rows"]) < "2025-11-21"
    assert {row["note"] for row in told["rows"]} == {None}


def test_a_timeline_is_cut_where_a_replay_is(future_clock: Path) -> None:
    told = json.loads(
        invoked("timeline", future_clock, "--group", "*", "--to", "2025-11-13T02:16:00Z").stdout
    )
    named = {row["group_id"] for row in told["verdicts"] if row["verdict"] == "cannot_tell"}
    assert not named
