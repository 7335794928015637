"""Reports of users about offsets that went: the installed commands on the bytes they describe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.conftest import Groupscope

REPORTS = Path(__file__).parents[1] / "cases" / "reports"


def test_what_a_cleanup_took_while_its_group_rebalanced_is_told_as_expired(
    groupscope: Groupscope,
) -> None:
    """KAFKA-13636: nine days after the commit, while generation 2 had left no record."""
    run = groupscope(
        *("expiration", REPORTS / "unstable-expiry", "--kafka-version", "2.8"),
        *("--table", "removals", "--format", "json"),
    )
    assert run.returncode == 3, run.stderr
    (row,) = json.loads(run.stdout)["rows"]
    assert (row["cause"], row["confidence"], row["verdict"]) == ("expiration", "low", "cannot_tell")
    assert row["reason"].startswith("best explained by KAFKA-13636: ")
    assert row["reason"].endswith("; a generation left no record right then")


def test_what_was_pending_outlives_the_tombstone_of_its_group(
    groupscope: Groupscope, tmp_path: Path
) -> None:
    """KAFKA-19163, -19164: one transaction is open, the other one commits after the tombstone."""
    run = groupscope(
        *("timeline", REPORTS / "pending-then-tombstone", "--kafka-version", "4.0"),
        *("--group", "still-open", "--group", "exactly-once", "--table", "verdicts"),
        *("--format", "json", "--out", tmp_path / "workspace"),
    )
    assert run.returncode == 0, run.stderr
    rows: list[dict[str, Any]] = json.loads(run.stdout)["rows"]
    told = {row["group_id"]: (row["verdict"], row["became"], row["reason"]) for row in rows}
    assert told["still-open"] == (
        "pending",
        None,
        "25 is committed when the transaction of producer 8 is",
    )
    verdict, became, reason = told["exactly-once"]
    assert (verdict, became) == ("kept_without_group", 25)
    assert reason.endswith("25 is in force once a group of this name is there again")
