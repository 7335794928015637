"""`--output FILE`: the answer goes there whole, as it would into a pipe, and stdout stays empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from jobs.cli.console import Console, print_text
from jobs.cli.main import COMMANDS, CommandGroup
from jobs.cli.options.shared import format_options
from tests.support.command_here import run_here

CASE = str(Path(__file__).parents[3] / "examples" / "assign-case.json")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_the_option_beside_its_format(name: str) -> None:
    command = CommandGroup().get_command(click.Context(click.Command("groupscope")), name)
    assert command is not None
    options = {option for each in command.params for option in each.opts}
    assert {"--format", "--output"} <= options


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_file_has_what_a_pipe_would_get(tmp_path: Path, form: str) -> None:
    file = tmp_path / "new" / "answer"
    printed = run_here(["assign", CASE, "--format", form])
    written = run_here(["assign", CASE, "--format", form, "--output", str(file)])
    assert (written.returncode, written.stdout) == (printed.returncode, "") == (0, "")
    assert file.read_text("utf-8") == printed.stdout
    assert list(file.parent.iterdir()) == [file]


def test_exit_codes_stay_the_same(tmp_path: Path) -> None:
    file = tmp_path / "answer"
    case = tmp_path / "case.json"
    case.write_text('{"topics": {}, "members": "none"}', "utf-8")
    assert run_here(["assign", str(case), "--output", str(file)]).returncode == 2
    assert not file.exists()


@pytest.mark.parametrize(
    ("output", "why"),
    [("", "no file"), (".", "no file"), ("ftp://host/x", "nothing here opens URIs of ftp:")],
)
def test_what_is_no_file_is_refused_before_anything_is_done(output: str, why: str) -> None:
    ran = run_here(["assign", "--output", output, CASE])
    assert (ran.returncode, ran.stdout) == (2, "")
    assert why in ran.stderr


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    ran = run_here(["assign", CASE, "--output", str(tmp_path / "file" / "below")])
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "cannot be written" in ran.stderr


@click.command()
@format_options("text")
@click.option("--broken", is_flag=True)
def answer(output_format: str, *, broken: bool) -> None:
    """Print an answer in pieces, one of them colored."""

    def pieces() -> Iterator[str]:
        yield click.style("one ", fg="red")
        if broken:
            raise ArithmeticError
        yield output_format

    print_text(pieces())


def test_an_answer_that_breaks_off_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "answer"
    assert CliRunner().invoke(answer, ["--output", str(file)], obj=Console()).output == ""
    assert file.read_text("utf-8") == "one text\n"
    ran = CliRunner().invoke(answer, ["--output", str(file), "--broken"], obj=Console())
    assert isinstance(ran.exception, ArithmeticError)
    assert file.read_text("utf-8") == "one text\n"
    assert list(tmp_path.iterdir()) == [file]
