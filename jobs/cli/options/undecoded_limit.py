"""`--max-undecoded`: how many records may be undecodable before an answer counts as not whole."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import click


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
