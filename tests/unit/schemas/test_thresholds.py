"""A team's own thresholds go before ours, each under one name, and none is taken that is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobs.cli.settings_files import read_given_settings, starting_config
from schemas.evaluation_rules import (
    QUESTIONS,
    balance_rules,
    checked,
    lag_rules,
    rebalance_rules,
    region_rules,
    rules_document,
    thresholds,
)
from schemas.expiration_rules import audit_rules
from schemas.finding_rules import finding_rules
from schemas.reading import SchemaError
from schemas.share_rules import share_rules
from schemas.usage_rules import usage_rules

RULES: dict[str, Callable[..., Any]] = {
    "expiration": audit_rules,
    "balance": balance_rules,
    "rebalances": rebalance_rules,
    "lag": lag_rules,
    "share": share_rules,
    "region": region_rules,
    "usage": usage_rules,
}
EVERY = [(question, name) for question in QUESTIONS for name in thresholds(question)]


def numbers(said: object) -> list[float]:
    """Return all numbers of rules, however deep."""
    if isinstance(said, dict):
        return [each for value in said.values() for each in numbers(value)]
    return [said] if isinstance(said, int | float) else []


def rules_of(question: str, given: dict[str, float]) -> Any:
    return msgspec.to_builtins(RULES[question](given))


@pytest.mark.parametrize(("question", "name"), EVERY)
def test_each_threshold_reaches_the_rules_that_decide(question: str, name: str) -> None:
    ours = thresholds(question)[name].value
    other = ours / 2 if name.endswith("_share") else ours + 1
    before, after = (numbers(rules_of(question, said)) for said in ({}, {name: other}))
    assert len(before) == len(after)
    assert sum(one != two for one, two in zip(before, after, strict=True)) == 1


def test_what_is_not_given_is_ours() -> None:
    document = rules_document("rebalances", {"storm_epochs": 3})
    assert document["storm"]["epochs"] == 3
    assert document["reconciling"] == rules_document("rebalances")["reconciling"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"storm": 3}, "no threshold 'storm'"),
        ({"storm_epochs": "many"}, "not a number"),
        ({"storm_epochs": True}, "not a number"),
        ({"storm_epochs": 2.5}, "a whole number"),
        ({"storm_minutes": -1}, "not a number from 0 on"),
        ({"storm_minutes": float("nan")}, "not a number from 0 on"),
    ],
)
def test_what_is_no_threshold_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        checked("rebalances", given)


def test_a_share_above_1_is_refused() -> None:
    with pytest.raises(SchemaError, match="a share is at most 1"):
        checked("usage", {"near_share": 80})


def test_the_file_to_start_from_is_taken_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "audit.yaml"
    questions = {name: thresholds(name) for name in QUESTIONS}
    path.write_text(starting_config(finding_rules(), questions), encoding="utf-8")
    given = read_given_settings(str(path))
    for question in QUESTIONS:
        said = given.thresholds(question)
        assert list(said) == list(thresholds(question))
        assert rules_document(question, said) == rules_document(question)
