"""Options that say which rows of an answer are shown, and how, and what decides its exit code.

Options of commands that ask something of a dump or a workspace, and `--retention-minutes`.
"""

from __future__ import annotations

import functools
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from jobs.cli.console import Console
from jobs.cli.options.shared import (
    NO_COLOR,
    Decorated,
    format_options,
    group_options,
    in_order,
    input_options,
    output_options,
    spark_options,
)
from jobs.cli.options.state import assume_option, instant_options
from jobs.cli.settings_files import settings_options, topic_ids_option
from reports.layout.output_format import FORMATS, OutputFormat, Paper
from schemas.finding_rules import SEVERITIES

if TYPE_CHECKING:
    from schemas.manifest import Manifest


# Options that decide the exit code: `--fail-on` a severity, and `--max-undecoded` records.
#
# From such a severity of findings on a command ends with code 1; with more undecodable records an
# answer counts as not whole.

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


def is_exceeded(manifest: Manifest, limit: Limit | None) -> bool:
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


_TAKES_TABLE = "takes_table"

_options = in_order(
    format_options(*FORMATS),
    click.option(
        "--wide",
        is_flag=True,
        help="Let text be wider than the terminal: all columns, nothing shortened.",
    ),
    click.option(
        "--top", type=click.IntRange(min=1), metavar="N", help="Show the first N rows of a table."
    ),
    click.option(
        "--sort",
        metavar="COLUMN",
        help="Sort rows by this column, numbers from the largest; -COLUMN turns the order round.",
    ),
    click.option(
        "--only-problems", is_flag=True, help="Show only rows in which something went wrong."
    ),
)


def rows_options(function: Decorated) -> Decorated:
    """Declare `--format`, `--output`, `--wide`, `--top`, `--sort` and `--only-problems`.

    The command takes all of them, and `--table` where it has one, as `output_format`.

    Raises:
        TypeError: `table_option` stands below: it has to hand over what this puts together.
    """
    if getattr(function, _TAKES_TABLE, False):
        raise TypeError(f"table_option of {function.__name__} has to stand above rows_options")

    @functools.wraps(function)
    def with_format(
        *arguments: Any,  # noqa: ANN401
        output_format: OutputFormat,
        wide: bool,
        top: int | None,
        sort: str | None,
        only_problems: bool,
        table: str | None = None,
        **options: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        wanted = OutputFormat(
            output_format,
            table=table,
            paper=Paper(output_format.width, _shows_colors()),
            is_wide=wide,
            top=top,
            sort=sort,
            only_problems=only_problems,
        )
        return function(*arguments, output_format=wanted, **options)

    return cast("Decorated", _options(with_format))


@dataclass(frozen=True)
class Needed:
    """The option without which an answer does not have a table.

    Attributes:
        parameter: The option, as the command's function calls it.
        option: The same as a person writes it.
        value: What it has to be; None is anything that was given.
    """

    parameter: str
    option: str
    value: str | None = None

    def is_given(self, options: Mapping[str, Any]) -> bool:
        """Return whether the option is among those of a call.

        Raises:
            KeyError: The command has no such option.
        """
        given = options[self.parameter]
        return bool(given) if self.value is None else given == self.value


def table_option(
    *names: str, beside: Sequence[str] = (), needs: Mapping[str, Needed] = MappingProxyType({})
) -> Callable[[Decorated], Decorated]:
    """Declare `--table` of a command whose answer has several tables.

    Args:
        names: The tables that `rows` of JSON has, and CSV.
        beside: The others: JSON has them under their names, CSV only where `--table` asks.
        needs: Of tables that only another option makes, that option.
    """

    def mention_others(
        ctx: click.Context, _parameter: click.Parameter, value: str | None
    ) -> str | None:
        is_of_this = ctx.params.get("dialect") is None
        if value is None and beside and is_of_this and ctx.params.get("output_format") == "csv":
            others = ", ".join(f"--table {name}" for name in beside)
            ctx.ensure_object(Console).say(
                f"this CSV has the table {names[0]}; for others use {others}"
            )
        return value

    declared = click.option(
        "--table",
        type=click.Choice([*names, *beside]),
        callback=mention_others,
        help="Show only this table.",
    )

    def declare(function: Decorated) -> Decorated:
        @functools.wraps(function)
        def with_table(*arguments: Any, table: str | None, **options: Any) -> Any:  # noqa: ANN401
            needed = needs.get(table) if table else None
            if needed is not None and not needed.is_given(options):
                raise click.UsageError(f"--table {table} needs {needed.option}")
            return function(*arguments, table=table, **options)

        setattr(with_table, _TAKES_TABLE, True)
        return declared(cast("Decorated", with_table))

    return declare


def _shows_colors() -> bool:
    """Return whether the answer goes to a terminal, and nobody asked for no colors."""
    context = click.get_current_context(silent=True)
    asked = context is None or (
        context.color is not False and context.ensure_object(Console).output is None
    )
    return asked and not os.environ.get(NO_COLOR) and sys.stdout.isatty()


# `--retention-minutes`: the retentions that are tried.

_MOST = 2**31 - 1


def _minutes(_ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, ...]:
    if value is None:
        return ()
    items = [item.strip() for item in value.split(",")]
    if not all(item.isdecimal() and 1 <= int(item) <= _MOST for item in items):
        raise click.BadParameter(
            f"{value!r}: give minutes, one or more with commas between, each at least 1",
            param=parameter,
        )
    return tuple(dict.fromkeys(int(item) for item in items))


def retention_minutes_option(command: Any) -> Any:  # noqa: ANN401 - a decorator, as click has them
    """Add the option, as `retention_minutes: tuple[int, ...]`."""
    return click.option(
        "--retention-minutes",
        metavar="N,N,...",
        callback=_minutes,
        help="What-if: the retentions to try. A single one is also taken as the one in force.",
    )(command)


asking_options = in_order(
    topic_ids_option,
    settings_options,
    assume_option,
    instant_options,
    rows_options,
    group_options,
    input_options,
    max_undecoded_option,
    spark_options,
    output_options,
)
"""What `replayed` takes, and `output_format`."""
