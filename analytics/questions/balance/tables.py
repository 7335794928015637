"""The tables about balance: what each is made of, at an instant or through history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from analytics.questions.balance.cases.at_instant import cases_at
from analytics.questions.balance.cases.since import with_epoch, with_progress
from analytics.questions.balance.cases.through_history import cases_of_history


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


def cases_now(tables: Mapping[str, pl.DataFrame], topics: Topics) -> pl.DataFrame:
    """Return the groups with members at an instant, as `case_rows.case_of` reads them.

    Args:
        tables: `groups`, `members`, `assignments`, `topics`, `share_partitions`, `group_epochs`;
            `commits`: rows of `offset_history` as `with_progress` takes them.
        topics: What is known of them.
    """
    cases = cases_at(tables, topics.counts, topics.expressions, topics.parts)
    return with_progress(with_epoch(cases, tables["group_epochs"]), tables["commits"])


def cases_ever(
    tables: Mapping[str, pl.DataFrame], topics: Topics, sizes: pl.DataFrame
) -> pl.DataFrame:
    """Return the groups in every epoch in which they had members, likewise.

    Args:
        tables: `topics`, `share_partitions`, `group_epochs`, `commits` as above, and `held`: what
            members held, as `cases_of_history` takes it.
        topics: What is known of them.
        sizes: `topic_sizes`.
    """
    cases = cases_of_history(
        tables["group_epochs"], tables["held"], sizes, tables, topics.expressions, topics.parts
    )
    return with_progress(cases, tables["commits"])
