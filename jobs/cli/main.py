"""The command `groupscope`: finds the subcommand, and turns what went wrong into an exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

import click

from analytics.errors import (
    GroupscopeError,
    InputNotRecognizedError,
    OutputRefusedError,
    SettingRefusedError,
)
from analytics.libraries_later import withhold_libraries
from analytics.version import VERSION
from analytics.workspace_lock import locks_of_command
from jobs.cli.allocation import keep_freed_memory
from jobs.cli.crash import keep_traceback
from jobs.cli.exit_codes import CALLED_WRONGLY, CANNOT_TELL, DONE, INTERNAL_ERROR, INTERRUPTED
from jobs.cli.installation import check_one_root
from jobs.cli.options.shared import NO_COLOR, output_options
from jobs.cli.refusals import refusal
from jobs.cli.subcommands import ENVIRONMENT_PREFIX, CommandGroup
from reports.columns import printable
from reports.layout.output_format import UnknownColumnError

INTERRUPTION = "interrupted; no unfinished result was left behind"

EPILOG = """
\b
Exit codes: 0 done, 1 findings or differences, 2 called wrongly, 3 cannot tell or
unreadable, 4 internal error, 130 interrupted. Results go to stdout, all else
to stderr. Every option is also read from the environment: GROUPSCOPE_<OPTION>.

\b
Examples:
  groupscope inspect examples/kafka-4.3.1-failover
  groupscope decode examples/kafka-4.3.1-failover --out decoded
"""


@click.group(
    cls=CommandGroup,
    context_settings={
        "auto_envvar_prefix": ENVIRONMENT_PREFIX,
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
    },
    epilog=EPILOG,
)
@click.version_option(VERSION, prog_name="groupscope", allow_from_autoenv=False)
@output_options
def cli() -> None:
    """Tell what Kafka's group, share and transaction coordinators knew.

    Reads log directories of brokers, dead ones too, and archived records of __consumer_offsets
    and __share_group_state. Needs no running cluster.
    """


def main() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    withhold_libraries()
    keep_freed_memory()
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; errors are told on stderr."""
    try:
        check_one_root()
        _refuse_other_than_utf8(arguments)
        with locks_of_command():
            code = cli.main(args=list(arguments), prog_name="groupscope", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return CALLED_WRONGLY
    except (GroupscopeError, UnknownColumnError) as error:
        return _report_error(str(error), _code_of(error))
    except (click.Abort, KeyboardInterrupt):
        return _report_error(INTERRUPTION, INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the last resort, and it keeps the traceback
        if _follows_an_interruption(error):
            return _report_error(INTERRUPTION, INTERRUPTED)
        return _report_error(refusal(error) or keep_traceback(error, arguments), _code_of(error))
    return code if isinstance(code, int) else DONE


def _refuse_other_than_utf8(arguments: Sequence[str]) -> None:
    """Refuse bytes that are no text: no group has such a name, and no manifest can hold them.

    Raises:
        InputNotRecognizedError: There are some.
    """
    for each in arguments:
        if not each.isascii() and any("\ud800" <= sign <= "\udfff" for sign in each):
            shown = os.fsencode(each).decode("utf-8", "backslashreplace")
            raise InputNotRecognizedError(
                f"{shown!r} is not UTF-8: Kafka's names are, and a path has to be "
                "(a link with another name will do)"
            )


def _code_of(error: Exception) -> int:
    match error:
        case InputNotRecognizedError() | SettingRefusedError():
            return CALLED_WRONGLY
        case OutputRefusedError() | UnknownColumnError():
            return CALLED_WRONGLY
        case GroupscopeError():
            return CANNOT_TELL
        case _ if refusal(error):
            return CANNOT_TELL
        case _:
            return INTERNAL_ERROR


def _follows_an_interruption(error: BaseException) -> bool:
    """Return whether the error came up while an interruption was cleaned up after.

    Stopping Spark in the middle of a call leaves a broken connection to the JVM behind.
    """
    before = error.__cause__ or error.__context__
    if before is None:
        return False
    return isinstance(before, KeyboardInterrupt) or _follows_an_interruption(before)


def _report_error(message: str, code: int) -> int:
    # Click's context, which knows of --no-color, is gone by now.
    is_plain = bool(os.environ.get(NO_COLOR)) or "--no-color" in sys.argv
    line = f"{click.style('groupscope', fg='red')}: {printable(message)}"
    click.echo(line, err=True, color=False if is_plain else None)
    return code


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
