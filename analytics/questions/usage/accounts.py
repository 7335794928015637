"""Where every byte of internal partitions is, and what they cost the broker that leads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import polars as pl

from analytics.contracts import contract_schema, polars_rows, table_of_frame
from analytics.gaps.gap import Gap, gap
from analytics.gaps.internal_topics import OPTIONS, by_option
from analytics.questions.sums import divided
from analytics.replay.dump.followed_lines import parsed_time
from analytics.replay.log.topic_homes import hash_places
from schemas import CONSUMER_OFFSETS, COORDINATOR_TOPICS

if TYPE_CHECKING:
    import pyarrow as pa

    from schemas.manifest import AccountEntry, Manifest, PartitionEntry, RecordFate, UnreadableEntry
    from schemas.usage_rules import UsageRules

# Where every byte of the files of internal partitions is: the table `partition_usage`.
#
# And whether bytes come out even, which no decoded table tells of records outside of it, and what
# of usage cannot be told.

PARTS: Final = (
    *("header_bytes", "record_bytes", "control_bytes", "compressed_bytes"),
    *("damaged_bytes", "trailing_bytes", "unreadable_bytes", "unexplained_bytes"),
)
"""Columns that add up to `file_bytes`."""
_DECODED: Final = "decoded"
_IN_TABLES: Final = (_DECODED, "control_markers", "undecoded")
_DIVERGED: Final = "diverged"
_UNSELECTED: Final = "unselected_type:"
_MOST_NAMED: Final = 5


def partition_usage(manifest: Manifest) -> pa.Table:
    """Return the table, from the accounts of a decode run.

    Bytes are null where the run did not say what they are: an older release decoded, or records
    are archived rows.
    """
    accounts = {_place(each): each for each in manifest["reconciliation"]}
    rows = [
        _row(each, accounts.get(_place(each)))
        for each in manifest["partitions"]
        if _place(each) in accounts or each["copy"] is not None
    ]
    made = pl.DataFrame(rows, contract_schema("partition_usage"))
    key = ["topic", "partition", "copy"]
    return table_of_frame("partition_usage", made.sort(key, nulls_last=True))


def _place(row: PartitionEntry | AccountEntry) -> tuple[str | None, str | None, int | None]:
    return row["copy"], row["topic"], row["partition"]


def _row(partition: PartitionEntry, account: AccountEntry | None) -> dict[str, Any]:
    account = account or {}
    is_archived = partition["copy"] is None
    use = account.get("bytes_of_batches")
    files = partition["files"]
    size = None if is_archived else sum(each["size"] for each in files)
    told: dict[str, Any] = dict.fromkeys((*PARTS, "uncompressed_bytes", "empty_batches"))
    if use is not None and not is_archived:
        told |= {
            "header_bytes": use["headers"],
            "record_bytes": use["plain"],
            "control_bytes": use["control"],
            "compressed_bytes": use["compressed"],
            "damaged_bytes": account["bytes_damaged"],
            "trailing_bytes": account["bytes_trailing"],
            "unreadable_bytes": account["bytes_unreadable"],
            "uncompressed_bytes": use["uncompressed"],
            "empty_batches": use["empty_batches"],
        }
        told["unexplained_bytes"] = size - sum(told[name] for name in PARTS[:-1])
    fates = None if is_archived else account.get("record_fates")
    return {
        "topic": partition["topic"],
        "partition": partition["partition"],
        "copy": partition["copy"],
        "is_leading": partition.get("is_leading", True),
        "files": len(files),
        "file_bytes": size,
        **told,
        "batches": partition.get("batches"),
        "records": account.get("records", partition["records"]),
        **_fates(fates),
    }


def _fates(fates: Mapping[str, RecordFate] | None) -> dict[str, int | None]:
    """Return bytes of records by where they went."""
    if fates is None:
        return dict.fromkeys(("told_bytes", "diverged_bytes", "left_out_bytes"))
    told = diverged = left_out = 0
    for fate, each in fates.items():
        if is_in_tables(fate):
            told += each["bytes"]
        elif fate == _DIVERGED:
            diverged += each["bytes"]
        else:
            left_out += each["bytes"]
    return {"told_bytes": told, "diverged_bytes": diverged, "left_out_bytes": left_out}


def is_in_tables(fate: str) -> bool:
    """Return whether records that went there are in `topic_usage`."""
    return fate in _IN_TABLES or fate.startswith(_UNSELECTED)


@dataclass(frozen=True)
class Identity:
    """Whether bytes come out even, and between what they do not.

    Attributes:
        file_bytes: Of all files, in all copies.
        unexplained: Bytes of files that nothing accounts for.
        uncounted: By place, bytes of records that files hold and `topic_usage` does not, or the
            other way round (below zero).
        unchecked: Partitions whose bytes nobody accounted for.
    """

    file_bytes: int
    unexplained: int
    uncounted: Mapping[tuple[str, int], int]
    unchecked: Sequence[str]

    @property
    def holds(self) -> bool:
        """Whether every byte is accounted for."""
        return not (self.unexplained or self.uncounted or self.unchecked)


def identity(partitions: pa.Table, usage: pa.Table) -> Identity:
    """Hold files, batches and records against each other.

    Args:
        partitions: The table `partition_usage`.
        usage: The table `topic_usage` of all groups.
    """
    has_files = polars_rows(partitions).drop_nulls("file_bytes")
    checked = has_files.drop_nulls(["header_bytes", "told_bytes"])
    unchecked = has_files.filter(pl.any_horizontal(pl.col("header_bytes", "told_bytes").is_null()))
    log = ["topic", "partition"]
    in_files = checked.group_by(log).agg(pl.col("told_bytes").sum())
    in_rows = polars_rows(usage).group_by(log).agg(pl.col("bytes").sum())
    uncounted = in_files.join(in_rows, log, "left").select(
        *log, pl.col("told_bytes") - pl.col("bytes").fill_null(0)
    )
    uncounted = uncounted.filter(pl.col("told_bytes") != 0).sort(log)
    return Identity(
        int(has_files["file_bytes"].sum()),
        int(checked["unexplained_bytes"].abs().sum()),
        {(topic, partition): size for topic, partition, size in uncounted.rows()},
        [f"{topic}-{partition}" for topic, partition in unchecked.select(log).rows()],
    )


def untabled_usage(accounts: Iterable[AccountEntry]) -> pl.DataFrame:
    """Return rows of `topic_usage` for records that are in none of the decoded tables.

    Control records, those that could not be decoded, and those of types that are only counted.
    Archived rows do not say how many bytes they took, and not all of them whose they are.

    Args:
        accounts: Of a decode run (`reconciliation`).
    """
    rows = [
        (
            account["topic"],
            account["partition"],
            fate,
            each["records"],
            None if account["copy"] is None else each["bytes"],
        )
        for account in accounts
        if account["topic"] is not None and account["partition"] is not None
        for fate, each in account.get("record_fates", {}).items()
        if is_in_tables(fate) and fate != _DECODED
    ]
    types = {"topic": pl.String, "partition": pl.Int32, "record_type": pl.String}
    found = pl.DataFrame(rows, {**types, "records": pl.Int64, "bytes": pl.Int64}, orient="row")
    is_known = pl.col("bytes").is_not_null().all()
    return found.group_by(list(types)).agg(
        pl.col("records").sum(), pl.when(is_known).then(pl.col("bytes").sum())
    )


def gaps_in_usage(manifest: Manifest, identity: Identity) -> list[Gap]:
    """Return what the dump does not tell.

    Args:
        manifest: Of a decode run.
        identity: Whether bytes come out even.
    """
    return [
        *_filtered(manifest),
        *_absent(manifest),
        *_lost(manifest),
        *_later(manifest),
        *(
            gap("file_unreadable", file=_file(each), why=each["why"])
            for each in manifest.get("unreadable", ())
        ),
        *_archived(manifest),
        *_uneven(identity),
    ]


def _filtered(manifest: Manifest) -> list[Gap]:
    """What a decode run was told to leave out is in no table."""
    given = [OPTIONS[name] for name, some in by_option(manifest["options"]).items() if some]
    return [gap("records_left_out", filters=", ".join(given))] if given else []


def _absent(manifest: Manifest) -> list[Gap]:
    return [
        gap(
            "usage_without_copy",
            topic=topic,
            partitions=", ".join(map(str, numbers[:_MOST_NAMED])),
            more=max(len(numbers) - _MOST_NAMED, 0) or None,
        )
        for topic, numbers in manifest["absent_partitions"].items()
        if numbers
    ]


def _lost(manifest: Manifest) -> list[Gap]:
    """A record that is lost may be the last of its key, or a marker."""
    return [
        gap(
            "last_of_key_lost",
            topic=each["topic"],
            partition=each["partition"],
            lost=each["lacks"],
        )
        for each in manifest["partitions"]
        if each.get("lacks") and each.get("is_leading", True)
    ]


def _later(manifest: Manifest) -> list[Gap]:
    """A later leader may have written the last record of any key."""
    return [
        gap(
            "last_of_key_elsewhere",
            topic=each["topic"],
            partition=each["partition"],
            from_offset=each["absent_leaders"][0]["first_offset"],
            from_time=parsed_time(each["absent_leaders"][0]["since"]),
            why=each["absent_leaders"][0]["why"],
        )
        for each in manifest["partitions"]
        if each.get("absent_leaders")
    ]


def _archived(manifest: Manifest) -> list[Gap]:
    rows = [each for each in manifest["partitions"] if each["copy"] is None]
    return [gap("archived_bytes", partitions=len(rows))] if rows else []


def _uneven(identity: Identity) -> list[Gap]:
    gaps = []
    if identity.unchecked:
        gaps.append(gap("bytes_of_another_version"))
    if identity.unexplained:
        gaps.append(gap("bytes_unexplained", unexplained=identity.unexplained))
    if identity.uncounted:
        topic, partition = next(iter(identity.uncounted))
        uncounted = sum(map(abs, identity.uncounted.values()))
        gaps.append(gap("bytes_uncounted", topic=topic, partition=partition, uncounted=uncounted))
    return gaps


def _file(row: UnreadableEntry) -> str:
    return ": ".join(each for each in (row["copy"], row["segment"]) if each)


# The table `coordinator_load`: what partitions cost the broker that leads them.

_MOST_PARTITIONS: Final = 1000
_LEAST_GROUPS: Final = 5
"""So many groups at least must agree on a number of partitions that nobody names."""
_FEW: Final = 1000
_LOG: Final = ("topic", "partition")


@dataclass(frozen=True)
class Placed:
    """How groups lie on the partitions of `__consumer_offsets`.

    Attributes:
        partitions: How many it has; None where nothing says.
        misplaced: The first groups in a partition that their hash does not belong to, and that one.
        fits: Another number of partitions with which all of them would be where they belong.
        misplaced_in: By partition, how many groups do not belong there.
    """

    partitions: int | None
    misplaced: tuple[tuple[str, int, int], ...]
    fits: int | None
    misplaced_in: Mapping[int, int] = field(default_factory=dict)

    @property
    def misplaced_groups(self) -> int:
        """How many groups lie where no broker looks for them."""
        return sum(self.misplaced_in.values())


class PlacedPart(NamedTuple):
    """How some of the groups lie.

    Attributes:
        groups: How many, with each partition that has one of them.
        misplaced: As `Placed` has them.
        misplaced_in: Likewise.
        numbers: With which numbers of partitions all of them would be where they belong.
    """

    groups: int
    misplaced: Sequence[tuple[str, int, int]]
    misplaced_in: Mapping[int, int]
    numbers: frozenset[int]


def placed(groups: pl.DataFrame, partitions: int | None) -> Placed:
    """Hold groups against their hashes (``Utils.abs(hashCode) % partitions``).

    Args:
        groups: `group_id` and `partition` of groups with commits or records of their own.
        partitions: How many partitions the topic has; None where nothing says.
    """
    return placed_together([placed_part(groups, partitions)], partitions)


def placed_part(groups: pl.DataFrame, partitions: int | None) -> PlacedPart:
    """Hold some of the groups against their hashes; see `placed`."""
    numbers = np.arange(1, _MOST_PARTITIONS + 1)
    if groups.is_empty():
        return PlacedPart(0, (), {}, frozenset(numbers.tolist()))
    hashes, here = hash_places(groups["group_id"]), groups["partition"].cast(pl.Int64).to_numpy()
    homes = hashes % (partitions or 1)
    wrong = np.flatnonzero(homes != here) if partitions else np.zeros(0, np.int64)
    # Many numbers fit few groups: the first ones leave hardly any.
    for some in (slice(_FEW), slice(_FEW, None)):
        are_home = hashes[some] % numbers[:, None] == here[some]
        numbers = numbers[are_home.all(axis=1)]
    found = groups.with_columns(pl.Series("home", homes))[wrong]
    counts = found.group_by("partition").len()
    return PlacedPart(
        groups.n_unique(),
        found.select("group_id", "partition", "home").sort(pl.all()).head(_MOST_NAMED).rows(),
        dict(counts.iter_rows()),
        frozenset(numbers.tolist()),
    )


def placed_together(parts: Sequence[PlacedPart], partitions: int | None) -> Placed:
    """Return how all groups lie; each of them is in one part."""
    misplaced = sorted(each for part in parts for each in part.misplaced)[:_MOST_NAMED]
    counts: Counter[int] = Counter()
    for part in parts:
        counts.update(part.misplaced_in)
    groups = sum(part.groups for part in parts)
    fits = None
    if (counts or not partitions) and groups >= _LEAST_GROUPS:
        numbers = frozenset.intersection(*(part.numbers for part in parts))
        fits = min(numbers) if len(numbers) == 1 else None
    return Placed(partitions, tuple(misplaced), fits, dict(sorted(counts.items())))


def groups_placed(usage: pa.Table) -> pl.DataFrame:
    """Return each `group_id` of `topic_usage` with its `partition` of `__consumer_offsets`."""
    rows = polars_rows(usage).filter(pl.col("topic") == CONSUMER_OFFSETS)
    pairs = rows.select("group_id", "partition").drop_nulls("group_id").unique()
    return pairs.sort("group_id", "partition")


def log_sums(usage: pl.DataFrame) -> pl.DataFrame:
    """Add up rows of `topic_usage` of whole groups by partition: `topic`, `partition`.

    Returns:
        How many `groups`, `records`, `bytes`, `standing_tombstones` and `live_records` each has;
        the last is null where no row has a number.
    """
    count = pl.col("group_id").drop_nulls().n_unique().cast(pl.Int64)
    return usage.group_by(_LOG).agg(count.alias("groups"), *_added())


def log_sums_together(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the `log_sums` of parts that share no group as one."""
    return pl.concat(parts).group_by(_LOG).agg(pl.col("groups").sum(), *_added())


