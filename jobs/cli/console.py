"""What a person is told while a command works: on stderr, as loud as they asked for.

stdout carries results only and is never written here. On a terminal messages keep to its width.
What has names in it is held until they can be taken out.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import click

from analytics.errors import OutputRefusedError
from jobs.cli.page_width import message_width
from jobs.cli.written_text import write_pieces
from reports.plain_text import message_lines, printable


@dataclass
class Console:
    """How much goes to stderr.

    Attributes:
        quiet: Only errors.
        verbose: Also what was recognised, what was assumed, and Spark's own words.
        progress: Progress is to be shown; it is only on a terminal.
        output: Where the answer goes; None is stdout.
    """

    quiet: bool = False
    verbose: bool = False
    progress: bool = True
    output: str | None = None

    def say(self, message: str) -> None:
        """Tell something worth knowing."""
        if not self.quiet:
            echo_message(message)

    def say_at_end(self, message: str) -> None:
        """Tell something once the command has printed its answer."""
        context = click.get_current_context(silent=True)
        if context is None:
            self.say(message)
        else:
            context.call_on_close(lambda: self.say(message))

    def detail(self, message: str) -> None:
        """Tell something worth knowing to who wants to know more."""
        if self.verbose and not self.quiet:
            echo_message(message)

    def warn(self, message: str) -> None:
        """Tell something that may change how the result is read."""
        if not self.quiet:
            echo_message(message, "warning", "yellow")

    def error(self, message: str) -> None:
        """Tell what could not be done, however quiet the run is."""
        echo_message(message, "groupscope", "red")

    @property
    def draws_progress(self) -> bool:
        """Whether progress may be shown: it is wanted, and stderr is a terminal."""
        return self.progress and not self.quiet and sys.stderr.isatty()


def echo_message(
    message: str, prefix: str | None = None, tone: str | None = None, *, color: bool | None = None
) -> None:
    """Write a message to stderr, in lines that fit the terminal.

    Args:
        message: One sentence, which may hold what no terminal should be given.
        prefix: What stands before it, and a colon.
        tone: The prefix's color.
        color: Whether there are colors; None where click is to tell.
    """
    text = printable(message)
    first, *rest = message_lines(text if prefix is None else f"{prefix}: {text}", message_width())
    if prefix is not None:
        first = f"{click.style(prefix, fg=tone)}{first.removeprefix(prefix)}"
    click.echo("\n".join([first, *rest]), err=True, color=color)


pass_console = click.make_pass_decorator(Console, ensure=True)
"""Hands the Console of this run to a command as its first argument."""


def print_text(text: str | Iterable[str]) -> None:
    """Print an answer, piece by piece: its text may be larger than memory.

    It goes to stdout, or whole into the file of `--output`: as it would into a pipe. Where the
    reader of stdout has seen enough (`| head`), the rest goes nowhere, and the command goes on.

    Raises:
        OutputRefusedError: The file cannot be written.
        ReadFailedError: The store that it is to be in cannot be reached.
    """
    pieces = _ended([text] if isinstance(text, str) else text)
    context = click.get_current_context(silent=True)
    output = None if context is None else context.ensure_object(Console).output
    if output is None:
        for piece in pieces:
            try:
                click.echo(piece, nl=False)
            except BrokenPipeError:
                forget_reader()
                break
        return
    try:
        write_pieces(output, map(click.unstyle, pieces))
    except OSError as error:
        raise OutputRefusedError(
            f"{output} cannot be written: {error.strerror or error}"
        ) from error


def forget_reader() -> None:
    """Let nothing more reach stdout, whose reader has gone away: what Python holds for it, too."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _ended(pieces: Iterable[str]) -> Iterator[str]:
    """Yield pieces, and the end of the last line where there is any."""
    is_empty = True
    for piece in pieces:
        yield piece
        is_empty &= not piece
    if not is_empty:
        yield "\n"


# The command line of this run, as a shell takes it.

ENVIRONMENT_PREFIX: Final = "GROUPSCOPE"
"""What the names of environment variables begin with that options are read from."""
UNSHOWN: Final = frozenset({"--conf", "--on-findings"})
"""Options that change no page, and whose values may hold secrets: keys of stores, addresses."""
_ARGUMENTS: Final = "groupscope.arguments"


def keep_command_line(ctx: click.Context, arguments: Sequence[str]) -> None:
    """Keep the arguments of a run for `command_line`."""
    ctx.meta[_ARGUMENTS] = tuple(arguments)


def arguments_of(ctx: click.Context) -> tuple[str, ...]:
    """Return the arguments of a run, none where it was not called by way of `groupscope`."""
    kept: tuple[str, ...] = ctx.meta.get(_ARGUMENTS, ())
    return kept


def command_line() -> str:
    """Return the command of this run, with the variables that its options are read from before it.

    It stands on pages that others are shown: `UNSHOWN` options are left out.

    Raises:
        RuntimeError: No command runs.
        KeyError: It was not called by way of `groupscope`.
    """
    ctx = click.get_current_context()
    variables = {
        str(each.envvar)
        for each in ctx.command.params
        if isinstance(each, click.Option)
        and each.envvar is not None
        and not UNSHOWN.intersection(each.opts)
    }
    given = [
        f"{name}={shlex.quote(os.environ[name])}"
        for name in sorted(variables)
        if os.environ.get(name)
    ]
    return " ".join([*given, "groupscope", shlex.join(_without_secrets(ctx.meta[_ARGUMENTS]))])


def _without_secrets(arguments: Sequence[str]) -> Iterator[str]:
    """Yield arguments without `UNSHOWN` options and their values."""
    rest = iter(arguments)
    for each in rest:
        if each in UNSHOWN:
            next(rest, None)
        elif each.partition("=")[0] not in UNSHOWN:
            yield each


@dataclass
class HeldConsole(Console):
    """Keeps messages.

    Attributes:
        held: How each is to be told, and the message.
    """

    held: list[tuple[str, str]] = field(default_factory=list)

    def say(self, message: str) -> None:
        """Keep something worth knowing."""
        if not self.quiet:
            self.held.append(("say", message))

    def say_at_end(self, message: str) -> None:
        """Keep it, too."""
        self.say(message)

    def detail(self, message: str) -> None:
        """Keep something for who wants to know more."""
        if not self.quiet:
            self.held.append(("detail", message))

    def warn(self, message: str) -> None:
        """Keep what may change how the result is read."""
        if not self.quiet:
            self.held.append(("warn", message))

    def error(self, message: str) -> None:
        """Keep what could not be done."""
        self.held.append(("error", message))

    def release(self, console: Console, change: Callable[[str], str]) -> None:
        """Tell all of it.

        Args:
            console: Where.
            change: What takes the names out.
        """
        for how, message in self.held:
            getattr(console, how)(change(message))
        self.held.clear()
