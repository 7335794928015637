"""What a person is told while a command works: on stderr, as loud as they asked for.

stdout carries results only and is never written here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

import click

from reports.columns import printable


@dataclass
class Console:
    """How much goes to stderr.

    Attributes:
        quiet: Only errors.
        verbose: Also what was recognised, what was assumed, and Spark's own words.
        progress: Progress is to be shown; it is only on a terminal.
    """

    quiet: bool = False
    verbose: bool = False
    progress: bool = True
    _printed_once: set[str] = field(default_factory=set)

    def say(self, message: str) -> None:
        """Tell something worth knowing."""
        if not self.quiet:
            click.echo(printable(message), err=True)

    def say_once(self, what: str, message: str) -> None:
        """Tell something that steps of a run have in common, of the first of them."""
        if what not in self._printed_once:
            self._printed_once.add(what)
            self.say(message)

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
            click.echo(printable(message), err=True)

    def warn(self, message: str) -> None:
        """Tell something that may change how the result is read."""
        if not self.quiet:
            click.echo(f"{click.style('warning', fg='yellow')}: {printable(message)}", err=True)

    def error(self, message: str) -> None:
        """Tell what could not be done, however quiet the run is."""
        click.echo(f"{click.style('groupscope', fg='red')}: {printable(message)}", err=True)

    @property
    def draws_progress(self) -> bool:
        """Whether progress may be shown: it is wanted, and stderr is a terminal."""
        return self.progress and not self.quiet and sys.stderr.isatty()


def print_text(text: str | Iterable[str]) -> None:
    """Print an answer on stdout, piece by piece: its text may be larger than memory."""
    pieces = iter([text] if isinstance(text, str) else text)
    is_empty = True
    for piece in pieces:
        click.echo(piece, nl=False)
        is_empty &= not piece
    if not is_empty:
        click.echo()


pass_console = click.make_pass_decorator(Console, ensure=True)
"""Hands the Console of this run to a command as its first argument."""
