"""Every command's text fits the terminal it is printed on, however wide that is."""

from __future__ import annotations

import re
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from jobs.cli.main import cli

if TYPE_CHECKING:
    from tests.conftest import Groupscope

COMMANDS = {
    "list": ("list", "--state", "--type"),
    "offsets": ("describe",),
    "members": ("describe", "--members", "--verbose"),
    "state": ("describe", "--state"),
    "timeline": ("timeline", "--group", "*"),
    "expiration": ("expiration",),
    "what_if": ("expiration", "--table", "what_if"),
    "balance": ("balance", "--history"),
    "rebalances": ("rebalances",),
    "lag": ("lag",),
    "lag by member": ("lag", "--by", "member"),
    "share": ("share",),
    "usage": ("usage",),
    "region": ("region", "examples/region-checkpoints.jsonl", "--dump", "{workspace}"),
    "diff": ("diff", "--from", "2026-11-21T09:19:00Z", "--to", "end"),
}
"""What is asked of the replayed failover."""
UNCOVERED = {
    *("snapshot", "decode", "replay", "assign", "restore", "audit", "report"),
    *("trend", "forensics", "inspect"),
}
"""Commands whose text is not held against widths here, or by a test of its own below."""
_LONG_WORD = re.compile(r"\S{25,}|^ *\$? ?groupscope ")
"""A path, or a command that is to be pasted: it stays whole."""
_MOST_LINES_A_ROW = 8


def test_every_command_is_listed() -> None:
    """A new command has to be asked here, or to be named as not covered."""
    asked = {name for name, *_ in COMMANDS.values()}
    assert asked | UNCOVERED == set(cli.list_commands(click.Context(cli)))
    assert not asked & UNCOVERED


def _asked(command: str, workspace: Path) -> tuple[str, ...]:
    """Return the words of a command: behind its name its workspace, but where it has a place."""
    name, *options = COMMANDS[command]
    if "{workspace}" in options:
        return (name, *(each.replace("{workspace}", str(workspace)) for each in options))
    return (name, str(workspace), *options)


@pytest.mark.parametrize(
    ("command", "width"),
    [
        pytest.param(command, width, marks=() if width == quick else pytest.mark.long)
        for command, quick in zip(COMMANDS, cycle((80, 120, 80, 200)), strict=False)
        for width in (80, 120, 200)
    ],
)
def test_no_line_is_wider_than_the_terminal(
    groupscope: Groupscope,
    failover_workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    width: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = groupscope(*_asked(command, failover_workspace)).stdout.splitlines()
    too_wide = [each for each in lines if len(each) > width and not _LONG_WORD.search(each)]
    assert lines
    assert too_wide == []


@pytest.mark.parametrize("width", [80, 120, 200])
def test_an_inspection_fits_too(
    groupscope: Groupscope, failover_dump: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = groupscope("inspect", failover_dump).stdout.splitlines()
    assert [each for each in lines if len(each) > width and not _LONG_WORD.search(each)] == []


@pytest.mark.parametrize(
    "command",
    [
        "lag",
        "diff",
        *(pytest.param(each, marks=pytest.mark.long) for each in ("what_if", "expiration")),
    ],
)
def test_a_row_is_a_line_and_not_a_line_for_each_value(
    groupscope: Groupscope, failover_workspace: Path, command: str
) -> None:
    name, *options = COMMANDS[command]
    rows = groupscope(name, failover_workspace, *options, "--format", "csv", "--quiet").stdout
    lines = groupscope(name, failover_workspace, *options).stdout
    assert len(lines.splitlines()) <= _MOST_LINES_A_ROW * len(rows.splitlines()) + 60


def test_a_wider_terminal_shows_more_columns_and_a_file_is_as_wide_as_ever(
    groupscope: Groupscope,
    failover_workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    head: dict[int, int] = {}
    for width in (80, 240):
        monkeypatch.setenv("COLUMNS", str(width))
        head[width] = len(groupscope("lag", failover_workspace).stdout.splitlines()[0].split())
    assert head[80] < head[240]
    groupscope("lag", failover_workspace, "--output", tmp_path / "lag.txt")
    lines = (tmp_path / "lag.txt").read_text(encoding="utf-8").splitlines()
    assert 80 < max(map(len, lines)) <= 120
