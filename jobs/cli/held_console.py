"""What is to be told while names are still in it: held until they can be taken out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from jobs.cli.console import Console


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
