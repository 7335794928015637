"""`--table` of a table that only another option makes names that option, and reads nothing."""

from __future__ import annotations

import re

import click
import pytest

from jobs.cli.main import cli, run

NEEDING = [
    *(("lag", table, "--history") for table in ("status_history", "offset_moves")),
    ("lag", "topic_readers", "--by topic"),
    ("lag", "group_capacity", "--by group"),
    ("lag", "lag_growth", "--since WORKSPACE"),
    ("usage", "usage_growth", "--since WORKSPACE"),
    *(("region", table, "--dump INPUT") for table in ("region_drains", "region_seek_plan")),
]


@pytest.mark.parametrize("output_format", ["text", "csv", "json", "markdown"])
@pytest.mark.parametrize(("command", "table", "option"), NEEDING)
def test_what_it_needs_is_named(
    command: str, table: str, option: str, output_format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run([command, "no-such-input", "--table", table, "--format", output_format])
    out, error = capsys.readouterr()
    assert code == 2
    assert re.search(f"--table {table} needs {option}$", error, re.MULTILINE), error
    assert not out


@pytest.mark.parametrize(
    ("table", "options"),
    [
        ("topic_readers", ("--by", "topic")),
        ("group_capacity", ("--by", "group")),
        ("offset_moves", ("--history",)),
    ],
)
def test_with_it_the_table_is_taken(
    table: str, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lag", "no-such-input", "--table", table, *options]) == 2
    assert "no such file or folder" in capsys.readouterr().err


def test_every_table_that_is_named_is_one_of_the_command() -> None:
    context = click.Context(cli)
    for command, table, _ in NEEDING:
        made = cli.get_command(context, command)
        assert made is not None
        (choice,) = (each.type for each in made.params if each.name == "table")
        assert isinstance(choice, click.Choice)
        assert table in choice.choices
