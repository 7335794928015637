"""Options of commands that ask something of a dump or a workspace, and `--retention-minutes`."""

from __future__ import annotations

from typing import Any

import click

from jobs.cli.options.answer import max_undecoded_option, rows_options
from jobs.cli.options.shared import (
    group_options,
    in_order,
    input_options,
    output_options,
    spark_options,
)
from jobs.cli.options.state import assume_option, instant_options
from jobs.cli.settings_files import settings_options, topic_ids_option

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
