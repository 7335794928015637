"""Commits and markers as rows, and which commits of archived rows took effect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import polars as pl

from analytics.contracts import offset_in_force, uuid
from analytics.dump.inspection.found_losses import UNDECIDED
from analytics.replay.log.losses import HOME, lost_between, uncompacted_from
from schemas import CONSUMER_OFFSETS

if TYPE_CHECKING:
    from analytics.replay.log.log_times import Decoded
    from analytics.replay.log.losses import Coverage
    from analytics.replay.log.rules import ReplayRules

# Commits and markers as rows of plain columns: what all that follows them takes.
#
# Takes the decoded tables `offset_commit` and `control_markers`, cut at an instant; gives
# `COMMITS` and `MARKERS`.

# The keys of commits as numbers: what follows them key by key does not look at names.
#
# Names are looked at once for all rows in a row that have them: a group commits what it has read of
# several partitions at a time.

GROUP, TOPIC, PLACE = "group_number", "topic_number", "place"
"""Numbers of a group, of a topic of a group, and of a `KEY`, each in the order of names."""
_NAMES: Final = ("group_id", "coordinator_partition", "topic")
_NAMES_OF: Final = {GROUP: _NAMES[:2], TOPIC: _NAMES}
_PARTITIONS: Final = 2**32
"""More than there are numbers of partitions."""


def placed_commits(decoded: pl.DataFrame) -> pl.DataFrame:
    """Return `COMMITS` of the decoded table `offset_commit`, in the order of the log.

    Returns:
        Also what `with_places` adds, and `row`: the number of the row in the table.
    """
    return in_log_order(with_places(commit_rows(decoded).with_row_index("row")))


def with_places(commits: pl.DataFrame) -> pl.DataFrame:
    """Add `GROUP`, `TOPIC` and `PLACE`.

    Args:
        commits: Have `KEY`; where they have these numbers, too, they stay as they are.
    """
    return commits if PLACE in commits.columns else places_and_names(commits)[0]


def places_and_names(commits: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return commits with `GROUP`, `TOPIC` and `PLACE`, and what these numbers stand for.

    Args:
        commits: Have `KEY`.

    Returns:
        Beside the commits a row for each topic of a group, in the order of `TOPIC`, which counts
        them from 0: its names, `TOPIC` and `GROUP`.
    """
    runs = _Runs.of(commits, _NAMES)
    ordered = runs.named.with_row_index("nth").sort(_NAMES)
    numbers = (pl.struct(names).rle_id().alias(number) for number, names in _NAMES_OF.items())
    told = ordered.with_columns(numbers)
    of_runs = told.select("nth", TOPIC, GROUP).sort("nth").drop("nth")
    placed = commits.with_columns(of_runs[runs.run]).with_columns(place().alias(PLACE))
    is_another = pl.col(TOPIC).ne_missing(pl.col(TOPIC).shift(1))
    return placed, told.filter(is_another).drop("nth")


def place() -> pl.Expr:
    """Return `PLACE` of rows that have `TOPIC` and `partition`."""
    return pl.col(TOPIC).cast(pl.Int64) * _PARTITIONS + pl.col("partition")


def numbered(rows: pl.DataFrame, number: str, commits: pl.DataFrame) -> pl.DataFrame:
    """Keep rows of what commits are of, and number it as they do.

    Args:
        rows: Have the names.
        number: `GROUP` or `TOPIC`.
        commits: Of `with_places`.
    """
    is_another = pl.col(number).ne_missing(pl.col(number).shift(1))
    told = commits.select(*_NAMES_OF[number], number).filter(is_another).unique(number)
    numbers = _Runs.of(rows, _NAMES_OF[number]).of_rows(told)
    return rows.with_columns(numbers).drop_nulls(number)


def in_log_order(rows: pl.DataFrame, by: str = "record_offset") -> pl.DataFrame:
    """Sort rows by the coordinator's partition, an offset of it and `PLACE`.

    What is in order is left as it is: records are decoded in that order.
    """
    order = ("coordinator_partition", by, PLACE)
    return rows if _is_sorted(rows, order) else sorted_by(rows, *order)


