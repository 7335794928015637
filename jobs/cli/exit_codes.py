"""The exit codes of `groupscope`, as `--help` lists them."""

from __future__ import annotations

from typing import Final

DONE: Final = 0

SEVERE_FINDING: Final = 1
"""Findings are as severe as `--fail-on` asks."""

DIFFERENT: Final = 1
"""Two states that were compared are not the same."""

NOT_THERE: Final = 1
"""A group that was named does not exist."""

CALLED_WRONGLY: Final = 2

CANNOT_TELL: Final = 3
"""The answer is incomplete, or a part of the input is unreadable."""

INTERNAL_ERROR: Final = 4

INTERRUPTED: Final = 130
