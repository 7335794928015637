"""A page as text, Markdown and JSON: for a chat, a ticket and a dashboard."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from reports.columns import WIDTH, columns, paragraph, wrapped
from reports.markup import MARKUP
from reports.page.model import Grid, Page
from reports.page.outline import Block, Command, Heading, Items, Sentence, outline_of

SCHEMA_VERSION: Final = 1
_MARKDOWN: Final = re.compile(rf"({MARKUP}|^[-+]|(?<=^\d)\.)")
_LONGEST: Final = 36


def text_of(page: Page) -> str:
    """Return lines for a terminal; a table that is wider than a page loses its last columns."""
    return _joined(page, _as_text)


def markdown_of(page: Page) -> str:
    """Return Markdown, in which no name can be more than a name."""
    return _joined(page, _as_markdown)


def json_of(page: Page) -> str:
    """Return one object: the model of the page without its drawings."""
    said = {"schema_version": SCHEMA_VERSION, **_plain(asdict(page))}
    return json.dumps(said, indent=1, ensure_ascii=False)


def _joined(page: Page, form: Callable[[Block], str]) -> str:
    parts = (form(each) for each in outline_of(page))
    return "\n\n".join(each for each in parts if each)


def _as_text(block: Block) -> str:
    match block:
        case Heading(text=text, level=level):
            line = text.upper() if level == 2 else text
            return f"{line}\n{'=' * len(line)}" if level == 1 else line
        case Sentence(text=text):
            return "\n".join(wrapped(text, WIDTH))
        case Items(texts=texts):
            return "\n".join(line for each in texts for line in paragraph(each))
        case Command(text=text):
            return f"  $ {text}"
        case Grid():
            return "\n".join(_table(block))


def _table(grid: Grid) -> Iterator[str]:
    """Yield the lines of a table: as many columns as a page has room for."""
    yield grid.caption
    if not grid.rows:
        yield "(nothing)"
        return
    cells = [[_short(each.text) for each in row] for row in grid.rows]
    widths = [
        max(len(text) for text in (head, *(row[place] for row in cells)))
        for place, head in enumerate(grid.heads)
    ]
    shown = 1
    while shown < len(widths) and sum(widths[: shown + 1]) + 2 * shown <= WIDTH:
        shown += 1
    yield from columns(grid.heads[:shown], [row[:shown] for row in cells])
    if shown < len(widths):
        left_out = ", ".join(grid.heads[shown:])
        yield from wrapped(f"left out to fit {WIDTH} columns: {left_out}", WIDTH)
    if grid.more:
        yield f"({grid.more})"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"


def _as_markdown(block: Block) -> str:
    match block:
        case Heading(text=text, level=level):
            return f"{'#' * level} {_literal(text)}"
        case Sentence(text=text):
            return _literal(text)
        case Items(texts=texts):
            return "\n".join(f"- {_literal(each)}" for each in texts)
        case Command(text=text):
            # A fence longer than any run of backticks within.
            fence = "`" * max(3, *(len(each) + 1 for each in re.findall("`+", text) or [""]))
            return f"{fence}\n{text}\n{fence}"
        case Grid():
            return _markdown_table(block)


def _markdown_table(grid: Grid) -> str:
    if not grid.rows:
        return ""
    rule = [" ---: " if n in grid.numbers else " --- " for n, _ in enumerate(grid.heads)]
    lines = [_line(grid.heads), f"|{'|'.join(rule)}|"]
    lines += [_line([each.text for each in row]) for row in grid.rows]
    more = f"\n\n{_literal(grid.more)}" if grid.more else ""
    return f"**{_literal(grid.caption)}**\n\n" + "\n".join(lines) + more


def _line(texts: Any) -> str:  # noqa: ANN401 - any sequence of texts
    return f"| {' | '.join(map(_literal, texts))} |"


_literal = partial(_MARKDOWN.sub, r"\\\1")
"""Text that Markdown takes as it is."""


def _plain(value: Any) -> Any:  # noqa: ANN401 - of any type
    """Return a value without drawings and without what is empty."""
    if isinstance(value, dict):
        return {
            key: _plain(each)
            for key, each in value.items()
            if key != "svg" and each not in ("", None)
        }
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return sorted(value) if isinstance(value, frozenset) else value
