"""The tables about balance: what each is made of, at an instant or through history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.evaluate.balance.case import COUNT_SOURCES
from analytics.evaluate.balance.cases import cases_at
from analytics.evaluate.balance.cases_of_history import cases_of_history
from analytics.evaluate.balance.evaluated import assignment_alternatives, assignment_balance
from analytics.evaluate.balance.partition_counts import counts_in_records, partition_counts
from analytics.evaluate.balance.since import with_epoch, with_progress
from analytics.evaluate.balance.subscriptions import resolved_expressions, subtopologies
from analytics.evaluate.balance.topic_sizes import topic_sizes
from analytics.replay.graph import Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from analytics.replay.log.as_of import Decoded
    from analytics.replay.metadata.metadata_log import MetadataLog

_LOG = COUNT_SOURCES[0]
_STATE = ("groups", "members", "assignments", "topics", "share_partitions")


def _counts(
    topics: DataFrame,
    assignments: DataFrame,
    committed: DataFrame,
    pending: DataFrame,
    cut: Decoded,
) -> DataFrame:
    held = assignments.where("subtopology_id is null").select(
        F.coalesce("topic", "topic_id").alias("topic"), "partition"
    )
    seen = [held, *(each.select("topic", "partition") for each in (committed, pending))]
    return partition_counts(topics, counts_in_records(cut), seen).localCheckpoint()


def _sizes(metadata: MetadataLog, counts: DataFrame) -> DataFrame:
    """Return counts over time: of one time where no log of the metadata tells more."""
    timeless = counts.where(F.col("counted_by") != _LOG)
    return (
        topic_sizes(metadata)
        .withColumn("counted_by", F.lit(_LOG))
        .unionByName(timeless, allowMissingColumns=True)
        .localCheckpoint()
    )


def _state(*tables: DataFrame) -> dict[str, DataFrame]:
    return dict(zip(_STATE, tables, strict=True))


def _topics(*tables: DataFrame) -> dict[str, DataFrame]:
    return dict(zip(("counts", "expressions", "parts"), tables, strict=True))


def _cases_now(
    state: Mapping[str, DataFrame],
    wanted: Mapping[str, DataFrame],
    epochs: DataFrame,
    offsets: DataFrame,
) -> DataFrame:
    cases = with_epoch(cases_at(state, **wanted), epochs)
    return with_progress(cases, offsets).localCheckpoint()


def _cases_of_history(
    state: Mapping[str, DataFrame],
    wanted: Mapping[str, DataFrame],
    sizes: DataFrame,
    epochs: DataFrame,
    owned: DataFrame,
    offsets: DataFrame,
) -> DataFrame:
    cases = cases_of_history(epochs, owned, sizes, state, wanted["expressions"], wanted["parts"])
    return with_progress(cases, offsets).localCheckpoint()


_FOR_BOTH = (
    Step(
        "counts",
        _counts,
        ("topics", "assignments", "committed_offsets", "pending_offsets", "cut"),
    ),
    Step("expressions", resolved_expressions, ("cut",)),
    Step("parts", subtopologies, ("cut",)),
    Step("state_of_groups", _state, _STATE),
    Step("topics_of_groups", _topics, ("counts", "expressions", "parts")),
    Step("assignment_balance", assignment_balance, ("cases", "balance_rules", "gaps")),
    Step("assignment_alternatives", assignment_alternatives, ("cases", "gaps")),
)

BALANCE = (
    *_FOR_BOTH,
    Step(
        "cases",
        _cases_now,
        ("state_of_groups", "topics_of_groups", "group_epochs", "offset_history"),
    ),
)
"""Groups at the instant. Beside state and history it takes `cut`, `balance_rules` and `gaps`."""

BALANCE_OF_HISTORY = (
    *_FOR_BOTH,
    Step("sizes", _sizes, ("metadata", "counts")),
    Step(
        "cases",
        _cases_of_history,
        (
            *("state_of_groups", "topics_of_groups", "sizes"),
            *("group_epochs", "owned", "offset_history"),
        ),
    ),
)
"""Every epoch. It takes what `BALANCE` takes, and `metadata` and `owned` of a replay."""
