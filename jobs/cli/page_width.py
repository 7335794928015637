"""How wide lines are: those of answers, and those of what is said beside them."""

from __future__ import annotations

import os
import sys
from typing import Final, TextIO

from reports.plain_text import WIDTH

_NARROWEST: Final = 40
"""So many columns a page has at least: in fewer no row can be read."""


def page_width(output: str | None) -> int:
    """Return how many columns a line of an answer has.

    Those of the terminal, or as many as the environment variable `COLUMNS` says; 120 where neither
    is known, and in a file.

    Args:
        output: The file that the answer goes into; None is stdout.
    """
    return (_columns_of(sys.stdout) if output is None else None) or WIDTH


def message_width() -> int | None:
    """Return how many columns a line of a message on stderr has.

    Those of the terminal, or as many as the environment variable `COLUMNS` says; None where
    neither is known: in a log each message is a line, which programs look for.
    """
    return _columns_of(sys.stderr)


def _columns_of(stream: TextIO) -> int | None:
    asked_for = os.environ.get("COLUMNS", "")
    if asked_for.isdecimal() and int(asked_for) > 0:
        return max(int(asked_for), _NARROWEST)
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        # A pipe, a file, or what stands in for the stream.
        return None
    return max(columns, _NARROWEST) if columns else None
