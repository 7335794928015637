"""Groups and offsets that a person may want to delete, and the commands that do so, for review.

The tables `one_shot_groups` and `group_deletions`: groups whose names look generated, clusters by
pattern. The table `offset_deletions`: offsets that groups keep of topics that are gone. A
coordinator deletes a topic's offsets when it is told that the topic was deleted. One that was not
told, and clients that commit afterwards, leave offsets that nothing removes while the group lives.
Kafka's tool asks brokers for the partitions of a topic by name, and they no longer know this one:
the command names them (``ConsumerGroupCommand.deleteOffsets``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.contracts import table_of_frame
from analytics.replay.log.arrow_rows import polars_rows
from schemas.group_tools import tool_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from schemas.group_tools import GroupTool
    from schemas.usage_rules import UsageRules

OFFSETS_COLUMNS: Final = ("group_id", "topic", "partition", "commit_timestamp", "complete")
"""The columns of `committed_offsets` that are read."""
_LOG: Final = "metadata_log"
_SUMS: Final = ("records", "bytes", "live_records", "live_bytes")
_SERVERS: Final = '--bootstrap-server "$BOOTSTRAP_SERVER"'
_NEEDS_QUOTES: Final = r"[^a-zA-Z0-9_@%+=:,./-]"
_TIME: Final = pl.Datetime("us", "UTC")
_GROUP: Final = pl.Schema(
    {
        "group_id": pl.String(),
        "group_type": pl.String(),
        "member_count": pl.Int32(),
        "complete": pl.Boolean(),
        "missing": pl.String(),
    }
)
_LIFE: Final = pl.Schema(
    {"topic": pl.String(), "source": pl.String(), "created_at": _TIME, "deleted_at": _TIME}
)


def pattern_of(name: str, patterns: Sequence[tuple[str, str]]) -> str | None:
    """Return a name with what looks generated taken out; None where nothing does."""
    found = name
    for pattern, stands in _compiled(tuple(patterns)):
        found = pattern.sub(stands, found)
    return found if found != name else None


@cache
def _compiled(patterns: tuple[tuple[str, str], ...]) -> tuple[tuple[re.Pattern[str], str], ...]:
    # There may be as many groups as there are CI runs: each is looked at.
    return tuple((re.compile(pattern), stands) for pattern, stands in patterns)


def one_shot_groups(
    usage: pa.Table, groups: pa.Table, rules: UsageRules
) -> tuple[pa.Table, pa.Table]:
    """Return the tables `one_shot_groups`, the most groups first, and `group_deletions`.

    Args:
        usage: The table `topic_usage`.
        groups: The state table `groups`.
        rules: What looks generated, and how many groups make a cluster.
    """
    sums = (
        polars_rows(usage)
        .drop_nulls("group_id")
        .group_by("group_id")
        .agg(*_sums(_SUMS), pl.col("last_timestamp").max())
    )
    there = _groups(groups).with_columns(is_there=pl.lit(value=True))
    rows = sums.join(there, "group_id", "full", coalesce=True).sort("group_id")
    # Patterns are Python's: they look behind and ahead.
    patterns = [pattern_of(name, rules.patterns) for name in rows["group_id"]]
    rows = (
        rows.with_columns(pl.Series("pattern", patterns, pl.String))
        .drop_nulls("pattern")
        .filter(pl.len().over("pattern") >= rules.least_groups)
    )
    is_there = pl.col("is_there").is_not_null()
    is_lacking = is_there & ~pl.col("complete")
    is_idle = is_there & pl.col("complete") & (pl.col("member_count").fill_null(0) == 0)
    counts = [pl.col(name).sum() for name in ("records", "live_records")]
    clusters = rows.group_by("pattern").agg(
        is_there.sum().cast(pl.Int64).alias("groups"),
        is_idle.sum().cast(pl.Int64).alias("deletable_groups"),
        *counts,
        *_sums(("bytes", "live_bytes")),
        pl.col("last_timestamp").max(),
        is_lacking.sum().alias("lacking"),
        pl.col("missing").filter(is_lacking).first().fill_null("None").alias("first_missing"),
    )
    words = pl.format("{} of {} groups cannot be told: {}", "lacking", "groups", "first_missing")
    clusters = clusters.with_columns(
        complete=pl.col("lacking") == 0, missing=pl.when(pl.col("lacking") > 0).then(words)
    )
    order = ["groups", "live_records", "pattern"]
    deletions = rows.filter(is_idle).with_columns(
        pl.col("live_records").fill_null(0),
        command=_whole_group(),
    )
    return (
        table_of_frame(
            "one_shot_groups",
            clusters.sort(order, descending=[True, True, False], nulls_last=True),
        ),
        table_of_frame("group_deletions", deletions.sort("pattern", "group_id")),
    )


def _sums(names: Sequence[str]) -> list[pl.Expr]:
    """Return sums that are null where no row has a number."""
    return [pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum()) for name in names]


def _groups(groups: pa.Table) -> pl.DataFrame:
    return polars_rows(groups.select(_GROUP.names())).cast(_GROUP)


def _tool(of: Callable[[GroupTool], str]) -> pl.Expr:
    """Return something of the tool for each row's group.

    Raises:
        SchemaError: There is no tool for a type of groups.
    """

    def looked_up(types: pl.Series) -> pl.Series:
        names = {name: of(tool_of(name)) for name in types.unique().to_list()}
        return types.replace_strict(names, return_dtype=pl.String) if names else types

    return pl.col("group_type").map_batches(looked_up, return_dtype=pl.String)


def _whole_group() -> pl.Expr:
    """Return the command that deletes each row's group."""
    return pl.format(
        "{} {} --delete --group {}", _tool(_script), pl.lit(_SERVERS), _quoted(pl.col("group_id"))
    )


