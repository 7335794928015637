"""Tests of what Hypothesis draws: a few examples when quick, and many as a long test."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

Test = Callable[..., None]


def examples(few: int, many: int, **drawn: SearchStrategy[Any]) -> Callable[[Test], Test]:
    """Call a test with as many examples as it is to have, in place of `given` and `settings`.

    Args:
        few: How many when tests are quick.
        many: How many where they may take long.
        drawn: What is drawn, by argument.

    Returns:
        What makes a test of two cases of it; its other arguments are fixtures and parameters.
    """

    def of(test: Test) -> Test:
        def run(max_examples: int, **arguments: object) -> None:
            settings(max_examples=max_examples, deadline=None)(given(**drawn)(test))(**arguments)

        run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
        others = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
            for name in ("max_examples", *inspect.signature(test).parameters)
            if name not in drawn
        ]
        run.__signature__ = inspect.Signature(others)  # type: ignore[attr-defined]
        run.pytestmark = getattr(test, "pytestmark", [])  # type: ignore[attr-defined]
        cases = [few, pytest.param(many, marks=pytest.mark.long)]
        return pytest.mark.parametrize("max_examples", cases)(run)

    return of
