"""Sentences beside tables, in lines that fit the page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from reports.columns import WIDTH, printable


def paragraphs(sentences: Iterable[str]) -> str:
    """Return sentences one below the other; what is longer than a line goes on indented.

    A name in them can do nothing to a terminal.
    """
    return "\n".join(
        textwrap.fill(
            printable(each.replace("\n", " ")),
            WIDTH,
            subsequent_indent="  ",
            break_on_hyphens=False,
            break_long_words=False,
        )
        for each in sentences
    )
