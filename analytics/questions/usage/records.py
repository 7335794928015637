"""Decoded records of internal topics as usage looks at them: one frame for all record types.

Every file is read once. What concerns a whole log (which transactions ended how, since when every
record is there, whether times go back) is added up on the way; the records themselves are laid into
buckets of whole groups, in files where they are many, so that a bucket fits into memory.

The table `clock_differences`: records whose times contradict each other.

A coordinator stores a commit with the time at which it was made, and a classic group with the time
at which it entered its state; the record has the time at which it was appended. All three are of
the same broker within less than a second, unless a client gave the time of its commit
(OffsetCommit up to version 1), a clock was set, or clocks of two leaders differ. Offsets expire by
these times (``OffsetExpirationConditionImpl``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import polars_rows, table_of_frame
from analytics.questions.usage.sums import ranking
from analytics.tables.decoded_records import rows_where
from schemas import CONSUMER_OFFSETS, record_types

if TYPE_CHECKING:
    from analytics.workspace import Workspace


COMMITS: Final = "offset_commit"
CLASSIC_GROUPS: Final = "group_metadata"
COLUMNS: Final = (
    *("partition", "offset", "timestamp", "record_type", "is_tombstone"),
    *("is_transactional", "producer_id", "batch_offset", "record_bytes"),
)
"""The columns of every decoded table that are read."""
COMMIT_FIELDS: Final = ("offset", "metadata", "commit_timestamp")
GROUP_FIELDS: Final = ("current_state_timestamp",)
"""The fields of values that are read of commits, and of classic groups."""

RECORD: Final = pl.Schema(
    {
        "topic": pl.Categorical(),
        "table": pl.Categorical(),
        "partition": pl.Int32(),
        "record_type": pl.Int16(),
        "offset": pl.Int64(),
        "batch_offset": pl.Int64(),
        "time_ms": pl.Int64(),
        "bytes": pl.Int64(),
        "is_tombstone": pl.Boolean(),
        "producer_id": pl.Int64(),
        "group_id": pl.String(),
        "name": pl.String(),
        "number": pl.Int64(),
        "value": pl.Int64(),
        "metadata_bytes": pl.Int64(),
        "stated_ms": pl.Int64(),
        "items": pl.Int64(),
    }
)
"""A record: `producer_id` is null outside of transactions; the key is `record_type`, `group_id` (or
the transactional id), `name` and `number`; `value` is the committed offset; `stated_ms` the time
that a commit or a classic group's state says of itself; `items` how many members or topics it
lists. Times are epoch milliseconds. What a record has not is null."""

MARKED: Final = pl.Schema(
    {"marker": pl.Int64(), "is_aborted": pl.Boolean(), "is_open": pl.Boolean()}
)
"""How the transaction of a record ended: see `Transactions.outcomes`."""
_GROUP_FIELDS: Final = ("group", "group_id", "transactional_id")
_MARKER: Final = pl.Schema(
    {
        "topic": pl.String(),
        "partition": pl.Int32(),
        "offset": pl.Int64(),
        "producer_id": pl.Int64(),
        "control_type": pl.String(),
        "record_bytes": pl.Int64(),
    }
)
_LOG: Final = ("topic", "partition")
ROWS: Final = "records"
"""What buckets call the records."""


class Place(NamedTuple):
    """A partition of an internal topic."""

    topic: str
    partition: int


def is_keyed(topic: str, table: str) -> bool:
    """Return whether records of a decoded table have keys."""
    return any(each.table == table and each.key.fields for each in record_types(topic).values())


def records_of(
    topic: str, table: str, records: pa.RecordBatch, lists: Sequence[str] = ()
) -> pl.DataFrame:
    """Return records of a decoded table as `RECORD`.

    Args:
        topic: The internal topic.
        table: Its name.
        records: `COLUMNS`, `key`, and of commits and classic groups the fields of their values.
        lists: Lists of the value whose items are counted.

    Raises:
        KeyError: A column is not there, or a key has more than a name and a number.
    """
    wanted = {COMMITS: COMMIT_FIELDS, CLASSIC_GROUPS: GROUP_FIELDS}.get(table, ())
    _check_columns(topic, table, records, [*wanted, *lists])
    columns: dict[str, pa.Array] = {name: records[name] for name in COLUMNS}
    columns |= _key_columns(records)
    columns |= {f"value.{name}": pc.struct_field(records["value"], name) for name in wanted}
    columns |= {
        f"list.{name}": pc.list_value_length(pc.struct_field(records["value"], name))
        for name in lists
    }
    return polars_rows(pa.table(columns)).select(
        pl.lit(topic, RECORD["topic"]).alias("topic"),
        pl.lit(table, RECORD["table"]).alias("table"),
        *(
            _expression(name, columns, lists).cast(RECORD[name]).alias(name)
            for name in RECORD.names()[2:]
        ),
    )


def _key_columns(records: pa.RecordBatch) -> dict[str, pa.Array]:
    """Return the fields of keys by the names that they have in `RECORD`."""
    columns: dict[str, pa.Array] = {}
    for name in _fields(records, "key"):
        column = pc.struct_field(records["key"], name)
        is_number = pa.types.is_integer(column.type)
        known = "group_id" if name in _GROUP_FIELDS else "number" if is_number else "name"
        if known in columns:
            raise KeyError(f"{name}: a key has one name and one number beside its group")
        columns[known] = column
    return columns


def _expression(name: str, columns: Mapping[str, pa.Array], lists: Sequence[str]) -> pl.Expr:
    """Return what a column of `RECORD` is made of; null where this table has nothing of it."""
    made = {
        "time_ms": _milliseconds("timestamp", columns),
        "bytes": pl.col("record_bytes"),
        "producer_id": pl.when(pl.col("is_transactional")).then(
            pl.col("producer_id").cast(pl.Int64).fill_null(-1)
        ),
        "items": pl.sum_horizontal(
            pl.col(f"list.{each}").cast(pl.Int64).fill_null(0) for each in lists
        )
        if lists
        else None,
        "value": pl.col("value.offset") if "value.offset" in columns else None,
        "metadata_bytes": pl.col("value.metadata").cast(pl.String).str.len_bytes()
        if "value.metadata" in columns
        else None,
        "stated_ms": next(
            (
                _milliseconds(each, columns)
                for each in ("value.commit_timestamp", "value.current_state_timestamp")
                if each in columns
            ),
            None,
        ),
    }
    expression = made.get(name, pl.col(name) if name in columns else None)
    return pl.lit(None) if expression is None else expression


def _milliseconds(name: str, columns: Mapping[str, pa.Array]) -> pl.Expr:
    """Return times as epoch milliseconds; -1 is none."""
    time = pl.col(name)
    if pa.types.is_timestamp(columns[name].type):
        time = time.dt.epoch("ms")
    return pl.when(time >= 0).then(time)


def _fields(records: pa.RecordBatch, name: str) -> list[str]:
    """Return the fields of a struct; none where it is not there."""
    if name not in records.schema.names:
        return []
    return [each.name for each in records.schema.field(name).type]


def _check_columns(topic: str, table: str, records: pa.RecordBatch, values: Sequence[str]) -> None:
    """Raise where a column is not there: what is not read would count as nothing."""
    expected = [*COLUMNS, *(["key"] if is_keyed(topic, table) else [])]
    lacking = [each for each in expected if each not in records.schema.names]
    there = _fields(records, "value")
    lacking += [f"value.{each}" for each in values if each not in there]
    if lacking:
        raise KeyError(f"{table} lacks {', '.join(sorted(lacking))}")


@dataclass(frozen=True)
class Transactions:
    """How the transactions of every producer ended.

    A record belongs to the first marker of its producer behind it. Behind the last there is none:
    the transaction is open, and the last stable offset is its first record.

    Attributes:
        markers: Control records: `topic`, `partition`, `offset`, `producer_id`, `control_type`,
            `record_bytes`.
    """

    markers: pl.DataFrame

    @classmethod
    def of(cls, markers: pa.Table) -> Transactions:
        """Take rows of `control_markers`."""
        rows = polars_rows(markers.select(_MARKER.names()))
        return cls(rows.cast(_MARKER).sort("offset"))

    @classmethod
    def in_workspace(cls, space: Workspace, where: pc.Expression | None = None) -> Transactions:
        """Read the markers of a workspace; `where` says which, None is all."""
        none = pa.schema([(name, pa.null()) for name in _MARKER.names()]).empty_table()
        found = [none, *rows_where(space, "control_markers", _MARKER.names(), where)]
        return cls.of(pa.concat_tables(found, promote_options="default"))

    @classmethod
    def none(cls) -> Transactions:
        """Return no markers."""
        return cls(_MARKER.to_frame())

    def outcomes(self, records: pl.DataFrame) -> pl.DataFrame:
        """Return records with `marker`, the offset at which their transaction ended.

        And `is_aborted`, `is_open`; all of them null or false outside of transactions.
        """
        in_transaction = pl.col("producer_id").is_not_null()
        none = records.filter(~in_transaction).with_columns(
            marker=pl.lit(None, pl.Int64),
            is_aborted=pl.lit(value=False),
            is_open=pl.lit(value=False),
        )
        if len(none) == len(records):
            return none
        ends = self.markers.filter(
            pl.col("control_type").is_in(["ABORT", "COMMIT"]) & pl.col("producer_id").is_not_null()
        ).select(
            pl.col("topic").cast(RECORD["topic"]),
            "partition",
            "producer_id",
            pl.col("offset").alias("marker"),
            (pl.col("control_type") == "ABORT").alias("is_aborted"),
        )
        ended = (
            records.filter(in_transaction)
            .sort("offset")
            .join_asof(
                ends,
                left_on="offset",
                right_on="marker",
                by=[*_LOG, "producer_id"],
                strategy="forward",
                allow_exact_matches=False,
                coalesce=False,
                check_sortedness=False,
            )
            .with_columns(
                pl.col("is_aborted").fill_null(value=False), is_open=pl.col("marker").is_null()
            )
        )
        return pl.concat([none, ended.select(none.columns)])


@dataclass
class LogSums:
    """What is added up of whole logs while their records are read.

    Attributes:
        transactions: How transactions ended.
        complete_from: By partition the offset from which on every record is there; absent: none.
        without_bytes: Records of which nobody knows how many bytes they took.
    """

    transactions: Transactions
    complete_from: Mapping[Place, int]
    without_bytes: int = 0
    _ends: list[pl.DataFrame] = field(default_factory=list)
    _since: list[pl.DataFrame] = field(default_factory=list)

    def add(self, records: pl.DataFrame) -> None:
        """Take records: `RECORD`."""
        self.without_bytes += records["bytes"].null_count()
        log = pl.col("topic").cast(pl.String), pl.col("partition")
        in_transactions = records.filter(pl.col("producer_id").is_not_null())
        if len(in_transactions):
            self._ends.append(
                self.transactions.outcomes(in_transactions)
                .group_by(*log, "marker")
                .agg(pl.col("offset").min())
            )
        values = ~pl.col("is_tombstone") & pl.col("time_ms").is_not_null()
        self._since.append(
            with_complete(records.filter(values), self.complete_from)
            .filter("is_complete")
            .group_by(log)
            .agg(pl.col("time_ms").min().alias("since_ms"))
        )

    def add_sums(self, sums: LogSums) -> None:
        """Take what was added up of other records."""
        self.without_bytes += sums.without_bytes
        self._ends += sums._ends
        self._since += sums._since

    def summed(self) -> LogSums:
        """Return the same without what it was made with, as short as it can be told."""
        ends, since = [self._by_marker], [self.since]
        return LogSums(Transactions.none(), {}, self.without_bytes, ends, since)

    @property
    def since(self) -> pl.DataFrame:
        """By `topic` and `partition` the time from which on every record is there: `since_ms`."""
        none = pl.Schema({"topic": pl.String, "partition": pl.Int32, "since_ms": pl.Int64})
        found = pl.concat([none.to_frame(), *self._since])
        return found.group_by(_LOG).agg(pl.col("since_ms").min())

    @property
    def first_open(self) -> dict[Place, int]:
        """By partition the first record of a transaction that had not ended."""
        rows = self._by_marker.filter(pl.col("marker").is_null())
        firsts = rows.select(*_LOG, "offset").rows()
        return {Place(topic, partition): offset for topic, partition, offset in firsts}

    @property
    def markers(self) -> pl.DataFrame:
        """The control records, and `is_needed`: records of its transaction are still there."""
        needed = self._by_marker.select(*_LOG, pl.col("marker").alias("offset"), is_needed=True)
        return self.transactions.markers.join(needed, [*_LOG, "offset"], "left").with_columns(
            pl.col("is_needed").fill_null(value=False)
        )

    @property
    def _by_marker(self) -> pl.DataFrame:
        types = {"topic": pl.String, "partition": pl.Int32, "marker": pl.Int64, "offset": pl.Int64}
        found = pl.concat([pl.Schema(types).to_frame(), *self._ends])
        return found.group_by(*_LOG, "marker").agg(pl.col("offset").min())


def with_complete(records: pl.DataFrame, complete_from: Mapping[Place, int]) -> pl.DataFrame:
    """Return records with `is_complete`: no record of the log from there on is gone."""
    known = by_place(complete_from, "complete_from")
    joined = records.join(known, _LOG, "left")
    is_complete = (pl.col("offset") >= pl.col("complete_from")).fill_null(value=False)
    return joined.with_columns(is_complete=is_complete).drop("complete_from")


def by_place(numbers: Mapping[Place, int | None], name: str) -> pl.DataFrame:
    """Return a number of each partition as a frame that records can be joined with."""
    return pl.DataFrame(
        [(topic, partition, number) for (topic, partition), number in numbers.items()],
        {"topic": RECORD["topic"], "partition": RECORD["partition"], name: pl.Int64()},
        orient="row",
    )


COMMIT_TIME, STATE_TIME, APPEND_TIME = "commit_time", "state_time", "append_time"
_SAME: Final = ("partition", "clock", "group_id")
_APART: Final = pl.Schema(
    {
        "partition": pl.Int32(),
        "clock": pl.String(),
        "group_id": pl.String(),
        "first_offset": pl.Int64(),
        "first_at": pl.Int64(),
        "least": pl.Int64(),
        "most": pl.Int64(),
        "records": pl.Int64(),
    }
)
LATEST: Final = pl.Schema({"partition": pl.Int32(), "latest": pl.Int64()})


def stated_times(records: pl.DataFrame, limit_ms: int) -> pl.DataFrame:
    """Return where records state other times than those at which they were appended.

    A group that is stored anew stays in the state that it entered long ago; it cannot have entered
    one after its record was appended.

    Args:
        records: `RECORD`.
        limit_ms: Up to so many milliseconds are none; whole ones, as times may be any number of 64
            bits, which a fraction is not compared with.

    Returns:
        By `partition`, `clock` and `group_id` how far they are ahead, in milliseconds (`least`,
        `most`), in how many `records`, their `first_offset` and the first time, `first_at` (ms).
    """
    ahead = pl.col("stated_ms") - pl.col("time_ms")
    is_commit, is_state = (pl.col("table") == each for each in (COMMITS, CLASSIC_GROUPS))
    is_apart = (is_commit & (ahead.abs() > limit_ms)) | (is_state & (ahead > limit_ms))
    clock = pl.when(is_commit).then(pl.lit(COMMIT_TIME)).otherwise(pl.lit(STATE_TIME))
    return _apart(records.filter(is_apart), clock, pl.col("group_id"), ahead)


@dataclass
class AppendTimes:
    """Commits that were appended before an earlier one of their log, by their times.

    Attributes:
        limit_ms: Up to so many milliseconds are none.
        latest: By `partition` the `latest` time (ms) of the commits before.
    """

    limit_ms: int
    latest: pl.DataFrame = field(default_factory=LATEST.to_frame)
    _found: list[pl.DataFrame] = field(default_factory=list)

    def add(self, records: pl.DataFrame) -> None:
        """Take records in the order of the log: `RECORD`."""
        is_timed = (pl.col("table") == COMMITS) & pl.col("time_ms").is_not_null()
        rows = records.filter(is_timed).join(self.latest, "partition", "left")
        if not len(rows):
            return
        so_far = pl.max_horizontal("latest", pl.col("time_ms").cum_max().over("partition"))
        rows = rows.with_columns(latest=so_far)
        behind = pl.col("time_ms") - pl.col("latest")
        apart = rows.filter(behind < -self.limit_ms)
        if len(apart):
            self._found.append(_apart(apart, pl.lit(APPEND_TIME), pl.lit(None), behind))
        latest = pl.concat([self.latest, rows.select("partition", "latest")])
        self.latest = latest.group_by("partition").agg(pl.col("latest").max())

    def add_found(self, rows: pl.DataFrame) -> None:
        """Take what was found in a later piece of the log."""
        self._found.append(rows)

    @property
    def rows(self) -> pl.DataFrame:
        """What was found, as `stated_times` returns it."""
        return pl.concat([_APART.to_frame(), *self._found])


def clock_differences(made: pl.DataFrame) -> pa.Table:
    """Return the table `clock_differences`, the largest first.

    Args:
        made: What `stated_times` returned of all buckets, and the rows of `AppendTimes`.
    """
    found = (
        made.group_by(_SAME)
        .agg(
            pl.col("first_offset", "first_at", "least").min(),
            pl.col("most").max(),
            pl.col("records").sum(),
        )
        .with_columns(
            topic=pl.lit(CONSUMER_OFFSETS),
            most_ahead_ms=pl.when(pl.col("most") > 0).then("most"),
            most_behind_ms=pl.when(pl.col("least") < 0).then(-pl.col("least")),
            most_ms=pl.max_horizontal("most", -pl.col("least")),
            first_at=pl.from_epoch("first_at", "ms").dt.replace_time_zone("UTC"),
        )
    )
    return table_of_frame("clock_differences", MOST_APART.sort(found))


MOST_APART: Final = ranking(
    {"most_ms": True, "partition": False, "clock": False, "group_id": False}
)
"""The order of `clock_differences`."""


def _apart(rows: pl.DataFrame, clock: pl.Expr, group: pl.Expr, ahead: pl.Expr) -> pl.DataFrame:
    return (
        rows.select(
            "partition",
            clock.alias("clock"),
            group.cast(pl.String).alias("group_id"),
            "offset",
            "time_ms",
            ahead.alias("ahead"),
        )
        .group_by(_SAME)
        .agg(
            pl.col("offset").min().alias("first_offset"),
            pl.col("time_ms").min().alias("first_at"),
            pl.col("ahead").min().alias("least"),
            pl.col("ahead").max().alias("most"),
            pl.len().cast(pl.Int64).alias("records"),
        )
    )
