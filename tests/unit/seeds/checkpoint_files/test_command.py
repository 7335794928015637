"""`region` without a dump: what checkpoints say by themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from jobs.cli.main import cli

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "region-checkpoints.jsonl"


def asked(output_format: str, *paths: Path, config: Path | None = None) -> tuple[str, int]:
    words = ["--quiet", "region", *map(str, paths or (EXAMPLE,)), "--format", output_format]
    words += [] if config is None else ["--config", str(config)]
    result = CliRunner().invoke(cli, words, standalone_mode=False)
    return result.stdout.rstrip("\n"), result.return_value


def test_people_see_what_is_wrong_first() -> None:
    text, code = asked("text")
    lines = text.splitlines()
    assert code == 0, "that an operator did not contribute is told, not unknown"
    assert max(map(len, lines)) <= 120
    assert lines[2].split()[:5] == ["!", "parcel-router", "region", "43", "false"]
    assert "router-3 did not contribute" in lines[3]


def test_programs_get_every_table() -> None:
    found = json.loads(asked("json")[0])
    assert [row["complete"] for row in found["rows"]] == [True, True, False]
    assert len(found["region_checkpoint_offsets"]) == 15
    assert found["region_drains"] == found["region_seek_plan"] == []
    assert {row["drains"] for row in found["region_operators"]} == {None}
    assert all(row["missing"] for row in found["region_operators"])


@pytest.mark.parametrize("output_format", ["markdown", "csv"])
def test_other_formats(output_format: str) -> None:
    assert "parcel-router" in asked(output_format)[0]


def test_where_nothing_is_complete_nothing_can_be_told(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text(EXAMPLE.read_text().splitlines()[-1])
    text, code = asked("json", path)
    assert code == 3
    assert json.loads(text)["cannot_tell"] == ["parcel-router: its only checkpoint is not complete"]


def test_a_teams_own_timeout_decides_what_is_late(tmp_path: Path) -> None:
    config = tmp_path / "team.yaml"
    config.write_text("rules:\n  region:\n    merge_longest_ms: 100\n")
    found = json.loads(asked("json", config=config)[0])
    late = [row["late"] for row in found["rows"]]
    assert late == [1, 1, 0]
