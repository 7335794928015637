"""A question, its settings, its tables and the command that asks it fit together."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

import click
import pytest

from analytics import State
from analytics.questions.question import QUESTIONS, Question, audited_questions, question
from jobs.cli.main import COMMANDS, cli
from jobs.cli.options.answer import asking_options, fail_on_option
from jobs.cli.options.shared import inputs_argument, out_option
from schemas import tables

SHOWN = {
    "against": "what Kafka's tool printed is held against the answer",
    "dialect": "another reading of the records, which no question is asked of",
    "history": "shows tables that every answer has",
    "with_state": "shows a column",
    "with_type": "shows a column",
    "table": "shows one of the tables",
    "fail_on_difference": "decides the exit code",
    "out": "where files are written",
}
"""Options of commands that say how an answer is shown, and are no setting of a question."""
PARTS = {
    **dict.fromkeys(("offsets", "members", "state"), "what"),
    **dict.fromkeys(("checkpoints", "checkpoint_group"), "contributions"),
    **dict.fromkeys(("until", "from_copy", "to_copy"), "since"),
}
"""Options that a setting is made of: the setting."""
OF_LIBRARIES = {
    "is_compared": "of the option --against",
    "most": "shortens what a person reads",
    "with_requests": "left out where it is not shown",
    "with_capacity": "left out where it is not shown",
    "with_examples": "left out where names are taken out",
    "with_events": "left out where nobody reads them",
    "for_data_docs": "of the command audit",
    "states": "replayed by the command, and by the library",
    "since": "a state that is open already; the command names a workspace",
    "expectations": "of the command audit",
}
"""Settings that no option of the question's own command gives."""
NO_COMMAND = {"cluster": "`snapshot` asks it, and an audit", "data_quality": "an audit asks it"}


def settings_of(asked: Question[Any, Any]) -> set[str]:
    return set(asked.setting_names)


def shared_options() -> set[str]:
    """Return what all commands take that ask something."""

    def nothing() -> None:
        pass

    for each in (asking_options, fail_on_option(), inputs_argument, out_option):
        nothing = each(nothing)
    return {each.name or "" for each in click.command()(nothing).params}


@pytest.mark.parametrize("name", QUESTIONS)
def test_settings_have_defaults_and_are_explained(name: str) -> None:
    asked = question(name)
    assert asked.name == name
    for each in fields(asked.settings):  # type: ignore[arg-type]
        assert each.default is not MISSING, each.name
        assert f"\n        {each.name}: " in (asked.settings.__doc__ or ""), each.name


@pytest.mark.parametrize("name", QUESTIONS)
def test_tables_have_contracts_and_needs_are_of_a_replay(name: str) -> None:
    asked = question(name)
    assert {tables()[each].kind for each in asked.tables} <= {"evaluation", "history"}
    assert {tables()[each].kind for each in asked.needs} <= {"state", "history"}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_state_has_each_question_as_a_method(name: str) -> None:
    assert name in vars(State)


def test_what_is_asked_by_name_is_known_by_its_command() -> None:
    for name in QUESTIONS:
        assert (name in COMMANDS) != (name in NO_COMMAND), name
    assert [each.name for each in audited_questions()] == [
        *("expiration", "balance", "rebalances", "lag", "share", "usage", "cluster"),
    ]


@pytest.mark.parametrize("name", sorted(QUESTIONS.keys() - NO_COMMAND.keys()))
def test_each_option_of_a_command_is_a_setting_of_its_question(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    names = {each.name or "" for each in command.params} - shared_options()
    options = {PARTS.get(each, each) for each in names}
    settings = settings_of(question(name))
    assert options - SHOWN.keys() <= settings
    given = {"kafka_version", "groups", "exclude_groups"}
    assert settings - options - OF_LIBRARIES.keys() <= given
