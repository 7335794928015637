"""A record that only some patch releases refuse is a finding where the patch is not named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from jobs.cli.main import cli

DUMP = Path(__file__).parents[1] / "cases" / "reports" / "handover-compacted" / "dump"


def loads(asked: Path, out: Path, release: str) -> list[str]:
    """The findings of an audit about what is loaded; what it makes is in ``out``."""
    audit = ["audit", str(asked), "--out", str(out), "--kafka-version", release]
    result = CliRunner().invoke(cli, audit, standalone_mode=False)
    assert result.exception is None, result.stderr
    lines = (out / "findings.jsonl").read_text("utf-8").splitlines()
    return [rule for each in lines if (rule := json.loads(each)["rule"]).endswith("_not_load")]


@pytest.mark.long
def test_an_audit_says_whether_the_partition_is_loaded_or_may_be(tmp_path: Path) -> None:
    first = tmp_path / "4.1"

    assert loads(DUMP, first, "4.1") == ["partition_may_not_load"]
    assert loads(first, tmp_path / "4.1.1", "4.1.1") == ["partition_does_not_load"]
    assert loads(first, tmp_path / "4.1.2", "4.1.2") == []