def sorted_by(rows: pl.DataFrame, *numbers: str) -> pl.DataFrame:
    """Sort rows by columns of numbers: by one after the other, which takes less than by all.

    Where the first brings them into order, as it does what was in the order of the log, it is all.
    """
    order = rows.select(numbers).with_row_index("nth")
    sorted_ = order.sort(numbers[0], maintain_order=True)
    if not _is_sorted(sorted_, numbers):
        for number in reversed(numbers):
            order = order.sort(number, maintain_order=True)
        sorted_ = order
    return rows[sorted_["nth"]]


def _is_sorted(rows: pl.DataFrame, names: Sequence[str]) -> bool:
    is_next = pl.lit(value=True)
    for name in reversed(names):
        one, next_ = pl.col(name), pl.col(name).shift(-1)
        is_next = (one < next_) | ((one == next_) & is_next)
    found: bool = rows.select(is_next.all()).item()
    return found


def first_of_runs(rows: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return what some columns say in the first row of each run of rows in which it is the same."""
    return _Runs.of(rows, names).named


@dataclass(frozen=True)
class _Runs:
    """Runs of rows in which the same is named.

    Attributes:
        named: Of each run.
        run: Of each row.
    """

    named: pl.DataFrame
    run: pl.Series

    @classmethod
    def of(cls, rows: pl.DataFrame, names: Sequence[str]) -> Self:
        """Return the runs in which some columns say the same."""
        run = rows.select(pl.struct(names).rle_id()).to_series()
        return cls(rows.select(names).filter(run.ne_missing(run.shift(1))), run)

    def of_rows(self, of_names: pl.DataFrame) -> pl.DataFrame:
        """Return of each row what is told of what it names, null where nothing is."""
        names = self.named.columns
        found = self.named.join(
            of_names, on=names, how="left", nulls_equal=True, maintain_order="left"
        )
        return found.drop(names)[self.run]


KEY: Final = ("coordinator_partition", "group_id", "topic", "partition")
"""What tells committed offsets apart."""

_TEXT, _INT, _LONG, _TIME = pl.String(), pl.Int32(), pl.Int64(), pl.Datetime("us", "UTC")
_COMMITS: Final[dict[str, tuple[str, pl.DataType]]] = {
    "coordinator_partition": ("partition", _INT),
    "group_id": ("key.group", _TEXT),
    "topic": ("key.topic", _TEXT),
    "partition": ("key.partition", _INT),
    "record_offset": ("offset", _LONG),
    "committed_at": ("timestamp", _TIME),
    "is_tombstone": ("is_tombstone", pl.Boolean()),
    "committed_offset": ("value.offset", _LONG),
    "stored_offset": ("value.offset", _LONG),
    "commit_ms": ("value.commit_timestamp", _LONG),
    "expire_ms": ("value.expire_timestamp", _LONG),
    "value_version": ("value_version", pl.Int16()),
    "topic_id": ("value.topic_id", _TEXT),
    "committed_leader_epoch": ("value.leader_epoch", _INT),
    "producer_id": ("producer_id", _LONG),
    "is_transactional": ("is_transactional", pl.Boolean()),
    "leader_epoch": ("leader_epoch", _INT),
    "copy": ("copy", _TEXT),
    "segment": ("segment", _TEXT),
    "batch_position": ("batch_position", _LONG),
    "batch_offset": ("batch_offset", _LONG),
}
_MARKERS: Final[dict[str, tuple[str, pl.DataType]]] = {
    "coordinator_partition": ("partition", _INT),
    "producer_id": ("producer_id", _LONG),
    "end_offset": ("offset", _LONG),
    "end_at": ("timestamp", _TIME),
    "outcome": ("control_type", _TEXT),
    "leader_epoch": ("leader_epoch", _INT),
    "copy": ("copy", _TEXT),
    "segment": ("segment", _TEXT),
    "batch_position": ("batch_position", _LONG),
}
COMMITS: Final = pl.Schema({name: kind for name, (_, kind) in _COMMITS.items()})
"""A row per commit or tombstone. `commit_ms` and `expire_ms` are Kafka's longs, -1 where absent;
`committed_at` is the record's time; `committed_offset` is null where the `stored_offset` is below
0, which is none."""
MARKERS: Final = pl.Schema({name: kind for name, (_, kind) in _MARKERS.items()})
"""A row per marker; `outcome` is its type (COMMIT, ABORT)."""

COMMIT_FIELDS: Final = {name: field for name, (field, _) in _COMMITS.items()}
MARKER_FIELDS: Final = {name: field for name, (field, _) in _MARKERS.items()}
"""By column the field of the decoded table that it is. Rows read by `COMMIT_FIELDS` go through
`with_offsets_in_force`, as a field says what was stored."""


def commit_rows(decoded: pl.DataFrame, columns: Iterable[str] = COMMITS) -> pl.DataFrame:
    """Return `COMMITS`, or some of these columns, of the decoded table `offset_commit`."""
    return decoded.select(_column(name, *_COMMITS[name]) for name in columns)


def with_offsets_in_force(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows read by `COMMIT_FIELDS`, their `committed_offset` as `COMMITS` has it."""
    return rows.with_columns(offset_in_force(pl.col("committed_offset")))


def marker_rows(decoded: pl.DataFrame) -> pl.DataFrame:
    """Return `MARKERS` of the decoded table `control_markers`: those of the offsets topic."""
    of_topic = decoded.filter(pl.col("topic") == CONSUMER_OFFSETS)
    return of_topic.select(_column(name, *told) for name, told in _MARKERS.items())


def _column(name: str, field: str, kind: pl.DataType) -> pl.Expr:
    column, *inner = field.split(".")
    value = pl.col(column)
    for each in inner:
        value = value.struct.field(each)
    meant = offset_in_force(value) if name == "committed_offset" else value
    return meant.cast(kind).alias(name)


# Commits of archived rows, of which no producer id and no marker tells whether they took effect.
#
# A commit in a transaction counts only once a COMMIT marker follows, and never where it was
# aborted. Archived rows show neither, so that any commit may be of that kind. Two things are
# certain: a tombstone is written by the coordinator itself; and a commit that names its topic's
# id did not come in a transaction, as no release up to 4.4 gives the id to those that do
# (``OffsetAndMetadata.fromRequest``). Of a key, what is certain is the last of these two. Any
# commit after that may or may not be in force.

UNKNOWN: Final = "unknown"
MAY_BE_ABORTED: Final = f"{UNDECIDED}: this commit may never have taken effect"
MAY_HAVE_BEEN_ABORTED: Final = (
    f"{UNDECIDED}: the commit before this change may never have taken effect"
)


def is_undecided(coverage: Coverage, topic_id: pl.Expr, *, is_commit: pl.Expr) -> pl.Expr:
    """Return whether nothing tells if a commit was in a transaction.

    Args:
        coverage: What the dump holds; rows have `coordinator_partition`.
        topic_id: The topic's id in the commit's value, null or zero where there is none.
        is_commit: Whether the row is a commit, not a tombstone.
    """
    return _is_archived(coverage) & is_commit & uuid(topic_id).is_null()


def with_range(
    committed: pl.DataFrame,
    commits: pl.DataFrame,
    decoded: Decoded,
    rules: ReplayRules,
    coverage: Coverage,
) -> pl.DataFrame:
    """Add `undecided` to commits in force: what else may be in force, in words; null if certain.

    The `via` of such a commit is `unknown`.

    Args:
        committed: The last commit of each `PLACE`, and its `via`.
        commits: Of `placed_commits`, all of these places.
        decoded: Decoded tables of the same groups, cut at the instant.
        rules: Of the release.
        coverage: What the dump holds.
    """
    if not coverage.undecided:
        return committed.with_columns(undecided=pl.lit(None, pl.String))
    ranges = _ranges(commits, decoded["offset_commit"], rules, coverage)
    told = committed.join(ranges, on=PLACE, how="left", maintain_order="left")
    via = pl.when(pl.col("undecided").is_null()).then("via").otherwise(pl.lit(UNKNOWN))
    return told.with_columns(via.alias("via"))


def removed_for_now(commits: pl.DataFrame, coverage: Coverage) -> pl.DataFrame:
    """Return the last commit of keys whose last record is a tombstone: it may be in force again.

    Up to 3.9 a tombstone leaves what is pending, which takes effect with a marker behind it. Where
    no offset behind the tombstone is without a row, there is no such marker.

    Args:
        commits: `PLACE`, `record_offset`, `is_tombstone` and whatever else; of one place in the
            order of the log.
        coverage: What the dump holds.
    """
    archived = commits.filter(_is_archived(coverage))
    is_tombstone = pl.col("is_tombstone")
    removed = archived.filter(is_tombstone).select(PLACE, removed_at="record_offset")
    removed = removed.unique(PLACE, keep="last", maintain_order=True)
    committed = archived.filter(~is_tombstone & pl.col(PLACE).is_in(removed[PLACE].implode()))
    committed = committed.unique(PLACE, keep="last", maintain_order=True)
    removed_at = pl.col("removed_at")
    may_be = (removed_at > pl.col("record_offset")) & (removed_at < uncompacted_from(coverage))
    return committed.join(removed, on=PLACE).filter(may_be).drop("removed_at")


def _is_archived(coverage: Coverage) -> pl.Expr:
    return pl.col(HOME).is_in(sorted(coverage.undecided))


def _ranges(
    commits: pl.DataFrame, decoded: pl.DataFrame, rules: ReplayRules, coverage: Coverage
) -> pl.DataFrame:
    """Return `PLACE` and `undecided`, where there are commits that may or may not be in force."""
    is_tombstone, offset = pl.col("is_tombstone"), pl.col("record_offset")
    archived = commits.select("row", PLACE, HOME, "record_offset", "is_tombstone").filter(
        _is_archived(coverage)
    )
    values = commit_rows(decoded, ("topic_id", "committed_offset"))[archived["row"]]
    undecided = is_undecided(coverage, pl.col("topic_id"), is_commit=~is_tombstone)
    rows = archived.hstack(values).with_columns(undecided.alias("undecided"))
    is_certain = ~pl.col("undecided")
    if not rules.tombstones_remove_everything:
        # A tombstone ends nothing for sure while a marker may follow it.
        is_certain &= ~is_tombstone | (offset >= uncompacted_from(coverage))
    # Rows of one place lie in the order of the log.
    last = (
        rows.filter(is_certain)
        .unique(PLACE, keep="last", maintain_order=True)
        .select(PLACE, offset.alias("last"), pl.col("committed_offset").alias("last_committed"))
    )
    committed = pl.col("committed_offset")
    found = (
        rows.filter("undecided")
        .join(last, on=PLACE, how="left")
        .filter(pl.col("last").is_null() | (offset > pl.col("last")))
        .group_by(PLACE)
        .agg(
            committed.n_unique().alias("values"),
            committed.min().alias("least"),
            committed.max().alias("most"),
            offset.min().alias("first"),
            pl.col(HOME, "last", "last_committed").first(),
        )
    )
    is_lost = lost_between(coverage, pl.col("last").fill_null(-1), pl.col("first"))
    lost = pl.when(is_lost.is_not_null()).then(pl.lit(", or one that is not in the rows"))
    before = pl.col("last_committed").cast(pl.String).fill_null("none")
    several = pl.format("any of {} offsets from {} to {}", "values", "least", "most")
    what = pl.when(pl.col("values") == 1).then(pl.col("most").cast(pl.String)).otherwise(several)
    words = pl.format(f"{UNDECIDED}: it may be {{}}, or {{}}{{}}", what, before, lost.fill_null(""))
    return found.select(PLACE, words.alias("undecided"))
