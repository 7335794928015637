"""What is not certain of an instant where a log's times go back: groups, offsets, metadata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.replay.groups.group_records import GROUP_KEY, KINDS
from analytics.replay.log.log_times import disputed
from analytics.replay.log.losses import HOME, of_partition
from analytics.replay.metadata_log import (
    PARTITION_KEY,
    MetadataLog,
    configs,
    metadata_log,
    partition_leaders,
    partition_steps,
    settings_said,
    snapshot_end,
)
from analytics.replay.offsets.commit_rows import COMMITS, KEY, commit_rows, marker_rows
from analytics.replay.offsets.effective_commits import ended_commits
from schemas import CLUSTER_METADATA, CONSUMER_OFFSETS, record_types, table

if TYPE_CHECKING:
    from analytics.replay.log.log_times import Decoded
    from analytics.replay.log.losses import Coverage
    from analytics.replay.log.rules import ReplayRules

# What records are about that lie between the two cuts of a log whose times go back.
#
# A log is cut at the later of the two (`analytics.replay.log.log_times`); what a record between
# them is about may have been otherwise at the instant. Of everything else both cuts say the same.

WHY = "between_cuts"
"""The column that says in words what is not certain, and why."""


@dataclass(frozen=True)
class BetweenCuts:
    """What is not certain of groups, a row each.

    Attributes:
        offsets: `KEY` and `WHY`.
        groups: `GROUP_KEY` and `WHY`, of groups with records of their own between the cuts.
    """

    offsets: pl.DataFrame
    groups: pl.DataFrame


NOTHING = BetweenCuts(
    pl.DataFrame(schema={**{name: COMMITS[name] for name in KEY}, WHY: pl.String()}),
    pl.DataFrame(schema={**{name: COMMITS[name] for name in GROUP_KEY}, WHY: pl.String()}),
)
"""The times of no log go back."""


def between_cuts(decoded: Decoded, rules: ReplayRules, coverage: Coverage) -> BetweenCuts:
    """Return what the records between the two cuts of partitions are about.

    Args:
        decoded: Decoded tables of whole groups, cut at an instant.
        rules: Of the release.
        coverage: Says where logs were cut.
    """
    frames = disputed(coverage.frames, CONSUMER_OFFSETS)
    if not frames:
        return NOTHING
    starts = {number: each.certain_end for number, each in frames.items()}
    words = {number: each.why(CONSUMER_OFFSETS, number) for number, each in frames.items()}
    is_there = pl.col(HOME).is_in(list(starts))
    start, why = of_partition(starts), of_partition(words, pl.String()).alias(WHY)
    commits = commit_rows(decoded["offset_commit"]).filter(is_there)
    ended = ended_commits(commits, marker_rows(decoded["control_markers"]), rules)
    is_between = (pl.col("record_offset") >= start) | (pl.col("end_offset") >= start).fill_null(
        value=False
    )
    offsets = ended.filter(is_between).select(*KEY, why).unique()
    named = [
        decoded[name].select(
            pl.col("partition").alias(HOME),
            pl.col("key").struct.field(kind.group_field).alias("group_id"),
            "offset",
        )
        for name, kind in KINDS.items()
        if decoded[name].height
    ]
    if not named:
        return BetweenCuts(offsets, NOTHING.groups)
    records = pl.concat(named).filter(is_there).filter(pl.col("offset") >= start)
    return BetweenCuts(offsets, records.select(*GROUP_KEY, why).unique())


# What is not certain of topics, settings and leaders where the metadata log's times go back.
#
# The log is cut at the later of two cuts (`analytics.replay.log.log_times`). What a record between
# them is about may have been otherwise at the instant: as the earlier cut has it, or as any cut
# between. A metadata transaction that ends between them makes records before them visible, so
# that both states are compared besides.

_MARKS: Final = ("complete", "missing")
_OF_TOPICS: Final = ("topic_record", "remove_topic_record", "partition_record")
_IS_BETWEEN: Final = "is_between"


@dataclass(frozen=True)
class MetadataCuts:
    """The metadata log between its two cuts.

    Attributes:
        later: The log up to the later cut.
        earlier: The log up to the earlier one.
        certain_end: The first offset that lies between them.
        why: In words, why records between may count or not.
    """

    later: MetadataLog
    earlier: MetadataLog
    certain_end: int
    why: str


def metadata_cuts(log: MetadataLog, coverage: Coverage) -> MetadataCuts | None:
    """Return the two cuts of a metadata log; None where both are one.

    Args:
        log: The metadata log at an instant, up to the later cut.
        coverage: Says where logs were cut.
    """
    frame = disputed(coverage.frames, CLUSTER_METADATA).get(0)
    if frame is None:
        return None
    end = frame.certain_end
    is_before = (pl.coalesce(snapshot_end(), pl.col("offset") + 1) <= end) | (
        pl.col("topic") != CLUSTER_METADATA
    )
    kinds = record_types(CLUSTER_METADATA).values()
    names = [each.table for each in kinds if each.read == "decode"]
    earlier = {
        name: log.decoded[name].filter(is_before)
        for name in ("control_markers", *names)
        if name in log.decoded
    }
    return MetadataCuts(log, metadata_log(earlier), end, frame.why(CLUSTER_METADATA, 0))


def marked_topics(
    rows: pl.DataFrame, earlier_rows: pl.DataFrame, cuts: MetadataCuts
) -> pl.DataFrame:
    """Mark rows of the table `topics` that are not certain.

    Args:
        rows: As the later cut has them.
        earlier_rows: As the earlier one does.
        cuts: The two.
    """
    changed = pl.concat(
        cuts.later.logged(name)
        .filter(pl.col("at") >= cuts.certain_end)
        .select(pl.col("value").struct.field("topic_id"))
        for name in _OF_TOPICS
    )
    return _marked("topics", rows, earlier_rows, changed, cuts)


def marked_configs(rows: pl.DataFrame, cuts: MetadataCuts) -> pl.DataFrame:
    """Mark rows of the table `configs` that are not certain, and add those that may have been.

    Args:
        rows: As the later cut has them.
        cuts: The two.
    """
    changed = settings_said(cuts.later).filter(pl.col("at") >= cuts.certain_end)
    key = changed.select(table("configs").key)
    return _marked("configs", rows, configs(cuts.earlier), key, cuts)


def marked_leaders(rows: pl.DataFrame, cuts: MetadataCuts) -> pl.DataFrame:
    """Mark rows of the table `partition_leaders` that are not certain, and add those that may be.

    Args:
        rows: As the later cut has them.
        cuts: The two.
    """
    value = pl.col("value").struct
    named = cuts.later.visible("topic_record").select(
        value.field("topic_id"), value.field("name").alias("topic")
    )
    steps = partition_steps(cuts.later).filter(pl.col("at") >= cuts.certain_end)
    changed = steps.select(PARTITION_KEY).join(named, on="topic_id").select("topic", "partition")
    return _marked("partition_leaders", rows, partition_leaders(cuts.earlier), changed, cuts)


def _marked(
    name: str,
    rows: pl.DataFrame,
    earlier_rows: pl.DataFrame,
    changed: pl.DataFrame,
    cuts: MetadataCuts,
) -> pl.DataFrame:
    """Return rows, and the earlier ones that are no more, with marks where they are not certain.

    Args:
        name: Of the table.
        rows: As the later cut has them.
        earlier_rows: As the earlier one does.
        changed: Columns of the key, of what records between the cuts are about.
        cuts: The two.
    """
    key = list(table(name).key)
    plain = [each for each in rows.columns if each not in (*key, *_MARKS)]
    both = rows.join(
        earlier_rows.select(*key, *plain, pl.lit(value=True).alias("was_there")),
        on=key,
        how="left",
        suffix="_before",
        nulls_equal=True,
    )
    differs = pl.any_horizontal(
        pl.col("was_there").is_null(),
        *(pl.col(each).ne_missing(pl.col(f"{each}_before")) for each in plain),
    )
    between = changed.unique().with_columns(pl.lit(value=True).alias(_IS_BETWEEN))
    ended = earlier_rows.join(rows, on=key, how="anti", nulls_equal=True)
    found = (
        pl.concat(
            [
                both.select(*rows.columns, differs.alias("differs")),
                ended.select(*rows.columns, pl.lit(value=True).alias("differs")),
            ]
        )
        .join(between, on=changed.columns, how="left")
        .with_columns(is_certain=~pl.col("differs") & pl.col(_IS_BETWEEN).is_null())
    )
    return found.with_columns(
        pl.col("complete") & pl.col("is_certain"),
        pl.when("is_certain").then("missing").otherwise(pl.lit(cuts.why)).alias("missing"),
    ).select(rows.columns)
