"""A page as HTML, text, Markdown and JSON: for a browser, a chat, a ticket and a dashboard.

Text and Markdown are written from one outline: headings, sentences, lists and tables, in order.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from reports.page.model import (
    Clause,
    Fact,
    Finding,
    Grid,
    Incident,
    Page,
    Rule,
    Story,
    Subject,
    TopicView,
)
from reports.plain_text import columns, paragraph, wrapped
from reports.row_formats import MARKUP

# HTML: one file, nothing is loaded, and nothing in it runs but its own script.

SIGNS: Final = {
    "critical": "\N{BLACK DIAMOND}",
    "warning": "\N{BLACK UP-POINTING TRIANGLE}",
    "info": "\N{WHITE CIRCLE}",
    "good": "\N{CHECK MARK}",
    "neutral": "\N{BULLET}",
}
"""What tells tones apart without colour."""

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_TEMPLATES: Final = "templates"
_SCRIPT: Final = "page.js"


def html_of(page: Page) -> str:
    """Return the file."""
    script = _script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return rendered("page.html.j2", page, f"{_POLICY}; script-src 'sha256-{digest}'", script)


def rendered(template: str, page: object, policy: str = _POLICY, script: str = "") -> str:
    """Return a page in one of the templates.

    Args:
        template: Its file.
        page: What it says.
        policy: What a browser may do with it.
        script: Our own, whose hash the policy has; never a text of a dump.
    """
    return _template(template).render(page=page, signs=SIGNS, policy=policy, script=script)


@cache
def _script() -> str:
    return files(__package__).joinpath(_TEMPLATES, _SCRIPT).read_text(encoding="utf-8")


@cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=PackageLoader(__package__, _TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # SVGs are our own, and their texts are escaped by who drew them.
    environment.filters["drawn"] = _drawn
    environment.filters["in_cell"] = _in_cell
    environment.filters["prose"] = _prose
    environment.filters["unbroken"] = _unbroken
    environment.filters["words"] = _words
    environment.globals["all_told"] = _ALL_TOLD
    return environment.get_template(name)


_SIGN: Final = r"(?:&[lg]t;= )?(?:~ )?"
_VALUES: Final = (
    rf"(?P<date>{_SIGN}\d{{4}}-\d\d-\d\dT)(?P<clock>\d\d:\d\d[\d:.]*Z?)"
    rf"|{_SIGN}\b\d+ (?:d|h|min|s|ms)\b(?: \d+ (?:h|min|s)\b)?"
    rf"|{_SIGN}\b\d[\d,.]* (?:[kMGTPE]i?)?B\b"
    r"|&[lg]t;= (?:~ )?\d[\d,.]*"
)
_UNBROKEN: Final = re.compile(_VALUES)
"""Times, lengths of time, sizes and bounds with their sign, in what is escaped: no line ends in
them."""
_UNBROKEN_IN_SENTENCE: Final = re.compile(rf"{_VALUES}|\b[\w.]{{1,30}}-\d{{1,10}}\b")
"""Likewise, and names that end in a number: `broker-1`, `__consumer_offsets-9`."""
_BLANKS: Final = re.compile(r"(\s+)")


def _unbroken(text: str) -> Markup:
    """Return a sentence in which no line ends within a time or behind the sign of a bound."""
    return _spanned(text, lambda match: f"{_SPAN}{match[0]}</span>", _UNBROKEN_IN_SENTENCE)


def _words(command: str) -> Markup:
    """Return a command of which a line ends between words alone, not at the hyphens of options."""
    parts = _BLANKS.split(str(escape(command)))
    spanned = (f'<span class="p">{each}</span>' if "-" in each else each for each in parts)
    # What is escaped has no brackets, as in `_spanned`.
    return Markup("".join(spanned))  # noqa: S704


def _prose(text: str) -> Markup:
    """Return our own words, in which backticks enclose a command, an option or a file."""
    parts = text.split("`")
    written = [_words(each) if at % 2 else _unbroken(each) for at, each in enumerate(parts)]
    written[1::2] = [Markup("<code>{}</code>").format(each) for each in written[1::2]]
    return Markup("").join(written)


def _in_cell(text: str) -> Markup:
    """Return the same of a cell: where it is narrow, a time may go on below its date."""

    def spanned(match: re.Match[str]) -> str:
        if match["date"] is None:
            return f"{_SPAN}{match[0]}</span>"
        return f"{_SPAN}{match['date']}<wbr>{match['clock']}</span>"

    return _spanned(text, spanned)


_SPAN: Final = '<span class="t">'


def _spanned(
    text: str, spanned: Callable[[re.Match[str]], str], of: re.Pattern[str] = _UNBROKEN
) -> Markup:
    # What is escaped has no brackets: what is put in has no text of a dump but what matched.
    return Markup(of.sub(spanned, str(escape(text))))  # noqa: S704


def _drawn(svg: Any) -> Markup:  # noqa: ANN401 - as jinja hands it over
    return Markup(svg)  # noqa: S704 - a drawing of `reports.charts`, never a text of a dump


_ALL_TOLD: Final = (
    "Nothing that was asked is left open: no record is known to be missing, and no question or "
    "rule found an answer that could not be given."
)

SCHEMA_VERSION: Final = 1
_MARKDOWN: Final = re.compile(rf"({MARKUP}|^[-+]|(?<=^\d)\.)")
_LONGEST: Final = 36
_literal = partial(_MARKDOWN.sub, r"\\\1")
"""Text that Markdown takes as it is."""

_MARKS = {"critical": "!!", "warning": "!"}
"""What stands for a severity where there is no colour."""


@dataclass(frozen=True)
class Heading:
    """A line above what follows; level 1 is the page's."""

    text: str
    level: int


