"""What a page says, before it is HTML, text, Markdown or JSON: plain values, no tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """One value.

    Attributes:
        text: As shown: harmless, shortened.
        whole: The same, whole; empty where it is not shortened.
        href: What it leads to on the page, such as `#group-1f0a`.
        tone: critical, warning, info, good, or nothing: shown by a sign beside the colour.
        svg: A drawing in place of the text.
    """

    text: str
    whole: str = ""
    href: str = ""
    tone: str = ""
    svg: str = ""


@dataclass(frozen=True)
class Grid:
    """A table.

    Attributes:
        anchor: Its id.
        caption: What it shows, and of which table of the workspace it is.
        heads: Of its columns; the first one names the row.
        rows: As many cells each.
        numbers: Which columns are numbers.
        sentences: Which columns have text that goes on in the next line.
        more: How much is not shown, and where it is; empty where all is.
    """

    anchor: str
    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numbers: frozenset[int] = frozenset()
    sentences: frozenset[int] = frozenset()
    more: str = ""


@dataclass(frozen=True)
class Figure:
    """A chart.

    Attributes:
        anchor: Its id.
        title: What it shows.
        says: The same in words, for who does not see it.
        svg: The drawing; without it nothing is shown.
        broad: The same for a broad window, where that is another one: the stylesheet shows one.
    """

    anchor: str
    title: str
    says: str
    svg: str
    broad: str = ""


@dataclass(frozen=True)
class Record:
    """A record that shows a finding: where it is, and how Kafka's own tool prints it."""

    place: str
    where: str
    command: str


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        anchor: Its id on the page.
        finding_id: Its stable id.
        message: What was found.
        whole: The same, whole; empty where it is not shortened.
        since: When it began, or nothing.
        change: new or still there, where two audits are compared.
        suggestion: What to do.
        href: The story of its group.
        records: What shows it.
    """

    anchor: str
    finding_id: str
    message: str
    whole: str = ""
    since: str = ""
    change: str = ""
    suggestion: str = ""
    href: str = ""
    records: tuple[Record, ...] = ()


@dataclass(frozen=True)
class Rule:
    """Findings of one rule.

    Attributes:
        anchor: Its id on the page.
        name: The rule.
        severity: critical, warning or info.
        question: What it asks.
        why: What its findings mean, and what mends them.
        headline: What its findings come to.
        count: How many there are.
        shown: Those of them that are shown.
    """

    anchor: str
    name: str
    severity: str
    question: str
    headline: str
    count: int
    shown: tuple[Finding, ...]
    why: str = ""

    @property
    def more(self) -> int:
        """How many are not shown."""
        return self.count - len(self.shown)


@dataclass(frozen=True)
class Clause:
    """A part of a verdict or a story, and what it leads to."""

    text: str
    href: str
    severity: str


@dataclass(frozen=True)
class Incident:
    """Findings that share a cause, or those of one rule: a line of the verdict.

    Attributes:
        text: What happened.
        href: Its findings.
        severity: critical or warning.
        since: When it began, or nothing.
        command: What to do first, as a shell takes it; or nothing.
        serves: Of how many of its findings that is so; nothing where it is of all.
        parts: By rule what was found; nothing where there is one rule that says no more.
    """

    text: str
    href: str
    severity: str
    since: str = ""
    command: str = ""
    serves: str = ""
    parts: tuple[Clause, ...] = ()


@dataclass(frozen=True)
class Fact:
    """Something known of the whole: a name and its value."""

    name: str
    value: Cell


@dataclass(frozen=True)
class Reason:
    """What cannot be told, and what to copy next time."""

    text: str
    advice: str = ""
    href: str = ""


@dataclass(frozen=True)
class Subject:
    """One subject of an audit: at most two charts and one table.

    Attributes:
        anchor: Its id.
        title: Its name.
        question: What it answers.
        notes: What to know of it.
        figures: Charts.
        grids: Tables.
    """

    anchor: str
    title: str
    question: str
    notes: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    grids: tuple[Grid, ...] = ()


@dataclass(frozen=True)
class Story:
    """What happened to one group with a finding."""

    anchor: str
    group: Cell
    severity: str
    facts: tuple[Fact, ...]
    findings: tuple[Clause, ...]
    figures: tuple[Figure, ...] = ()
    grids: tuple[Grid, ...] = ()


@dataclass(frozen=True)
class TopicView:
    """What is known of one topic: readers, lag, growth, retention, findings.

    Attributes:
        anchor: Its id.
        topic: Its name.
        severity: Of its worst finding; neutral where it has none.
        facts: How many read it, how far behind they are, what it holds and keeps.
        findings: What was found about it, and what each leads to.
        notes: What is not shown.
        figures: How far commits came.
        grids: Groups that read it; partitions with the largest lags.
    """

    anchor: str
    topic: Cell
    severity: str
    facts: tuple[Fact, ...]
    findings: tuple[Clause, ...] = ()
    notes: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    grids: tuple[Grid, ...] = ()


@dataclass(frozen=True)
class Coverage:
    """How much of the truth the dump holds: a badge, and why."""

    word: str
    tone: str
    says: str


@dataclass(frozen=True)
class Foot:
    """How the numbers were made, and how to make them again."""

    command: str
    exit_code: int
    exit_reason: str
    sources: tuple[Fact, ...]
    rules: Grid
    suppressions: Grid | None = None


@dataclass(frozen=True)
class Page:
    """The whole page."""

    title: str
    facts: tuple[Fact, ...]
    copies: tuple[Cell, ...]
    coverage: Coverage
    counts: tuple[Cell, ...]
    answer: str
    verdict: tuple[Incident, ...]
    more_incidents: str
    checked: str
    rules: tuple[Rule, ...]
    gone: tuple[Cell, ...]
    cannot_tell: tuple[Reason, ...]
    cannot_tell_rules: tuple[Rule, ...]
    groups: Grid
    group_counts: tuple[Fact, ...]
    foot: Foot
    subjects: Sequence[Subject] = field(default=())
    topics: Sequence[TopicView] = field(default=())
    more_topics: str = ""
    stories: Sequence[Story] = field(default=())
