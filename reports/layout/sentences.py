"""Sentences beside tables, in lines that fit the page; or in place of a table without rows."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

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


def nothing(sentence: str, said: Mapping[str, Any]) -> str:
    """Return what to say in place of rows.

    Args:
        sentence: That there is nothing.
        said: What the answer says besides: `cannot_tell` has reasons for which there may be
            something all the same.
    """
    reasons = said.get("cannot_tell") or ()
    if not reasons:
        return sentence
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return paragraphs([f"Cannot tell: {reasons[0]}{more}"])
