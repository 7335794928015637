"""A page without a form: headings, sentences, lists and tables, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from reports.page.model import Clause, Fact, Finding, Grid, Page, Rule, Story, Subject

MARKS = {"critical": "!!", "warning": "!"}
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


Block = Heading | Sentence | Items | Command | Grid


def outline_of(page: Page) -> Iterator[Block]:
    """Yield what a page says, in the order in which it says it."""
    yield Heading(page.title, 1)
    yield Items(_facts(page.facts))
    yield Items(tuple(each.text for each in page.copies))
    yield Sentence(f"Coverage: {page.coverage.word} ({page.coverage.says})")
    yield Heading("Verdict", 2)
    yield Sentence(", ".join(each.text for each in page.counts))
    yield Items(tuple(map(_marked, page.verdict)))
    yield Sentence(page.checked)
    yield Heading("Findings", 2)
    for each in page.rules:
        yield from _rule(each)
    if page.gone:
        yield Heading("Gone since the earlier audit", 3)
        yield Items(tuple(each.text for each in page.gone))
    yield Heading("What this dump cannot tell", 2)
    yield Items(tuple(f"{each.text}. {each.advice}".rstrip() for each in page.cannot_tell))
    for each in page.cannot_tell_rules:
        yield from _rule(each)
    yield Heading("Groups", 2)
    yield Items(_facts(page.group_counts))
    yield _undrawn(page.groups)
    for subject in page.subjects:
        yield from _subject(subject)
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
    return f"{MARKS.get(clause.severity, '')} {clause.text}".strip()


def _rule(rule: Rule) -> Iterator[Block]:
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


def _subject(subject: Subject) -> Iterator[Block]:
    yield Heading(subject.title, 2)
    yield Sentence(subject.question)
    for note in subject.notes:
        yield Sentence(note)
    yield Items(tuple(f"{each.title}: {each.says}" for each in subject.figures))
    yield from subject.grids


def _story(story: Story) -> Iterator[Block]:
    yield Heading(story.group.text, 3)
    yield Items(_facts(story.facts))
    yield Items(tuple(map(_marked, story.findings)))
    yield from story.grids


def _foot(page: Page) -> Iterator[Block]:
    yield Heading("How it was made", 2)
    yield Sentence(f"Ended with exit code {page.foot.exit_code}: {page.foot.exit_reason}.")
    yield Command(page.foot.command)
    yield Items(_facts(page.foot.sources))
    if page.foot.suppressions:
        yield page.foot.suppressions
    yield page.foot.rules