@dataclass(frozen=True)
class Sentence:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """What can be typed."""

    text: str


_Block = Heading | Sentence | Items | Command | Grid


def text_of(page: Page, width: int) -> str:
    """Return lines for a terminal; a table that is wider than it loses its last columns."""
    return _joined(page, partial(_as_text, width=width))


def markdown_of(page: Page) -> str:
    """Return Markdown, in which no name can be more than a name."""
    return _joined(page, _as_markdown)


def json_of(page: Page) -> str:
    """Return one object: the model of the page without its drawings."""
    said = {"schema_version": SCHEMA_VERSION, **_plain(asdict(page))}
    return json.dumps(said, indent=1, ensure_ascii=False)


def _joined(page: Page, form: Callable[[_Block], str]) -> str:
    parts = (form(each) for each in _outline_of(page))
    return "\n\n".join(each for each in parts if each)


def _as_text(block: _Block, width: int) -> str:
    match block:
        case Heading(text=text, level=level):
            line = text.upper() if level == 2 else text
            return f"{line}\n{'=' * len(line)}" if level == 1 else line
        case Sentence(text=text):
            return "\n".join(wrapped(text, width))
        case Items(texts=texts):
            return "\n".join(line for each in texts for line in paragraph(each, width))
        case Command(text=text):
            return f"  $ {text}"
        case Grid():
            return "\n".join(_table(block, width))


def _table(grid: Grid, width: int) -> Iterator[str]:
    """Yield the lines of a table: as many columns as there is room for."""
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
    while shown < len(widths) and sum(widths[: shown + 1]) + 2 * shown <= width:
        shown += 1
    rows = [row[:shown] for row in cells]
    yield from columns(grid.heads[:shown], rows, width, "the page has all")
    if shown < len(widths):
        left_out = ", ".join(grid.heads[shown:])
        yield from wrapped(f"left out to fit {width} columns: {left_out}", width)
    if grid.more:
        yield f"({grid.more})"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"


def _as_markdown(block: _Block) -> str:
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


def _plain(value: Any) -> Any:  # noqa: ANN401 - of any type
    """Return a value without drawings and without what is empty."""
    if isinstance(value, dict):
        return {
            key: _plain(each)
            for key, each in value.items()
            if key not in ("svg", "broad") and each not in ("", None)
        }
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return sorted(value) if isinstance(value, frozenset) else value


