"""Commands asked in this process, as the installed one runs them: one JVM serves all."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs.cli.main import run

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
    out, said = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(said):
        code = run([*map(str, arguments)])
    return Answer(code, {}, out.getvalue() + said.getvalue())


def ask(*arguments: str | Path) -> Answer:
    """Run a command line whose answer is JSON.

    Raises:
        AssertionError: It ended as no question may end: called wrongly, or with a fault of ours.
    """
    out, said = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(said):
        code = run([*map(str, arguments), "--format", "json"])
    text = out.getvalue()
    assert code in {0, 1, 3}, (arguments, code, said.getvalue())
    # A refusal is no answer, and "cannot tell" is one.
    assert text.strip(), (arguments, code, said.getvalue())
    return Answer(code, json.loads(text), said.getvalue())
