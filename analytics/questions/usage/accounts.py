"""Where every byte of the files of internal partitions is: the table `partition_usage`.

And whether bytes come out even, which no decoded table tells of records outside of it, and what of
usage cannot be told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from analytics.contracts import contract_schema, table_of_frame
from analytics.gaps.gap import Gap, gap
from analytics.replay.log.arrow_rows import polars_rows
from analytics.replay.log.lines import parsed_time

if TYPE_CHECKING:
    import pyarrow as pa

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
_FILTERS: Final = {
    "groups": "--group",
    "exclude_groups": "--exclude-group",
    "data_topics": "--topic",
    "topics": "--topics",
    "partitions": "--partitions",
}
"""Options of `decode` that leave records out, by their names in a manifest."""


def partition_usage(manifest: Mapping[str, Any]) -> pa.Table:
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


def _place(row: Mapping[str, Any]) -> tuple[str | None, str, int]:
    return row["copy"], row["topic"], row["partition"]


def _row(partition: Mapping[str, Any], account: Mapping[str, Any] | None) -> dict[str, Any]:
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


def _fates(fates: Mapping[str, Mapping[str, int]] | None) -> dict[str, int | None]:
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


def untabled_usage(manifest: Mapping[str, Any]) -> pl.DataFrame:
    """Return rows of `topic_usage` for records that are in none of the decoded tables.

    Control records, those that could not be decoded, and those of types that are only counted.
    Archived rows do not say how many bytes they took, and not all of them whose they are.

    Args:
        manifest: Of a decode run.
    """
    rows = [
        (
            *(account[name] for name in ("topic", "partition")),
            fate,
            each["records"],
            None if account["copy"] is None else each["bytes"],
        )
        for account in manifest["reconciliation"]
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


def gaps_in_usage(manifest: Mapping[str, Any], identity: Identity) -> list[Gap]:
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


def _filtered(manifest: Mapping[str, Any]) -> list[Gap]:
    """What a decode run was told to leave out is in no table."""
    options = manifest.get("options", {})
    given = [words for name, words in _FILTERS.items() if options.get(name)]
    return [gap("records_left_out", filters=", ".join(given))] if given else []


def _absent(manifest: Mapping[str, Any]) -> list[Gap]:
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


def _lost(manifest: Mapping[str, Any]) -> list[Gap]:
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


def _later(manifest: Mapping[str, Any]) -> list[Gap]:
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


def _archived(manifest: Mapping[str, Any]) -> list[Gap]:
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


def _file(row: Mapping[str, Any]) -> str:
    return ": ".join(row[name] for name in ("copy", "segment") if row[name])
