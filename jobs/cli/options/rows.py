"""Options that say which rows of an answer are shown, and how."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

import click

from jobs.cli.console import Console
from jobs.cli.options.shared import NO_COLOR, Decorated, in_order
from reports.layout.output_format import FORMATS, OutputFormat

_TAKES_TABLE = "takes_table"

_options = in_order(
    click.option(
        "--format",
        "output_format",
        type=click.Choice(FORMATS),
        default="text",
        show_default=True,
        help="Format of the output.",
    ),
    click.option("--wide", is_flag=True, help="Let text be wider than 120 columns."),
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
    """Declare `--format`, `--wide`, `--top`, `--sort` and `--only-problems`.

    The command takes all of them, and `--table` where it has one, as `output_format`.

    Raises:
        TypeError: `table_option` stands below: it has to hand over what this puts together.
    """
    if getattr(function, _TAKES_TABLE, False):
        raise TypeError(f"table_option of {function.__name__} has to stand above rows_options")

    @functools.wraps(function)
    def with_format(
        *arguments: Any,  # noqa: ANN401
        output_format: str,
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
            is_wide=wide,
            top=top,
            sort=sort,
            only_problems=only_problems,
            is_colored=_shows_colors(),
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
    """Return whether stdout is a terminal, and nobody asked for no colors."""
    context = click.get_current_context(silent=True)
    asked = context is None or context.color is not False
    return asked and not os.environ.get(NO_COLOR) and sys.stdout.isatty()
