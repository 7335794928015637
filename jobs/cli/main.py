"""The command `groupscope`: finds the subcommand, and turns what went wrong into an exit code.

What the system refused, a file, room on a disk, memory, is said in one line. An error in Arrow, in
a worker of Spark or in the JVM says so in its own words only, and not which file it was; what it
says comes from the system all the same. Of an error of ours the traceback goes into a file, and one
line says which. The names of the four packages are generic: where another distribution owns one,
that is said first.
"""

from __future__ import annotations

import errno
import importlib
import importlib.util
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from types import FrameType
from typing import Any, Final, NoReturn, cast

import click

from analytics.errors import (
    ClusterUnfitError,
    GroupscopeError,
    InputNotRecognizedError,
    InstallationError,
    OutputRefusedError,
    SettingRefusedError,
)
from analytics.libraries_later import withhold_libraries
from analytics.locations import is_of_stores
from analytics.version import PACKAGES, VERSION
from analytics.workspace_lock import locks_of_command
from jobs.cli.allocation import keep_freed_memory
from jobs.cli.console import (
    ENVIRONMENT_PREFIX,
    echo_message,
    forget_reader,
    keep_command_line,
)
from jobs.cli.exit_codes import CALLED_WRONGLY, CANNOT_TELL, DONE, INTERNAL_ERROR, INTERRUPTED
from jobs.cli.options.shared import NO_COLOR, output_options
from jobs.cli.page_width import message_width
from reports.layout.output_format import UnknownColumnError
from reports.plain_text import message_lines

# The subcommands, found by name and imported only when they run: `--help` answers at once.

COMMANDS: Mapping[str, str] = {
    "snapshot": "Take a dump of a running cluster.",
    "inspect": "Show what is in a dump.",
    "decode": "Write every record of a dump into tables.",
    "replay": "Compute what the coordinators knew at an instant.",
    "describe": "Describe groups as Kafka's own tools do.",
    "list": "List the groups.",
    "timeline": "Show everything that happened to a group.",
    "diff": "Show what changed between two instants or two dumps.",
    "restore": "Write files and commands that give groups their offsets back.",
    "expiration": "Show which offsets expire when, and under which rule.",
    "balance": "Show how evenly partitions are assigned, and why not.",
    "rebalances": "Show which members joined and left before each rebalance.",
    "assign": "Run an assignor on a case.",
    "lag": "Show how far behind groups are.",
    "region": "Hold checkpoints kept outside of Kafka against committed offsets.",
    "share": "Show the backlog of share groups and what blocks it.",
    "usage": "Show what fills the internal topics.",
    "audit": "Ask every question of a dump and show what is worth a look.",
    "report": "Write the page of a workspace.",
    "trend": "Show how audits changed from one to the next.",
    "forensics": "Write the page that an incident review wants.",
}
"""One line for each subcommand, in the order of `--help`: `NAME` is `jobs/commands/NAME.py`."""


def _name_variables(command: click.Command) -> None:
    """Name each option's environment variable after the option, not after its parameter."""
    for each in command.params:
        if isinstance(each, click.Option) and each.envvar is None:
            name = max(each.opts, key=len).lstrip("-").replace("-", "_").upper()
            each.envvar = f"{ENVIRONMENT_PREFIX}_{name}"


_MOST_SIGNS: Final = 60
"""So many has a list of choices that fits beside its option."""


def _list_choices(command: click.Command) -> None:
    """Let help list many choices as words, which go on in the next line, not as `[one|other]`."""
    for each in command.params:
        if not isinstance(each, click.Option) or not isinstance(each.type, click.Choice):
            continue
        names = [str(name) for name in each.type.choices]
        if each.metavar is None and len("|".join(names)) > _MOST_SIGNS:
            each.metavar = "NAME"
            each.help = f"{each.help} One of {', '.join(names)}."