def _script(tool: GroupTool) -> str:
    return tool.script


def _topic_option(tool: GroupTool) -> str:
    return tool.topic_option


def _quoted(text: pl.Expr) -> pl.Expr:
    """Return texts as a shell takes them for one word, as ``shlex.quote`` does."""
    quoted = pl.format("'{}'", text.str.replace_all("'", "'\"'\"'", literal=True))
    return pl.when(text.str.contains(_NEEDS_QUOTES) | (text == "")).then(quoted).otherwise(text)


def offset_deletions(committed: pa.Table, groups: pa.Table, topics: pa.Table) -> pa.Table:
    """Return a row for each group and topic that is gone, those that take most offsets first.

    A topic is gone where the metadata log, which tells of later than the last commit, knows only of
    lives that have ended, or does not know it. Where that log is not there, nothing is gone. A
    group that a lost record may have changed is left out.

    Args:
        committed: The state table `committed_offsets`: `OFFSETS_COLUMNS`.
        groups: The state table `groups`.
        topics: The state table `topics`.
    """
    lives = polars_rows(topics.select(_LIFE.names())).cast(_LIFE)
    of_log = lives.filter(pl.col("source") == _LOG)
    known_until = of_log.select(pl.max_horizontal("created_at", "deleted_at").max()).item()
    there = lives.filter(pl.col("deleted_at").is_null())["topic"]
    ended = lives.group_by("topic").agg(pl.col("deleted_at").max().alias("topic_deleted_at"))
    offsets = polars_rows(committed.select(OFFSETS_COLUMNS))
    if known_until is None:
        offsets = offsets.clear()
    is_old = pl.col("commit_timestamp") <= pl.lit(known_until, _TIME)
    pairs = (
        offsets.group_by("group_id", "topic")
        .agg(
            pl.len().cast(pl.Int64).alias("offsets"),
            pl.col("commit_timestamp").max().alias("last_commit_at"),
            (is_old.fill_null(value=False) & pl.col("complete")).all().alias("is_gone"),
        )
        .join(_groups(groups), "group_id", "left")
        .with_columns(
            is_gone=pl.col("is_gone")
            & ~pl.col("topic").is_in(there.implode())
            & pl.col("complete").fill_null(value=False)
        )
        .with_columns(topics_left=(~pl.col("is_gone")).sum().over("group_id").cast(pl.Int64))
        .filter("is_gone")
    )
    numbers = (
        offsets.join(pairs, ["group_id", "topic"], "semi")
        .sort("partition")
        .group_by("group_id", "topic")
        .agg(pl.col("partition").cast(pl.String).str.join(","))
    )
    members = pl.col("member_count")
    is_whole = (pl.col("topics_left") == 0) & (members.fill_null(0) == 0)
    place = _quoted(pl.format("{}:{}", "topic", "partition"))
    some = pl.format(
        "{} {} --delete-offsets --group {} {} {}",
        _tool(_script),
        pl.lit(_SERVERS),
        _quoted(pl.col("group_id")),
        _tool(_topic_option),
        place,
    )
    found = (
        pairs.join(numbers, ["group_id", "topic"])
        .join(ended, "topic", "left")
        .with_columns(
            members=members,
            command=pl.when(is_whole).then(_whole_group()).otherwise(some),
        )
    )
    order = ["offsets", "group_id", "topic"]
    return table_of_frame(
        "offset_deletions", found.sort(order, descending=[True, False, False], nulls_last=True)
    )