def _added() -> list[pl.Expr]:
    live = pl.col("live_records")
    return [
        pl.col("records", "bytes", "standing_tombstones").sum(),
        pl.when(live.is_not_null().any()).then(live.sum()),
    ]


def coordinator_load(
    sums: pl.DataFrame,
    partitions: pa.Table,
    leaders: pa.Table,
    found: Placed,
    rules: UsageRules,
) -> pa.Table:
    """Return what each partition costs, the largest first.

    Args:
        sums: Of `log_sums`.
        partitions: The table `partition_usage`.
        leaders: The table `partition_leaders`, as far as known.
        found: How groups lie.
        rules: What is hot, and how fast a coordinator reads.
    """
    of_logs = sums.select(*_LOG, "groups", "records", "live_records")
    wrong = pl.DataFrame(
        [(CONSUMER_OFFSETS, *each) for each in found.misplaced_in.items()],
        {"topic": pl.String, "partition": pl.Int32, "misplaced_groups": pl.Int64},
        orient="row",
    )
    led = polars_rows(leaders.select([*_LOG, "leader"])).cast(
        {"topic": pl.String, "partition": pl.Int32, "leader": pl.Int32}
    )
    size = pl.col("file_bytes")
    mean = size.mean().over("topic")
    is_told = (pl.col("topic") == CONSUMER_OFFSETS) & pl.lit(found.partitions is not None)
    rows = (
        polars_rows(partitions)
        .filter(pl.col("is_leading") & pl.col("topic").is_in(COORDINATOR_TOPICS))
        .select(*_LOG, "file_bytes")
        .join(of_logs, _LOG, "left")
        .join(wrong, _LOG, "left")
        .join(led, _LOG, "left")
        .with_columns(times_mean=pl.when(mean > 0).then(size / mean))
        .with_columns(
            pl.col("groups", "records").fill_null(0),
            is_hot=((pl.col("times_mean") > rules.hot_times) & (size > rules.hot_bytes)).fill_null(
                value=False
            ),
            load_ms=divided(size * 1000, rules.load_bytes_per_second).round().cast(pl.Int64),
            misplaced_groups=pl.when(is_told).then(pl.col("misplaced_groups").fill_null(0)),
        )
    )
    order = ["file_bytes", *_LOG]
    return table_of_frame(
        "coordinator_load", rows.sort(order, descending=[True, False, False], nulls_last=True)
    )