class CommandGroup(click.Group):
    """A group whose commands are the modules of `jobs`, none imported before it is called.

    Every option of every command reads `GROUPSCOPE_<OPTION>`, whichever command it belongs to.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the command line as it was given: pages say how they are made again."""
        keep_command_line(ctx, args)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - the protocol's
        cmd_name: str,
    ) -> click.Command | None:
        """Return the command, importing its module; None where there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"...commands.{cmd_name}", __name__)
        # A command named like a builtin is a function with an underscore behind it.
        found = getattr(module, cmd_name, None) or getattr(module, f"{cmd_name}_")
        command = cast("click.Command", found)
        command.context_settings.setdefault("auto_envvar_prefix", ENVIRONMENT_PREFIX)
        _name_variables(command)
        _list_choices(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from their one-line texts, importing none."""
        rows = [(name, COMMANDS[name]) for name in self.list_commands(ctx)]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 - click's
    ) -> click.Context:
        """Return the context; `--help` and `--version` print here already."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except BrokenPipeError:
            forget_reader()
            raise click.exceptions.Exit(DONE) from None

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401
        """Run the command; that a reader has gone away is no error, and changes no exit code."""
        result: Any = DONE
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            forget_reader()
        return result


INTERRUPTION = "interrupted; no unfinished result was left behind"
STUCK = "interrupted while a store did not answer; what was unfinished is removed by the next run"
_HEARS_WITHIN, _ENDS_WITHIN, _BETWEEN_CALLS = 2.0, 15.0, 0.1
"""Seconds."""
_WAKES = signal.SIGURG
"""Ignored where nothing handles it, and used for nothing else."""
_REACHED = threading.Event()
"""Python has heard of the interruption, and cleans up."""
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

_TEMPORARY = "--out or the folder of temporary files (TMPDIR, spark.local.dir)"
_KILLED = "something killed it, often the system for want of memory"
_DAMAGED = "a file of the workspace is damaged: decode and replay the dump again"
_ADVICE: Mapping[str, str] = {
    os.strerror(errno.ENOSPC): f"make room for {_TEMPORARY}",
    os.strerror(errno.EDQUOT): f"make room for {_TEMPORARY}",
    os.strerror(errno.EROFS): f"{_TEMPORARY} cannot be written to",
    "CANNOT_READ_FILE_FOOTER": _DAMAGED,
    "FAILED_READ_FILE": _DAMAGED,
    "is not a Parquet file": _DAMAGED,
    "AWS Error NETWORK_CONNECTION": "a store could not be reached: is its name right, is it up?",
    "Java heap space": "give Spark more memory: --conf spark.driver.memory=4g",
    "GC overhead limit exceeded": "give Spark more memory: --conf spark.driver.memory=4g",
    **dict.fromkeys(
        (
            "Python worker exited unexpectedly",
            "Python worker failed to connect back",
            "EOFException occurred while reading the port number from pyspark.daemon",
        ),
        f"{_KILLED}; fewer workers need less: --master 'local[1]'",
    ),
    "ExecutorLostFailure": f"an executor was lost: {_KILLED}",
}
_LOST: Final = (
    "the connection to Spark was lost: its JVM ended before the work was done, often because the "
    "system had no memory left for it (--conf spark.driver.memory=2g takes less) or because "
    "someone stopped it"
)
_LOST_WORDS: Final = (
    "Answer from Java side is empty",
    "Error while sending or receiving",
    "Error while receiving",
    "An error occurred while trying to connect to the Java server",
    "SparkContext was shut down",
    "Cannot call methods on a stopped SparkContext",
)


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
    and __share_group_state. Needs no running cluster; snapshot takes a dump of one.
    """


