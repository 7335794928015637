"""Every command takes the options it declares: one it does not take is a fault of ours."""

from __future__ import annotations

from unittest import mock

import click
import pytest

from jobs.cli.exit_codes import CALLED_WRONGLY, CANNOT_TELL
from jobs.cli.main import cli, run
from jobs.cli.options.answer import rows_options, table_option

COMMANDS = {
    "region": ("no-such-input",),
    "report": ("no-such-input",),
    "timeline": ("no-such-input", "--group", "g"),
    "diff": ("no-such-input", "--from", "-1h"),
    "restore": ("no-such-input", "--group", "g", "--out", "no-such-output"),
    "forensics": ("no-such-input", "--around", "-1h", "--out", "no-such-output"),
    "audit": ("no-such-input", "--out", "no-such-output"),
}
WITHOUT_INPUT = {"assign"}


@pytest.mark.parametrize(
    "command", sorted(set(cli.list_commands(click.Context(cli))) - WITHOUT_INPUT)
)
def test_an_input_that_is_not_there_is_refused(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = COMMANDS.get(command, ("no-such-input",))
    faults: list[BaseException] = []

    def kept(error: BaseException, *_: object) -> str:
        faults.append(error)
        return str(error)

    with mock.patch("jobs.cli.main.keep_traceback", kept):
        code = run([command, *arguments])
    assert not faults
    assert code in {CALLED_WRONGLY, CANNOT_TELL}, capsys.readouterr().err


def test_the_order_in_which_options_do_not_reach_each_other_is_refused() -> None:
    with pytest.raises(TypeError, match="table_option"):

        @rows_options
        @table_option("rows")
        def wrong() -> None: ...
