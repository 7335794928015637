"""The questions there are, by name; each is imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from schemas.names import did_you_mean

if TYPE_CHECKING:
    from analytics.questions.question import Question

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
