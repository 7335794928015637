"""Commands asked in this process, as the installed one runs them: one JVM serves all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.support.command_here import run_here

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Answer:
    """What a command left: its exit code, its JSON, and what it said beside."""

    code: int
    told: Mapping[str, Any]
    said: str

    @property
    def is_untold(self) -> bool:
        """Whether something that was asked for cannot be told."""
        return self.code == 3


def call(*arguments: str | Path) -> Answer:
    """Run a command line of which only the exit code and what it said matter."""
    ended = run_here([*map(str, arguments)])
    return Answer(ended.returncode, {}, ended.stdout + ended.stderr)


def ask(*arguments: str | Path) -> Answer:
    """Run a command line whose answer is JSON.

    Raises:
        AssertionError: It ended as no question may end: called wrongly, or with a fault of ours.
    """
    ended = run_here([*map(str, arguments), "--format", "json"])
    code = ended.returncode
    assert code in {0, 1, 3}, (arguments, code, ended.stderr)
    # A refusal is no answer, and "cannot tell" is one.
    assert ended.stdout.strip(), (arguments, code, ended.stderr)
    return Answer(code, json.loads(ended.stdout), ended.stderr)
