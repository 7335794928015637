"""The examples of help name what is bundled; test_written_commands.py runs them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from analytics.decode.selection import names_wanted
from jobs.cli.main import cli

if TYPE_CHECKING:
    from tests.conftest import Groupscope

OF_A_WORKSPACE = ("report", "trend")
"""What they are given is made by the first of their examples."""
OF_A_CLUSTER = ("snapshot",)
"""They are given no dump."""


def examples() -> Iterator[list[str]]:
    context = click.Context(cli, info_name="groupscope")
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        text = (command.epilog or "").partition("Examples:")[2].replace("\\\n", " ")
        yield from (shlex.split(line)[1:] for line in text.splitlines() if line.strip())


EXAMPLES = list(examples())


@pytest.mark.parametrize("example", EXAMPLES, ids=" ".join)
def test_its_options_are_taken(example: list[str], repository: Path) -> None:
    name, *arguments = example
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    there = [each.replace("examples/", f"{repository}/examples/") for each in arguments]
    with command.make_context(name, list(there)) as context:
        assert context.params
    dumps = [each.partition("=")[2] or each for each in there if "examples/" in each]
    made = {each[each.index("--out") + 1] for each in EXAMPLES if "--out" in each}
    is_given_none = name in OF_A_CLUSTER or (name in OF_A_WORKSPACE and arguments[0] in made)
    assert dumps or is_given_none
    assert all(Path(each).exists() for each in dumps)


@pytest.mark.parametrize("example", EXAMPLES, ids=" ".join)
def test_its_groups_are_there(example: list[str], groups: list[str]) -> None:
    given = dict(pairwise(example))
    if "--group" in given:
        assert names_wanted(groups, (given["--group"],))


@pytest.fixture(scope="module")
def groups(groupscope: Groupscope, failover_workspace: Path) -> list[str]:
    """Those that the bundled dump has."""
    listed = groupscope("list", failover_workspace, "--format", "csv", "--wide")
    return [line.partition(",")[0] for line in listed.stdout.splitlines()[1:]]
