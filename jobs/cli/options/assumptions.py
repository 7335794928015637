"""`--assume`: what a person vouches for where the dump cannot tell; every answer says so."""

from __future__ import annotations

from collections.abc import Iterable

import click

from analytics.replay.dump.assumptions import (
    CLEAN_ELECTIONS,
    COMPLETE_ARCHIVE,
    NO_TRANSACTIONS,
    ONE_REPLICA,
    UNCLEAN_ELECTIONS_OFF,
)

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


def sentences(assumed: Iterable[str]) -> list[str]:
    """Return what is assumed in words."""
    return [
        f"by the settings given, {_WORDS[CLEAN_ELECTIONS]}: {_BY_SETTINGS[each]}"
        if each in _BY_SETTINGS
        else f"assumed: {_WORDS[each]} (--assume {each})"
        for each in assumed
    ]
