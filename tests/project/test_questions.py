"""A question, its settings, its tables and the command that asks it fit together."""

from __future__ import annotations

from dataclasses import MISSING, fields
from importlib import import_module
from typing import Any

import click
import pytest

from analytics import State
from analytics.questions.question import Question
from analytics.questions.registry import QUESTIONS, audited_questions, question
from jobs.cli.options.asking import asking_options
from jobs.cli.options.fail_on import fail_on_option
from jobs.cli.options.shared import inputs_argument, out_option
from jobs.cli.subcommands import COMMANDS
from schemas import tables

SHOWN = {
    "against": "what Kafka's tool printed is held against the answer",
    "dialect": "another reading of the records, which no question is asked of",
    "history": "shows tables that every answer has",
    "table": "shows one of the tables",
}
"""Options of commands that say how an answer is shown, and are no setting of a question."""
OF_LIBRARIES = {
    "most": "shortens what a person reads",
    "with_requests": "left out where it is not shown",
    "with_capacity": "left out where it is not shown",
    "with_examples": "left out where names are taken out",
    "since": "a state that is open already; the command names a workspace",
    "expectations": "of the command audit",
}
"""Settings that no option of the question's own command gives."""
OF_COMMANDS = {
    "describe": {"offsets", "members", "state"},  # what of a group is shown
    "list": {"with_state", "with_type"},  # columns
    "diff": {"until", "from_copy", "to_copy", "fail_on_difference"},  # which states these are
    "restore": {"out"},  # where files are written
    "region": {"checkpoints", "checkpoint_group"},  # files whose contributions are a setting
}
"""Options of single commands that choose what a question is given, or what is shown."""
NO_COMMAND = {"data_quality": "an audit asks it"}


def settings_of(asked: Question[Any, Any]) -> set[str]:
    return {each.name for each in fields(asked.settings)}  # type: ignore[arg-type]


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
        assert {each.default, each.default_factory} != {MISSING}, each.name
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
        *("expiration", "balance", "rebalances", "lag", "share", "usage"),
    ]


@pytest.mark.parametrize("name", sorted(QUESTIONS.keys() - NO_COMMAND.keys()))
def test_each_option_of_a_command_is_a_setting_of_its_question(name: str) -> None:
    command = command_of(name)
    options = {each.name or "" for each in command.params} - shared_options()
    settings = settings_of(question(name))
    assert options - SHOWN.keys() - OF_COMMANDS.get(name, set()) <= settings
    given = {"kafka_version", "groups", "exclude_groups"}
    chosen = {"contributions", "what", "is_compared"} if name in OF_COMMANDS else set()
    assert settings - options - OF_LIBRARIES.keys() - chosen <= given


def command_of(name: str) -> click.Command:
    module = vars(import_module(f"jobs.commands.{name}"))
    (command,) = (each for each in module.values() if isinstance(each, click.Command))
    return command
