"""Options that decide the exit code: `--fail-on` a severity, and `--max-undecoded` records.

From such a severity of findings on a command ends with code 1; with more undecodable records an
answer counts as not whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import click

from schemas.finding_rules import SEVERITIES

NEVER = "never"


class Limit(NamedTuple):
    """A count, or a percentage of all records."""

    number: float
    is_percentage: bool


def _limit(_ctx: click.Context, parameter: click.Parameter, value: str | None) -> Limit | None:
    if value is None:
        return None
    try:
        number = float(value.removesuffix("%"))
    except ValueError:
        number = -1
    if not 0 <= number < math.inf or (number != int(number) and not value.endswith("%")):
        raise click.BadParameter("give a count or a percentage, as in 0 or 0.5%", param=parameter)
    return Limit(number, value.endswith("%"))


max_undecoded_option = click.option(
    "--max-undecoded",
    metavar="COUNT|N%",
    callback=_limit,
    help="Exit with code 3 if more records than this could not be decoded.",
)
"""`max_undecoded: Limit | None`."""


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


def is_exceeded(manifest: Mapping[str, Any], limit: Limit | None) -> bool:
    """Return whether more records were undecodable, or lost with damaged batches, than may be.

    Args:
        manifest: Of a workspace with decoded tables.
        limit: What was asked for; None allows any number.
    """
    if limit is None:
        return False
    lost = manifest.get("records_lost", 0)
    accounts = manifest["reconciliation"]
    bad = lost + sum(sum(each["undecoded"].values()) for each in accounts)
    records = lost + sum(each["records"] for each in accounts)
    allowed = records * limit.number / 100 if limit.is_percentage else limit.number
    return bool(bad > allowed)
