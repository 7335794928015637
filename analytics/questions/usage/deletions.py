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
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow.compute as pc

from analytics.contracts import polars_rows, table_of_frame
from analytics.questions.usage.sums import ranking
from schemas.finding_rules import tool_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from schemas.finding_rules import GroupTool
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
GROUPS_COLUMNS: Final = tuple(_GROUP)
"""The columns of `groups` that are read."""
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
    rows = generated_names(usage, groups, rules)
    clusters = clusters_of([pattern_sums(rows)], rules)
    found = group_deletions(rows)
    return clusters, found.filter(pc.is_in(found["pattern"], clusters["pattern"].combine_chunks()))


def generated_names(usage: pa.Table, groups: pa.Table, rules: UsageRules) -> pl.DataFrame:
    """Return what some whole groups have whose names look generated, with their `pattern`.

    Args:
        usage: Rows of the table `topic_usage`.
        groups: Rows of the state table `groups`.
        rules: What looks generated.
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
    return rows.with_columns(pl.Series("pattern", patterns, pl.String)).drop_nulls("pattern")


_IS_THERE: Final = pl.col("is_there").is_not_null()
_IS_IDLE: Final = _IS_THERE & pl.col("complete") & (pl.col("member_count").fill_null(0) == 0)
BY_PATTERN: Final = ranking({"pattern": False})
"""The order of `pattern_sums`: several parts may have the same pattern."""


def pattern_sums(rows: pl.DataFrame) -> pl.DataFrame:
    """Add up rows of `generated_names` of some whole groups by pattern; `names` is how many."""
    is_lacking = _IS_THERE & ~pl.col("complete")
    found = (
        rows.sort("group_id")
        .group_by("pattern")
        .agg(
            pl.len().cast(pl.Int64).alias("names"),
            _IS_THERE.sum().cast(pl.Int64).alias("groups"),
            _IS_IDLE.sum().cast(pl.Int64).alias("deletable_groups"),
            *_added(),
            is_lacking.sum().cast(pl.Int64).alias("lacking"),
            pl.col("group_id").filter(is_lacking).first().alias("first_lacking"),
            pl.col("missing").filter(is_lacking).first().alias("first_missing"),
        )
    )
    return BY_PATTERN.sort(found)


def clusters_of(pieces: Iterable[pl.DataFrame], rules: UsageRules) -> pa.Table:
    """Return the table `one_shot_groups`, the most groups first.

    Args:
        pieces: Rows of `pattern_sums` of all parts, some at a time, in the order of `BY_PATTERN`.
        rules: How many groups make a cluster.
    """
    found: list[pl.DataFrame] = []
    waiting: pl.DataFrame | None = None
    for piece in pieces:
        rows = piece if waiting is None else pl.concat([waiting, piece])
        is_last = pl.col("pattern") == pl.col("pattern").last()
        found.append(_clusters(rows.filter(~is_last), rules))
        waiting = rows.filter(is_last)
    if waiting is not None:
        found.append(_clusters(waiting, rules))
    words = pl.format(
        "{} of {} groups cannot be told: {}",
        "lacking",
        "groups",
        pl.col("first_missing").fill_null("None"),
    )
    clusters = pl.concat(found).with_columns(
        complete=pl.col("lacking") == 0, missing=pl.when(pl.col("lacking") > 0).then(words)
    )
    order = ["groups", "live_records", "pattern"]
    return table_of_frame(
        "one_shot_groups",
        clusters.sort(order, descending=[True, True, False], nulls_last=True),
    )


def _clusters(rows: pl.DataFrame, rules: UsageRules) -> pl.DataFrame:
    """Put the sums of parts together, of patterns that are a cluster."""
    together = rows.sort("first_lacking", nulls_last=True).group_by("pattern")
    counts = pl.col("names", "groups", "deletable_groups", "lacking").sum()
    found = together.agg(counts, *_added(), pl.col("first_missing").first())
    return found.filter(pl.col("names") >= rules.least_groups)


def _added() -> list[pl.Expr]:
    return [
        pl.col("records", "live_records").sum(),
        *_sums(("bytes", "live_bytes")),
        pl.col("last_timestamp").max(),
    ]


def group_deletions(rows: pl.DataFrame) -> pa.Table:
    """Return the table `group_deletions`, also of patterns that are no cluster.

    Args:
        rows: Of `generated_names`.
    """
    deletions = rows.filter(_IS_IDLE).with_columns(
        pl.col("live_records").fill_null(0),
        command=_whole_group(),
    )
    return table_of_frame("group_deletions", DELETIONS.sort(deletions))


DELETIONS: Final = ranking({"pattern": False, "group_id": False})
"""The order of `group_deletions`."""


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
        "{} {} --delete --group {}", _tool(_name), pl.lit(_SERVERS), _quoted(pl.col("group_id"))
    )


def _name(tool: GroupTool) -> str:
    return tool.name


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
        _tool(_name),
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
    return table_of_frame("offset_deletions", MOST_OFFSETS.sort(found))


MOST_OFFSETS: Final = ranking({"offsets": True, "group_id": False, "topic": False})
"""The order of `offset_deletions`."""
