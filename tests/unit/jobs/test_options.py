"""Options that commands share, and the environment they are also read from."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from jobs.cli import main as commands
from jobs.cli.console import Console, pass_console
from jobs.cli.main import CommandGroup
from jobs.cli.options.shared import (
    input_options,
    inputs_argument,
    output_options,
    selection_options,
    spark_options,
)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> click.Command:
    """A command line with one command, `decode`, that prints what it was given."""

    @click.command()
    @inputs_argument
    @input_options
    @selection_options
    @spark_options
    @output_options
    @pass_console
    def decode(console: Console, **given: object) -> None:
        """Show what was given."""
        click.echo(given)
        console.say("said")
        console.detail("detailed")
        console.warn("warned")

    module = type(click)("decode")
    module.decode = decode  # type: ignore[attr-defined]
    monkeypatch.setattr(commands.importlib, "import_module", lambda *_: module)
    monkeypatch.setattr(CommandGroup, "list_commands", lambda *_: ["decode"])
    return click.command(cls=CommandGroup)(output_options(lambda: None))


def printed(cli: click.Command, *arguments: str, **environment: str) -> dict[str, object]:
    ran = CliRunner().invoke(cli, ["decode", *arguments], env=environment)
    assert ran.exit_code == 0, ran.output
    given = eval(ran.stdout.strip())
    assert isinstance(given, dict)
    return given


def test_inputs_are_taken_in_order(cli: click.Command) -> None:
    assert printed(cli, "b=one", "two")["inputs"] == ("b=one", "two")


def test_no_input_is_called_wrongly(cli: click.Command) -> None:
    assert CliRunner().invoke(cli, ["decode"]).exit_code == 2


def test_spark_settings_are_pairs(cli: click.Command) -> None:
    given = printed(cli, "x", "--conf", "a.b=c=d", "--conf", "e=", "--master", "local[3]")
    assert given["conf"] == {"a.b": "c=d", "e": ""}
    assert given["master"] == "local[3]"


@pytest.mark.parametrize("text", ["a.b", "=c", ""])
def test_a_setting_that_is_no_pair_is_called_wrongly(cli: click.Command, text: str) -> None:
    ran = CliRunner().invoke(cli, ["decode", "x", "--conf", text])
    assert ran.exit_code == 2
    assert "KEY=VALUE" in ran.output


@pytest.mark.parametrize(
    ("given", "partitions"),
    [
        (["3"], (3,)),
        (["3,1", "2"], (1, 2, 3)),
        (["0-2,17", "1-4"], (0, 1, 2, 3, 4, 17)),
        ([], ()),
    ],
)
def test_partitions_are_numbers_and_ranges(
    cli: click.Command, given: list[str], partitions: tuple[int, ...]
) -> None:
    options = [word for text in given for word in ("--partitions", text)]
    assert printed(cli, "x", *options)["partitions"] == partitions


@pytest.mark.parametrize("text", ["", "-1", "5-3", "1-", "one", "0-999999999", "\u0663"])
def test_what_is_no_partition_is_called_wrongly(cli: click.Command, text: str) -> None:
    ran = CliRunner().invoke(cli, ["decode", "x", f"--partitions={text}"])
    assert ran.exit_code == 2
    assert "0-9,17" in ran.output


def test_topics_are_internal_ones(cli: click.Command) -> None:
    both = ("__share_group_state", "__consumer_offsets")
    assert printed(cli, "x", "--topics", ",".join(both))["topics"] == both
    assert printed(cli, "x", "--topics", both[0], "--topics", both[1])["topics"] == both
    ran = CliRunner().invoke(cli, ["decode", "x", "--topics", "orders"])
    assert ran.exit_code == 2
    assert "__consumer_offsets" in ran.output


@pytest.mark.parametrize("option", ["--group", "--exclude-group", "--topic"])
def test_a_pattern_between_slashes_must_be_one(cli: click.Command, option: str) -> None:
    assert CliRunner().invoke(cli, ["decode", "x", option, "/a|b*/"]).exit_code == 0
    assert CliRunner().invoke(cli, ["decode", "x", option, "*[a"]).exit_code == 0
    ran = CliRunner().invoke(cli, ["decode", "x", option, "/(/"])
    assert ran.exit_code == 2


def test_every_option_is_read_from_the_environment_without_the_commands_name(
    cli: click.Command,
) -> None:
    given = printed(cli, "x", GROUPSCOPE_PREFER_COPY="broker-1", GROUPSCOPE_MASTER="local[1]")
    assert given["prefer_copy"] == "broker-1"
    assert given["master"] == "local[1]"


def test_the_command_line_is_stronger_than_the_environment(cli: click.Command) -> None:
    given = printed(cli, "x", "--prefer-copy", "here", GROUPSCOPE_PREFER_COPY="there")
    assert given["prefer_copy"] == "here"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([], [], ["said", "warning: warned"]),
        (["--quiet"], [], []),
        ([], ["--quiet"], []),
        (["--verbose"], [], ["said", "detailed", "warning: warned"]),
        ([], ["--verbose"], ["said", "detailed", "warning: warned"]),
    ],
)
def test_how_much_is_said_can_be_set_before_or_after_the_command(
    cli: click.Command, before: list[str], after: list[str], said: list[str]
) -> None:
    ran = CliRunner().invoke(cli, [*before, "decode", "x", *after])
    assert ran.stderr.splitlines() == said


def test_nothing_said_goes_to_stdout(cli: click.Command) -> None:
    ran = CliRunner().invoke(cli, ["decode", "x", "--verbose"])
    assert len(ran.stdout.splitlines()) == 1


def test_progress_is_drawn_only_on_a_terminal() -> None:
    assert not Console().draws_progress
