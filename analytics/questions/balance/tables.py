"""The tables about balance: what each is made of, at an instant or through history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import polars as pl

from analytics.questions.balance.cases.at_instant import cases_at
from analytics.questions.balance.cases.since import with_epoch, with_progress
from analytics.questions.balance.cases.through_history import cases_of_history

_NOTHING: Final[Mapping[int, int]] = MappingProxyType({})


@dataclass(frozen=True)
class Topics:
    """What is known of topics and of what groups want of them, of all groups.

    Attributes:
        counts: `partition_counts`.
        expressions: `resolved_expressions`.
        parts: `subtopologies`.
    """

    counts: pl.DataFrame
    expressions: pl.DataFrame
    parts: pl.DataFrame


def cases_now(
    tables: Mapping[str, pl.DataFrame],
    topics: Topics,
    compacted_until: Mapping[int, int] = _NOTHING,
) -> pl.DataFrame:
    """Return the groups with members at an instant, as `case_rows.case_of` reads them.

    Args:
        tables: `groups`, `members`, `assignments`, `topics`, `share_partitions`, `group_epochs`;
            `commits`: rows of `offset_history` as `with_progress` takes them.
        topics: What is known of them.
        compacted_until: As `with_progress` takes it.
    """
    cases = cases_at(tables, topics.counts, topics.expressions, topics.parts)
    dated = with_epoch(cases, tables["group_epochs"])
    return with_progress(dated, tables["commits"], compacted_until)


def cases_ever(
    tables: Mapping[str, pl.DataFrame],
    topics: Topics,
    sizes: pl.DataFrame,
    compacted_until: Mapping[int, int] = _NOTHING,
) -> pl.DataFrame:
    """Return the groups in every epoch in which they had members, likewise.

    Args:
        tables: `topics`, `share_partitions`, `group_epochs`, `commits` as above, and `held`: what
            members held, as `cases_of_history` takes it.
        topics: What is known of them.
        sizes: `topic_sizes`.
        compacted_until: As `with_progress` takes it.
    """
    cases = cases_of_history(
        tables["group_epochs"], tables["held"], sizes, tables, topics.expressions, topics.parts
    )
    return with_progress(cases, tables["commits"], compacted_until)
