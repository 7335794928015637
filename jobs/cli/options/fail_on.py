"""`--fail-on`: from which severity of findings on a command ends with code 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from schemas.finding_rules import SEVERITIES

NEVER = "never"


def fail_on_option(default: str = NEVER) -> Callable[[Any], Any]:
    """Return the option, as `fail_on: str`.

    Args:
        default: A severity, or `NEVER`.
    """
    return click.option(
        "--fail-on",
        type=click.Choice([NEVER, *reversed(SEVERITIES)]),
        default=default,
        show_default=True,
        help="End with code 1 where there is a finding as severe as this; never: with 0, or with "
        "3 where an answer cannot be told.",
    )
