"""A broker whose clock is an hour wrong: what was committed at an instant is right or not told."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from jobs.cli.main import cli
from tests.support.decoded_here import decoded_here
from tests.verdicts.altered_logs import setting_clock
from tests.verdicts.evidence import copied

FAILOVER = Path(__file__).parents[2] / "examples" / "kafka-4.3.1-failover"
HOUR_MS = 3_600_000
BEFORE_THE_FAILOVER = "2026-11-21T09:17:27.856Z"
"""The broker led then, what it wrote last was lost, and some of that is later."""
AFTER_IT = "2026-11-21T09:23:00Z"
KEY = ["group_id", "topic", "partition"]
MIRRORED = ("mirror-checkpoints", "parcels", 0)
Offsets = dict[tuple[str, str, int], tuple[int, bool]]


def committed(decoded: Path, instant: str, out: Path) -> Offsets:
    """Return the committed offset by key, and whether it is certain."""
    result = CliRunner().invoke(
        cli, ["replay", str(decoded), "--as-of", instant, "--out", str(out)]
    )
    assert result.exit_code in {0, 3}, result.output
    rows = pl.read_parquet(str(out / "state" / "committed_offsets" / "*.parquet"))
    return {
        (row["group_id"], row["topic"], row["partition"]): (
            row["committed_offset"],
            row["complete"],
        )
        for row in rows.iter_rows(named=True)
    }


@pytest.mark.parametrize(
    ("instant", "certain"),
    [
        # Elections before and after it bound what others wrote.
        (BEFORE_THE_FAILOVER, 33),
        pytest.param(AFTER_IT, 81, marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("ahead_ms", [HOUR_MS, -HOUR_MS], ids=["ahead", "behind"])
def test_what_was_committed_is_right_or_not_told_where_a_clock_is_wrong(
    instant: str, certain: int, ahead_ms: int, failover_workspace: Path, tmp_path: Path
) -> None:
    dump = tmp_path / "dump"
    dump.mkdir()
    setting_clock(1, ahead_ms)(copied(FAILOVER, dump))
    decoded_here([str(dump)], tmp_path / "decoded")
    true = committed(failover_workspace, instant, tmp_path / "true")
    offsets = committed(tmp_path / "decoded", instant, tmp_path / "replayed")
    told = {key: each for key, each in offsets.items() if each[1]}
    assert told.items() <= true.items()
    # What is uncertain is there, marked.
    assert true.keys() <= offsets.keys()
    assert len(told) == certain
    if instant == BEFORE_THE_FAILOVER:
        # 20 had been committed; 77 was written less than a second later, by the wrong clock.
        assert true[MIRRORED] == (20, True)
        assert offsets[MIRRORED] == (77, False)
