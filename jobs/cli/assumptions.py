"""`--assume`: what a person vouches for where the dump cannot tell; every answer says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

NO_TRANSACTIONS, COMPLETE_ARCHIVE = "no-transactions", "complete-archive"
CLEAN_ELECTIONS = "clean-elections"

_WORDS = {
    NO_TRANSACTIONS: "no commit in the archived rows was made in a transaction",
    CLEAN_ELECTIONS: "no election lost commits but those that the dump shows",
    COMPLETE_ARCHIVE: "the archived rows are all there were but for what compaction removed",
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


def archived(manifest: Mapping[str, Any], topic: str) -> frozenset[int]:
    """Return the partitions of an internal topic whose records are archived rows."""
    return frozenset(
        each["partition"]
        for each in manifest["partitions"]
        if each["topic"] == topic and each.get("copy", "") is None
    )


def assumed_of(manifest: Mapping[str, Any], assume: Iterable[str]) -> list[str]:
    """Return what is assumed of a dump: only of what it cannot tell itself."""
    rows = manifest["partitions"]
    open_questions: set[str] = set()
    if any(each.get("copy", "") is None for each in rows):
        open_questions |= {NO_TRANSACTIONS, COMPLETE_ARCHIVE}
    if any(each.get("unjudged_elections") for each in rows):
        open_questions.add(CLEAN_ELECTIONS)
    return sorted(open_questions & set(assume))


def assumed_in(manifest: Mapping[str, Any]) -> list[str]:
    """Return what was assumed when a workspace was replayed."""
    return list(manifest.get("replay", {}).get("assumed", ()))


def sentences(assumed: Iterable[str]) -> list[str]:
    """Return what is assumed in words."""
    return [f"assumed: {_WORDS[each]} (--assume {each})" for each in assumed]
