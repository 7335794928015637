"""A question as one thing: what it reads, what may be set, what answers it, and the answer.

Whoever asks (a command, an audit, a notebook) needs nothing else: `Question.ask` on a replayed
workspace gives an `Answer`. The questions there are stand in `analytics.questions.question`.

The questions there are, by name; each is imported when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar, cast

import pyarrow as pa

from analytics.contracts import check_columns, check_values
from analytics.errors import SettingRefusedError
from analytics.gaps.gap import Gap, check_gaps, words_of
from analytics.tables.parted_table import PartedTable, parted
from analytics.tables.stored_tables import StoredTables
from schemas.names import did_you_mean

if TYPE_CHECKING:
    from analytics.gaps.group_selection import GroupSelection
    from analytics.replayed.replayed_workspace import ReplayedWorkspace


P = ParamSpec("P")
S = TypeVar("S")


def check_choice(setting: str, value: str, choices: Iterable[str]) -> None:
    """Check that a setting is one of the words that it may be.

    Raises:
        SettingRefusedError: It is none of them.
    """
    words = tuple(choices)
    if value not in words:
        raise SettingRefusedError(f"{setting} is {value!r}: {did_you_mean(value, words, 'it is')}")


@dataclass(frozen=True)
class Answer:
    """Tables, the limits of what they say, and what to know when reading them.

    Attributes:
        tables: By name, with the columns of their contracts (`schemas/tables/`).
        groups: The groups that were asked about; None where a question is not about groups.
        doubts: What single rows cannot tell.
        warnings: What may change how the tables are read, one sentence each.
        statements: By which rules and settings the question was answered, one sentence each.
        summary: What programs are told beside the tables, as JSON has it.
        figures: What sums up the rows for whoever shows them; no contract.
        stored_tables: The tables as a workspace keeps them, where those are of more than what was
            asked.
        rows_cannot_tell: Whether rows of the tables say themselves what cannot be told, and why.
    """

    tables: Mapping[str, pa.Table]
    groups: GroupSelection | None = None
    doubts: tuple[Gap, ...] = ()
    warnings: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)
    stored_tables: Mapping[str, pa.Table] | None = None
    rows_cannot_tell: bool = False

    def __post_init__(self) -> None:
        """Refuse what is no gap.

        Raises:
            TypeError: What cannot be told is a sentence.
        """
        check_gaps(self.doubts)

    def rows(self, name: str) -> PartedTable:
        """Return a table whose rows may be too many to be held."""
        return parted(self.tables, name)

    @property
    def long_tables(self) -> dict[str, PartedTable]:
        """All tables by name, as what can be read in pieces."""
        return {name: self.rows(name) for name in self.tables}

    @property
    def tables_to_keep(self) -> Mapping[str, pa.Table]:
        """The tables as a workspace keeps them: other groups may be asked about later."""
        return self.tables if self.stored_tables is None else self.stored_tables

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What the dump does not hold the answer to, each once."""
        of_groups = () if self.groups is None else self.groups.gaps
        return tuple(dict.fromkeys((*of_groups, *self.doubts)))

    @property
    def cannot_tell(self) -> tuple[str, ...]:
        """The same in words, one sentence each."""
        return words_of(self.gaps)


@dataclass(frozen=True)
class Question(Generic[P, S]):
    """One thing that can be asked of a replayed workspace.

    Attributes:
        name: Of the command, and of the method of a notebook's state.
        needs: The state and history tables that it reads, whatever is set.
        tables: The tables that it may answer with (`schemas/tables/`).
        settings: The type of its settings, a frozen dataclass whose fields all have defaults.
        answer: Answers it. Takes the workspace and the settings.
        needs_besides: The tables that it reads besides, by what is set.
        of_all_groups: It is asked of all groups and topics, whichever were chosen: what it adds up
            comes out even of all only.
        is_audited: An audit asks it, too.
    """

    name: str
    needs: tuple[str, ...]
    tables: tuple[str, ...]
    settings: Callable[P, S]
    answer: Callable[[ReplayedWorkspace, S], Answer]
    needs_besides: Callable[[S], tuple[str, ...]] | None = None
    of_all_groups: bool = False
    is_audited: bool = True

    def needs_of(self, settings: S) -> tuple[str, ...]:
        """Return the names of the state and history tables that an answer is made of."""
        besides = () if self.needs_besides is None else self.needs_besides(settings)
        return (*self.needs, *besides)

    @property
    def setting_names(self) -> tuple[str, ...]:
        """The names of what may be set."""
        return tuple(each.name for each in fields(cast("Any", self.settings)))

    def settings_from(self, values: Mapping[str, Any]) -> S:
        """Return settings from those that several questions are given together.

        Args:
            values: By name; those that the question does not have are left out.
        """
        chosen = {name: value for name, value in values.items() if name in self.setting_names}
        return cast("Callable[..., S]", self.settings)(**chosen)

    def ask(self, state: ReplayedWorkspace, settings: S) -> Answer:
        """Answer the question.

        Args:
            state: A replayed workspace with the tables of `needs_of`.
            settings: What is asked exactly.

        Raises:
            GroupscopeError: A side file is not what it has to be, a table cannot be read, or the
                dump does not hold the answer.
            SchemaError: A table does not have the columns of its contract, or a value is none of
                its column's.
        """
        if self.of_all_groups:
            state = replace(state, tables=StoredTables(state.tables.workspace))
        answer = self.answer(state, settings)
        for name in answer.tables:
            if name not in self.tables:
                raise KeyError(f"{self.name} answers with {name}, which it does not declare")
            rows = answer.rows(name)
            check_columns(name, rows.column_names)
            # What is in files was held against its contract where these were written.
            for part in rows.parts:
                if isinstance(part, pa.Table):
                    check_values(name, part)
        return answer


QUESTIONS: Final[Mapping[str, str]] = {
    "describe": "DESCRIBE",
    "timeline": "TIMELINE",
    "diff": "DIFF",
    "restore": "RESTORE",
    "forensics": "FORENSICS",
    "list": "LIST",
    "expiration": "EXPIRATION",
    "balance": "BALANCE",
    "rebalances": "REBALANCES",
    "lag": "LAG",
    "share": "SHARE",
    "usage": "USAGE",
    "cluster": "CLUSTER",
    "region": "REGION",
    "data_quality": "DATA_QUALITY",
}
"""The name of each question's package, and of the `Question` in its module `question`."""

_PACKAGES: Final[Mapping[str, str]] = {"list": ".describe", "region": "..seeds.region"}
"""Packages that do not have the name of the question, seen from here.

Kafka's tools list and describe the same groups; what is about designs of no release lies elsewhere.
"""


class UnknownQuestionError(KeyError):
    """There is no question of that name."""

    def __str__(self) -> str:
        return str(self.args[0])


def question(name: str) -> Question[Any, Any]:
    """Return a question.

    Raises:
        UnknownQuestionError: There is none of that name.
    """
    if name not in QUESTIONS:
        hint = did_you_mean(name, QUESTIONS, "there are")
        raise UnknownQuestionError(f"there is no question {name!r}: {hint}")
    module = import_module(f"{_PACKAGES.get(name, f'.{name}')}.question", __package__)
    found: Question[Any, Any] = getattr(module, QUESTIONS[name])
    return found


def audited_questions() -> Iterator[Question[Any, Any]]:
    """Yield the questions that an audit asks, in the order in which one may rest on another."""
    yield from (found for name in QUESTIONS if (found := question(name)).is_audited)
