"""`--dialect`: another reading of records, that no release of Kafka has."""

from __future__ import annotations

from collections.abc import Collection

import click
from click.core import ParameterSource

from schemas.dialects import CHECKPOINT_DELTA, KIP_932_TEXT

dialect_option = click.option(
    "--dialect",
    type=click.Choice([CHECKPOINT_DELTA, KIP_932_TEXT]),
    is_eager=True,  # other options mean something else with it
    help="Read share state as a design of Kafka had it, and no release; docs/dialects.md.",
)
"""`--dialect` as `dialect: str | None`."""


def refuse_other_options(accepted: Collection[str]) -> None:
    """Refuse options of the running command that mean nothing in the dialect.

    Args:
        accepted: Names of parameters that mean something there, besides those of the output.

    Raises:
        click.UsageError: Another one was given.
    """
    context = click.get_current_context()
    known = {*accepted, *_OF_OUTPUT}
    for each in context.command.params:
        source = context.get_parameter_source(str(each.name))
        if source is ParameterSource.COMMANDLINE and each.name not in known:
            raise click.UsageError(f"{max(each.opts, key=len)} means nothing in this dialect")


_OF_OUTPUT = {
    *("inputs", "out", "dialect", "output_format", "table", "wide", "top", "sort"),
    *("only_problems", "quiet", "verbose", "no_progress", "no_color"),
}