def _outline_of(page: Page) -> Iterator[_Block]:
    """Yield what a page says, in the order in which it says it."""
    yield Heading(page.title, 1)
    yield Items(_facts(page.facts))
    yield Items(tuple(each.text for each in page.copies))
    yield Sentence(f"Coverage: {page.coverage.word} ({page.coverage.says})")
    yield Heading("Verdict", 2)
    yield Sentence(page.answer)
    yield Sentence(", ".join(each.text for each in page.counts))
    for incident in page.verdict:
        yield from _incident(incident)
    yield Sentence(page.more_incidents)
    yield Sentence(page.checked)
    yield Heading("Findings", 2)
    for each in page.rules:
        yield from _rule(each)
    if page.gone:
        yield Heading("Gone since the earlier audit", 3)
        yield Items(tuple(each.text for each in page.gone))
    yield Heading("What this dump cannot tell", 2)
    yield Items(tuple(f"{each.text}. {each.advice}".rstrip() for each in page.cannot_tell))
    yield Sentence("" if page.cannot_tell else _ALL_TOLD)
    for each in page.cannot_tell_rules:
        yield from _rule(each)
    yield Heading("Groups", 2)
    yield Items(_facts(page.group_counts))
    yield _undrawn(page.groups)
    for subject in page.subjects:
        yield from _subject(subject)
    if page.topics:
        yield Heading("Topic by topic", 2)
    for view in page.topics:
        yield from _topic(view)
    yield Sentence(page.more_topics)
    if page.stories:
        yield Heading("Group by group", 2)
    for story in page.stories:
        yield from _story(story)
    yield from _foot(page)


def _undrawn(grid: Grid) -> Grid:
    """Return a table without the columns that are drawn."""
    drawn = {n for row in grid.rows for n, each in enumerate(row) if each.svg}
    kept = [n for n, _ in enumerate(grid.heads) if n not in drawn]
    return replace(
        grid,
        heads=tuple(grid.heads[n] for n in kept),
        rows=tuple(tuple(row[n] for n in kept) for row in grid.rows),
        numbers=frozenset(place for place, n in enumerate(kept) if n in grid.numbers),
    )


def _facts(facts: Iterable[Fact]) -> tuple[str, ...]:
    return tuple(f"{each.name}: {each.value.text}" for each in facts)


def _marked(clause: Clause) -> str:
    return f"{_MARKS.get(clause.severity, '')} {clause.text}".strip()


def _incident(incident: Incident) -> Iterator[_Block]:
    since = f" (since {incident.since})" if incident.since else ""
    mark = _MARKS.get(incident.severity, "")
    parts = ", ".join(each.text for each in incident.parts)
    yield Items((f"{mark} {incident.text}{since}{f': {parts}' if parts else ''}".strip(),))
    if incident.command:
        yield Command(incident.command)
    if incident.serves:
        yield Sentence(f"({incident.serves})")


def _rule(rule: Rule) -> Iterator[_Block]:
    yield Heading(f"{rule.question} ({rule.severity}, {rule.count:,})", 3)
    if rule.why:
        yield Sentence(rule.why)
    yield Items(tuple(map(_finding, rule.shown)))
    commands = dict.fromkeys(each.suggestion for each in rule.shown if each.suggestion)
    for each in list(commands)[:3]:
        yield Command(each)
    if rule.more:
        yield Sentence(f"{rule.more:,} more in findings.jsonl")


def _finding(finding: Finding) -> str:
    since = f" (since {finding.since})" if finding.since else ""
    change = f"[{finding.change}] " if finding.change else ""
    return f"{change}{finding.message}{since}"


def _subject(subject: Subject) -> Iterator[_Block]:
    yield Heading(subject.title, 2)
    yield Sentence(subject.question)
    for note in subject.notes:
        yield Sentence(note)
    yield Items(tuple(f"{each.title}: {each.says}" for each in subject.figures))
    yield from subject.grids


def _story(story: Story) -> Iterator[_Block]:
    yield Heading(story.group.text, 3)
    yield Items(_facts(story.facts))
    yield Items(tuple(map(_marked, story.findings)))
    yield from story.grids


def _topic(view: TopicView) -> Iterator[_Block]:
    yield Heading(view.topic.text, 3)
    yield Items(_facts(view.facts))
    yield Items(tuple(map(_marked, view.findings)))
    for note in view.notes:
        yield Sentence(note)
    yield Items(tuple(f"{each.title}: {each.says}" for each in view.figures))
    yield from view.grids


def _foot(page: Page) -> Iterator[_Block]:
    yield Heading("How it was made", 2)
    yield Sentence(f"Ended with exit code {page.foot.exit_code}: {page.foot.exit_reason}.")
    yield Command(page.foot.command)
    yield Items(_facts(page.foot.sources))
    if page.foot.suppressions:
        yield page.foot.suppressions
    yield page.foot.rules
