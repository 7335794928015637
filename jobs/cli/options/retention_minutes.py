"""`--retention-minutes`: the retentions that are tried."""

from __future__ import annotations

from typing import Any

import click

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
