"""What `--help` says and what the pages say are one thing."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from jobs.cli.main import COMMANDS, cli

CONTEXT = click.Context(cli, info_name="groupscope")
THERE = cli.list_commands(CONTEXT)


def command_named(name: str) -> click.Command:
    command = cli.get_command(CONTEXT, name)
    assert command is not None
    return command


def help_of(name: str) -> str:
    return command_named(name).get_help(click.Context(command_named(name), info_name=name))


@pytest.mark.parametrize("name", THERE)
def test_the_line_in_the_list_of_commands_is_the_commands_own(name: str) -> None:
    written = command_named(name).help
    assert written is not None
    assert re.split(r"\n\n|\f", " ".join(written.split("\n\n", 1)[0].split()))[0] == COMMANDS[name]


@pytest.mark.parametrize("name", THERE)
def test_every_option_has_a_text(name: str) -> None:
    silent = [
        parameter.name
        for parameter in command_named(name).params
        if isinstance(parameter, click.Option) and not parameter.help
    ]
    assert silent == []


@pytest.mark.parametrize("name", THERE)
def test_help_ends_with_two_examples_on_the_bundled_dump(name: str) -> None:
    _, _, examples = help_of(name).partition("Examples:")
    assert len(re.findall(rf"^\s+groupscope {name} ", examples, re.MULTILINE)) >= 2


@pytest.mark.parametrize("name", THERE)
def test_the_readme_names_it(name: str, repository: Path) -> None:
    assert f"groupscope {name}" in (repository / "README.md").read_text(encoding="utf-8")


def test_only_commands_that_work_are_listed() -> None:
    listed = set(re.findall(r"^  (\w+)  ", cli.get_help(CONTEXT), re.MULTILINE))
    assert listed & set(COMMANDS) == set(THERE)
