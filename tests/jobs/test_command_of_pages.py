"""The command that a page says it is made by: what was given, without what may be secret."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click
import pytest

from jobs.cli.console import command_line
from jobs.cli.main import cli


@contextmanager
def called(*arguments: str) -> Iterator[None]:
    """Stand in a command that was called so."""
    with cli.make_context("groupscope", list(arguments), resilient_parsing=True) as group:
        command = cli.get_command(group, arguments[0])
        assert command is not None
        with click.Context(command, parent=group):
            yield


@pytest.mark.parametrize(
    "more",
    [
        ("--on-findings", "curl https://hooks.example/T0KEN"),
        ("--on-findings=curl https://hooks.example/T0KEN",),
        ("--conf", "spark.hadoop.fs.s3a.secret.key=T0KEN"),
        ("--conf=spark.hadoop.fs.s3a.secret.key=T0KEN",),
    ],
)
def test_an_option_whose_value_may_be_secret_is_left_out(more: tuple[str, ...]) -> None:
    with called("audit", "my dump", *more, "--out", "a", "--fail-on", "never"):
        assert command_line() == "groupscope audit 'my dump' --out a --fail-on never"


def test_a_variable_is_named_where_an_option_of_the_command_reads_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GROUPSCOPE_FAIL_ON", "never")
    monkeypatch.setenv("GROUPSCOPE_ON_FINDINGS", "curl https://hooks.example/T0KEN")
    monkeypatch.setenv("GROUPSCOPE_WEBHOOK", "T0KEN")
    with called("audit", "dump", "--out", "a"):
        assert command_line() == "GROUPSCOPE_FAIL_ON=never groupscope audit dump --out a"
