"""What a person vouches for where the dump cannot tell, which every answer says: `--assume`.

With `--dialect` it is that records are read in another way, which no release of Kafka has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import click
from click.core import ParameterSource

from analytics.replay.dump.assumptions import (
    CLEAN_ELECTIONS,
    COMPLETE_ARCHIVE,
    NO_TRANSACTIONS,
    ONE_REPLICA,
    UNCLEAN_ELECTIONS_OFF,
)
from schemas.catalog import CHECKPOINT_DELTA, KIP_932_TEXT

_WORDS = {
    NO_TRANSACTIONS: "no commit in the archived rows was made in a transaction",
    CLEAN_ELECTIONS: "no election lost commits but those that the dump shows",
    COMPLETE_ARCHIVE: "the archived rows are all there were but for what compaction removed",
}
_BY_SETTINGS = {
    UNCLEAN_ELECTIONS_OFF: "unclean.leader.election.enable=false",
    ONE_REPLICA: "offsets.topic.replication.factor=1",
}


def _in_one_order(
    _ctx: click.Context, _parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    return tuple(sorted(set(value)))


assume_option = click.option(
    "--assume",
    type=click.Choice(sorted(_WORDS)),
    multiple=True,
    callback=_in_one_order,
    help="Answer as if archived rows held no commit in a transaction, or were never incomplete, or "
    "as if no election lost commits but those that the dump shows; repeatable.",
)
"""`--assume` as `assume: tuple[str, ...]`, in one order."""

dialect_option = click.option(
    "--dialect",
    type=click.Choice([CHECKPOINT_DELTA, KIP_932_TEXT]),
    is_eager=True,  # other options mean something else with it
    help="Read share state as a design of Kafka had it, and no release; docs/dialects.md.",
)
"""`--dialect` as `dialect: str | None`."""
_OF_OUTPUT = {
    *("inputs", "out", "dialect", "output_format", "table", "wide", "top", "sort"),
    *("only_problems", "quiet", "verbose", "no_progress", "no_color"),
}


def sentences(assumed: Iterable[str]) -> list[str]:
    """Return what is assumed in words."""
    return [
        f"by the settings given, {_WORDS[CLEAN_ELECTIONS]}: {_BY_SETTINGS[each]}"
        if each in _BY_SETTINGS
        else f"assumed: {_WORDS[each]} (--assume {each})"
        for each in assumed
    ]


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
