"""Options that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from jobs.console import Console

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Decorator = Callable[[Decorated], Decorated]


def _in_order(*decorators: Callable[[Any], Any]) -> Callable[[Decorated], Decorated]:
    """Return one decorator that declares what the given ones declare, in reading order."""

    def decorate(function: Decorated) -> Decorated:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


# --- how much is said ------------------------------------------------------------------------


def _quiet(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001
    if value:
        ctx.ensure_object(Console).quiet = True


def _verbose(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001
    if value:
        ctx.ensure_object(Console).verbose = True


def _no_progress(
    ctx: click.Context,
    _parameter: click.Parameter,
    value: bool,  # noqa: FBT001
) -> None:
    if value:
        ctx.ensure_object(Console).progress = False


def _no_color(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001
    if value:
        ctx.color = False


def _said(name: str, callback: Callable[..., None], text: str) -> Callable[[Any], Any]:
    return click.option(
        name, is_flag=True, expose_value=False, is_eager=True, callback=callback, help=text
    )


output_options = _in_order(
    _said("--quiet", _quiet, "Say nothing but errors on stderr."),
    _said("--verbose", _verbose, "Say more: what was recognised and assumed, and Spark's words."),
    _said("--no-progress", _no_progress, "Draw no progress bar, not even on a terminal."),
    _said("--no-color", _no_color, "Use no color, not even on a terminal."),
)
"""`--quiet`, `--verbose`, `--no-progress`, `--no-color`: they set up the run's `Console`."""


# --- what is read ----------------------------------------------------------------------------

inputs_argument = click.argument("inputs", metavar="INPUT...", nargs=-1, required=True)
"""`INPUT...` as `inputs: tuple[str, ...]`."""

input_options = _in_order(
    click.option(
        "--topic-partition",
        metavar="TOPIC-N",
        help="Whose a segment is that lies outside a partition directory.",
    ),
    click.option(
        "--prefer-copy",
        metavar="NAME",
        help="Follow this copy where copies disagree, instead of the line that survived.",
    ),
    click.option(
        "--strict-high-watermark",
        is_flag=True,
        help="Leave out records above the checkpointed high watermark.",
    ),
)
"""How INPUTs are taken: `topic_partition`, `prefer_copy`, `strict_high_watermark`."""


# --- where it runs ---------------------------------------------------------------------------


def _settings(
    _ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> dict[str, str]:
    pairs = [text.partition("=") for text in value]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise click.BadParameter(
                "give KEY=VALUE, as in spark.driver.memory=8g", param=parameter
            )
    return {key: setting for key, _, setting in pairs}


spark_options = _in_order(
    click.option(
        "--master",
        metavar="URL",
        help="Spark master; what spark-submit gives wins.  [default: local[*]]",
    ),
    click.option(
        "--conf",
        metavar="KEY=VALUE",
        multiple=True,
        callback=_settings,
        help="A Spark setting; repeatable.",
    ),
)
"""`--master` as `master: str | None` and `--conf` as `conf: dict[str, str]`."""
