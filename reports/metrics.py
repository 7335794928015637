"""An audit as OpenMetrics text, for a textfile collector: written as its tables are read.

What has a sample for each partition of a group is laid out in columns, in the words of the library
that writes all else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from reports.row_formats import in_order
from schemas.finding_rules import FindingRule

if TYPE_CHECKING:
    from datetime import datetime

    from prometheus_client import Metric

_BYTES: Final = {
    "live": "live_bytes",
    "superseded": "superseded_bytes",
    "tombstoned": "tombstoned_bytes",
    "standing_tombstone": "standing_tombstone_bytes",
    "aborted": "aborted_bytes",
    "open": "open_bytes",
}
"""What bytes of a topic are, and the column of `topic_usage` that has them."""


_CLUSTER: Final = "cluster"
"""The label that every sample has: the id of the cluster, empty where the dump does not tell it."""
_PLACE: Final = {
    _CLUSTER: _CLUSTER,
    "group": "group_id",
    "partition": "partition",
    "topic": "topic",
}
"""Labels of a partition of a group, in the order they are written in, and their columns."""
_BOUND: Final = {"bound": "time_lag_bound", **_PLACE}
_GROUP: Final = {_CLUSTER: _CLUSTER, "group": "group_id"}
_BY_PLACE: Final = tuple((name, "ascending") for name in ("group_id", "topic", "partition"))
_END: Final = "# EOF\n"
_PLAIN_DIGITS: Final = 6
"""Larger numbers are written with an exponent, as Go does."""
_EXACT: Final = 2**53
"""Whole numbers below are floats without loss."""
_EXACT_TIME: Final = 2**32
"""Seconds below are told apart by their microseconds as floats, too."""
_MICROS: Final = 1_000_000
_MILLIS: Final = 1_000
_EXPIRES: Final = "expires_at"
Read = Callable[[Sequence[str]], Iterable[pa.Table]]
"""Gives columns of a table, some rows at a time; at least once."""

MEASURED: Final = ("lag", "offset_expiration", "topic_usage", "audited_groups")
"""The tables that are measured."""


@dataclass(frozen=True)
class Audited:
    """What an audit found, and of when.

    Attributes:
        cluster: Its id, empty where the dump does not tell it.
        rules: Those that were looked for: one that found nothing counts 0.
        findings: How many there are, by rule and severity.
        tables: What reads `MEASURED`, as far as they could be made.
        as_of: The instant asked about.
        ended_at: When the audit ended.
        exit_code: Of the command.
    """

    cluster: str
    rules: Iterable[FindingRule]
    findings: Mapping[tuple[str, str], int]
    tables: Mapping[str, Read]
    as_of: datetime
    ended_at: datetime
    exit_code: int


def metrics_of(audited: Audited) -> Iterator[str]:
    """Yield the text in pieces. What cannot be told has no sample: it is never 0."""
    tables, cluster = audited.tables, audited.cluster
    yield _text_of([_findings(audited)])
    if "lag" in tables:
        yield from _lag(tables["lag"], cluster)
        yield from _time_lag(tables["lag"], cluster)
    if "audited_groups" in tables:
        for column in _OF_GROUPS:
            yield from _groups(tables["audited_groups"], cluster, column)
    if "offset_expiration" in tables:
        yield from _expiry(tables["offset_expiration"], cluster)
    if "topic_usage" in tables:
        yield _text_of([_bytes(tables["topic_usage"], cluster)])
    yield _text_of(
        _of_cluster(f"groupscope_{name}", about, cluster, value)
        for name, about, value in (
            ("as_of_timestamp_seconds", "The instant asked about.", audited.as_of.timestamp()),
            ("audit_timestamp_seconds", "When the audit ended.", audited.ended_at.timestamp()),
            ("audit_exit_code", "The exit code of the audit.", audited.exit_code),
        )
    )
    yield _END


def _of_cluster(name: str, about: str, cluster: str, value: float) -> Metric:
    family = GaugeMetricFamily(name, about, labels=[_CLUSTER])
    family.add_metric([cluster], value)
    return family


def _text_of(families: Iterable[Metric]) -> str:
    """Return what the library writes of some families."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Held(list(families)))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode().removesuffix(_END)