def main() -> NoReturn:
    """Run the command line and end the process with its exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    # A shell's job in the background shall not hear of it.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupt)
    _watch_interruptions()
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
        _show_usage_error(error)
        return CALLED_WRONGLY
    except (GroupscopeError, UnknownColumnError) as error:
        return _report_error(str(error), _code_of(error))
    except (click.Abort, KeyboardInterrupt):
        return _report_error(INTERRUPTION, INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the last resort, and it keeps the traceback
        if _follows_an_interruption(error):
            return _report_error(INTERRUPTION, INTERRUPTED)
        return _report_error(_refusal(error) or keep_traceback(error, arguments), _code_of(error))
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
        case InputNotRecognizedError() | SettingRefusedError() | ClusterUnfitError():
            return CALLED_WRONGLY
        case OutputRefusedError() | UnknownColumnError():
            return CALLED_WRONGLY
        case GroupscopeError():
            return CANNOT_TELL
        case _ if _refusal(error):
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
    echo_message(message, "groupscope", "red", color=False if is_plain else None)
    return code


def _show_usage_error(error: click.ClickException) -> None:
    """Show what click does, in lines that fit the terminal."""
    shown = io.StringIO()
    error.show(shown)
    for each in shown.getvalue().splitlines():
        click.echo("\n".join(message_lines(each, message_width())), err=True)


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    _REACHED.set()
    raise KeyboardInterrupt


def _watch_interruptions() -> None:
    """End the process where a signal alone does not.

    A library that waits for a store hears of no SIGTERM: what a run staged is removed by the next
    one into the same folder; its manifest comes last. And since polars is loaded, which puts a
    handler of its own before Python's, SIGINT ends no wait of the main thread (SA_RESTART): another
    signal does, whose handler does nothing.
    """
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.signal(_WAKES, lambda *_: None)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    threading.Thread(target=_end_where_stuck, args=(heard,), daemon=True).start()


def _end_where_stuck(heard: int) -> None:
    while (number := os.read(heard, 1)[0]) != signal.SIGTERM:
        if number == signal.SIGINT:
            _wake_main_thread()
    if _REACHED.wait(_HEARS_WITHIN):
        time.sleep(_ENDS_WITHIN)
    if is_of_stores():
        _report_error(STUCK, INTERRUPTED)
        os._exit(INTERRUPTED)


def _wake_main_thread() -> None:
    # More than once: a wait that begins just now is not ended by what came before it. And not for
    # ever: where a library hears of nothing, SIGTERM is to be read.
    for _ in range(round(_HEARS_WITHIN / _BETWEEN_CALLS)):
        if _REACHED.wait(_BETWEEN_CALLS):
            return
        signal.pthread_kill(threading.main_thread().ident or 0, _WAKES)


def keep_traceback(error: Exception, arguments: Sequence[str]) -> str:
    """Write the traceback into a new temporary file; return the line that names it.

    The file holds the command line too, so names of groups and folders are in it: it is the
    person's to read before they send it.
    """
    # Imported here: no run that ends well needs them.
    import platform  # noqa: PLC0415
    import shlex  # noqa: PLC0415
    import tempfile  # noqa: PLC0415
    import traceback  # noqa: PLC0415

    with tempfile.NamedTemporaryFile(
        "w",
        prefix="groupscope-error-",
        suffix=".txt",
        delete=False,
        encoding="utf-8",
        # Bytes of the command line that are no UTF-8.
        errors="backslashreplace",
    ) as file:
        file.write(
            f"groupscope {VERSION}, Python {platform.python_version()}, {platform.platform()}\n"
        )
        file.write(f"groupscope {shlex.join(arguments)}\n\n")
        file.writelines(traceback.format_exception(error))
    words = str(error).splitlines()
    kind = type(error).__name__
    said = f"{kind}: {words[0]}" if words else kind
    return f"internal error, a bug in groupscope: {said[:300]} (traceback in {file.name})"


def _refusal(error: Exception) -> str | None:
    """Return the line, None where the error is none of the system's."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    words = str(error)
    for phrase, advice in _ADVICE.items():
        if phrase in words:
            return f"{phrase}: {advice}"
    if isinstance(error, OSError) and error.errno is None and is_of_stores():
        # Arrow's words: they name the store, the bucket and what it said.
        return words.partition("\n")[0]
    return _LOST if _is_of_lost_connection(error) else None


def _is_of_lost_connection(error: BaseException) -> bool:
    """Return whether Spark's JVM is gone; what is closed after that fails, too."""
    if "py4j" not in sys.modules:
        return False
    if isinstance(error, ConnectionRefusedError | ConnectionResetError):
        return True
    words = str(error)
    if any(phrase in words for phrase in _LOST_WORDS):
        return True
    before = error.__cause__ or error.__context__
    return before is not None and _is_of_lost_connection(before)


def check_one_root() -> None:
    """Check that the four top-level packages were found in one folder or archive.

    Nothing is imported.

    Raises:
        InstallationError: A package is missing, or two come from different places; names both.
    """
    roots = {package: _root(package) for package in PACKAGES}
    jobs = __name__.removesuffix(".cli.main")
    ours = roots[jobs]
    for package, root in roots.items():
        if root is None:
            raise InstallationError(
                f"the package `{package}` is missing beside `{jobs}` in {ours}: install again"
            )
        if root != ours:
            raise InstallationError(
                f"`{package}` comes from {root} and `{jobs}` from {ours}: another distribution"
                f" owns that name; give groupscope a virtual environment of its own"
            )


def _root(package: str) -> PurePath | None:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return PurePath(next(iter(spec.submodule_search_locations))).parent