class _Held(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _findings(of: Audited) -> Metric:
    looked_for = {(rule.name, rule.severity): 0 for rule in of.rules if rule.is_on}
    family = GaugeMetricFamily(
        "groupscope_findings", "Findings of a rule.", labels=[_CLUSTER, "rule", "severity"]
    )
    for (rule, severity), number in sorted({**looked_for, **of.findings}.items()):
        family.add_metric([of.cluster, rule, severity], number)
    return family


def _lag(read: Read, cluster: str) -> Iterator[str]:
    """Yield how far committed offsets are behind the ends of logs, and how far beyond them.

    Kafka's tools print the latter as a lag below zero. Added up with others, as is done with
    metrics, it would hide as much of theirs.
    """
    lags = GaugeMetricFamily(
        "groupscope_group_lag",
        "Log end offset minus committed offset; no sample where either is not known, or the "
        "committed offset is beyond the end.",
        labels=list(_PLACE),
    )
    beyond = GaugeMetricFamily(
        "groupscope_group_offsets_beyond_end",
        "How far the committed offset is beyond the log end offset; no sample where it is not.",
        labels=list(_PLACE),
    )
    for family, is_of in ((lags, pc.field("lag") >= 0), (beyond, pc.field("lag") < 0)):
        yield _text_of([family])
        pieces = (rows.filter(is_of) for rows in read([*_columns_of(_PLACE), "lag"]))
        for rows in in_order(pieces, _BY_PLACE):
            # The least of all has no counterpart above 0 among integers of its size.
            lag = pl.col("lag").cast(pl.Int128).abs()
            yield _samples(family.name, _PLACE, _frame(rows, cluster).with_columns(whole=lag))


def _time_lag(read: Read, cluster: str) -> Iterator[str]:
    """Yield how old what groups have not read yet is."""
    name = "groupscope_group_lag_seconds"
    about = (
        "How old the first record is that the group has not read; bound is exact, or at_least "
        "where it may be older; no sample where it is not known."
    )
    yield _text_of([GaugeMetricFamily(name, about, labels=list(_BOUND))])
    columns = [*_columns_of(_BOUND), "time_lag_ms"]
    is_known = pc.field("time_lag_ms").is_valid()
    pieces = (rows.filter(is_known) for rows in read(columns))
    for rows in in_order(pieces, _BY_PLACE):
        milliseconds = pl.col("time_lag_ms")
        yield _samples(
            name,
            _BOUND,
            _frame(rows, cluster).with_columns(
                whole=(milliseconds // _MILLIS).cast(pl.Int128),
                micros=milliseconds % _MILLIS * (_MICROS // _MILLIS),
            ),
        )


_OF_GROUPS: Final = {
    "members": ("groupscope_group_members", "Members of a group; no sample where not known."),
    "lag_not_told": (
        "groupscope_group_lag_unknown_partitions",
        "Partitions that a sum of groupscope_group_lag has nothing of: no lag, or one below zero.",
    ),
}
"""Numbers of `audited_groups`: the metric, and what it counts."""


def _groups(read: Read, cluster: str, column: str) -> Iterator[str]:
    """Yield a number of each group, where it is known."""
    name, about = _OF_GROUPS[column]
    yield _text_of([GaugeMetricFamily(name, about, labels=list(_GROUP))])
    pieces = (rows.filter(pc.field(column).is_valid()) for rows in read(["group_id", column]))
    for rows in in_order(pieces, [("group_id", "ascending")]):
        whole = pl.col(column).cast(pl.Int128)
        yield _samples(name, _GROUP, _frame(rows, cluster).with_columns(whole=whole))


def _columns_of(labels: Mapping[str, str]) -> list[str]:
    """Return the columns of a table that labels are of."""
    return [column for column in labels.values() if column != _CLUSTER]


def _expiry(read: Read, cluster: str) -> Iterator[str]:
    """Yield when the first offset of each group expires."""
    label, name = _GROUP, "groupscope_offset_expires_timestamp_seconds"
    about = "When the first committed offset of a group expires; no sample where none is due to."
    yield _text_of([GaugeMetricFamily(name, about, labels=list(label))])
    firsts = (
        rows.filter(pc.field(_EXPIRES).is_valid())
        .group_by("group_id")
        .aggregate([(_EXPIRES, "min")])
        for rows in read(["group_id", _EXPIRES])
    )
    before: str | None = None
    for rows in in_order(firsts, [("group_id", "ascending"), (f"{_EXPIRES}_min", "ascending")]):
        # Offsets of a group may lie in several pieces: the first one is the earliest.
        is_first = pl.col("group_id").ne_missing(pl.col("group_id").shift(1, fill_value=before))
        found = _frame(rows, cluster)
        before = found["group_id"][-1] if found.height else before
        micros = pl.col(f"{_EXPIRES}_min").dt.epoch("us")
        yield _samples(
            name,
            label,
            found.filter(is_first).with_columns(
                whole=(micros // _MICROS).cast(pl.Int128), micros=micros % _MICROS
            ),
        )


def _samples(name: str, labels: Mapping[str, str], rows: pl.DataFrame) -> str:
    """Return a line for each row.

    Args:
        name: Of the family.
        labels: Names of labels, in order, and their columns.
        rows: Has these, and the number: `whole`, and `micros` where there is a fraction.
    """
    parts: list[pl.Expr] = []
    for before, (label, column) in zip(["{", *[","] * len(labels)], labels.items(), strict=False):
        parts += [pl.lit(f'{before}{label}="'), _escaped(pl.col(column)), pl.lit('"')]
    line = pl.concat_str(pl.lit(name), *parts, pl.lit("} "), "number", pl.lit("\n"))
    lines = rows.with_columns(_numbers(rows).alias("number")).select(line.alias("line"))["line"]
    return "".join(lines)


def _escaped(names: pl.Expr) -> pl.Expr:
    """Return names as values of labels."""
    text = names.cast(pl.String).fill_null("")
    for plain, escaped in (("\\", r"\\"), ("\n", r"\n"), ('"', r"\"")):
        text = text.str.replace_all(plain, escaped, literal=True)
    return text


def _numbers(rows: pl.DataFrame) -> pl.Series:
    """Return numbers as the library writes them: those above a million with an exponent.

    Args:
        rows: `whole`, and `micros` where there is a fraction.
    """
    has_micros = "micros" in rows.columns
    fraction = pl.col("micros").cast(pl.String).str.zfill(6) if has_micros else pl.lit("0")
    digits = pl.col("whole").cast(pl.String)
    fraction = fraction.str.strip_chars_end("0")
    size = digits.str.len_bytes()
    plain = pl.concat_str(
        digits, pl.lit("."), pl.when(fraction == "").then(pl.lit("0")).otherwise(fraction)
    )
    mantissa = pl.concat_str(digits.str.head(1), pl.lit("."), digits.str.slice(1), fraction)
    exponent = (size - 1).cast(pl.String).str.zfill(2)
    large = pl.concat_str(mantissa.str.strip_chars_end("0."), pl.lit("e+"), exponent)
    text = rows.select(pl.when(size <= _PLAIN_DIGITS).then(plain).otherwise(large).alias("n"))["n"]
    least, limit = (1, _EXACT_TIME) if has_micros else (0, _EXACT)
    is_odd = (rows["whole"] < least) | (rows["whole"] >= limit)
    if is_odd.any():
        # Times before 1970 and in its first second, and what a float rounds.
        odd = rows.filter(is_odd)
        micros = odd["micros"].to_list() if has_micros else [0] * odd.height
        values = [
            floatToGoString((whole * _MICROS + rest) / _MICROS)  # type: ignore[no-untyped-call]
            for whole, rest in zip(odd["whole"].to_list(), micros, strict=True)
        ]
        text = text.scatter(is_odd.arg_true(), values)
    return text


def _bytes(read: Read, cluster: str) -> Metric:
    family = GaugeMetricFamily(
        "groupscope_topic_bytes",
        "Bytes of records of an internal partition, uncompressed, by what has become of them.",
        labels=[_CLUSTER, "topic", "partition", "state"],
    )
    place, columns = ["topic", "partition"], [*_BYTES.values()]
    parts = [_summed(rows, place, columns) for rows in read([*place, *columns])]
    sums = _summed(pa.concat_tables(parts), place, columns)
    for row in sums.sort_by([(name, "ascending") for name in place]).to_pylist():
        for state, column in _BYTES.items():
            if row[column] is not None:
                labels = [cluster, row["topic"], str(row["partition"]), state]
                family.add_metric(labels, row[column])
    return family


def _summed(rows: pa.Table, place: list[str], columns: list[str]) -> pa.Table:
    found = rows.group_by(place).aggregate([(column, "sum") for column in columns])
    return found.rename_columns([name.removesuffix("_sum") for name in found.column_names])


def _frame(rows: pa.Table, cluster: str) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(rows)).with_columns(pl.lit(cluster).alias(_CLUSTER))
