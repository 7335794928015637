"""An audit as OpenMetrics text, for a textfile collector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

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


_PLACE: Final = ("group", "topic", "partition")

MEASURED: Final = ("lag", "offset_expiration", "topic_usage")
"""The tables that are measured."""


@dataclass(frozen=True)
class Audited:
    """What an audit found, and of when.

    Attributes:
        rules: Those that were looked for: one that found nothing counts 0.
        findings: How many there are, by rule and severity.
        tables: `MEASURED`, as far as they could be made.
        as_of: The instant asked about.
        ended_at: When the audit ended.
        exit_code: Of the command.
    """

    rules: Iterable[FindingRule]
    findings: Mapping[tuple[str, str], int]
    tables: Mapping[str, pa.Table]
    as_of: datetime
    ended_at: datetime
    exit_code: int


def metrics_of(audited: Audited) -> str:
    """Return the text. What cannot be told has no sample: it is never 0."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(audited))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


class _Collector(Collector):
    def __init__(self, audited: Audited) -> None:
        self._audited = audited

    def collect(self) -> Iterator[Metric]:
        of = self._audited
        yield _findings(of)
        if "lag" in of.tables:
            yield from _lag(of.tables["lag"])
        if "offset_expiration" in of.tables:
            yield _expiry(of.tables["offset_expiration"])
        if "topic_usage" in of.tables:
            yield _bytes(of.tables["topic_usage"])
        for name, about, value in (
            ("as_of_timestamp_seconds", "The instant asked about.", of.as_of.timestamp()),
            ("audit_timestamp_seconds", "When the audit ended.", of.ended_at.timestamp()),
            ("audit_exit_code", "The exit code of the audit.", of.exit_code),
        ):
            yield GaugeMetricFamily(f"groupscope_{name}", about, value)


def _findings(of: Audited) -> Metric:
    looked_for = {(rule.name, rule.severity): 0 for rule in of.rules if rule.is_on}
    family = GaugeMetricFamily(
        "groupscope_findings", "Findings of a rule.", labels=["rule", "severity"]
    )
    for (rule, severity), number in sorted({**looked_for, **of.findings}.items()):
        family.add_metric([rule, severity], number)
    return family


def _lag(rows: pa.Table) -> Iterator[Metric]:
    """Yield how far committed offsets are behind the ends of logs, and how far beyond them.

    Kafka's tools print the latter as a lag below zero. Added up with others, as is done with
    metrics, it would hide as much of theirs.
    """
    lags = GaugeMetricFamily(
        "groupscope_group_lag",
        "Log end offset minus committed offset; no sample where either is not known, or the "
        "committed offset is beyond the end.",
        labels=_PLACE,
    )
    beyond = GaugeMetricFamily(
        "groupscope_group_offsets_beyond_end",
        "How far the committed offset is beyond the log end offset; no sample where it is not.",
        labels=_PLACE,
    )
    place = ["group_id", "topic", "partition"]
    known = rows.filter(rows["lag"].is_valid())
    for row in known.sort_by([(name, "ascending") for name in place]).to_pylist():
        labels = [row["group_id"], row["topic"], str(row["partition"])]
        family = lags if row["lag"] >= 0 else beyond
        family.add_metric([_text(each) for each in labels], abs(row["lag"]))
    yield lags
    yield beyond


def _expiry(rows: pa.Table) -> Metric:
    family = GaugeMetricFamily(
        "groupscope_offset_expires_timestamp_seconds",
        "When the first committed offset of a group expires; no sample where none is due to.",
        labels=["group"],
    )
    rows = rows.filter(rows["expires_at"].is_valid())
    first = rows.group_by("group_id").aggregate([("expires_at", "min")]).sort_by("group_id")
    for row in first.to_pylist():
        family.add_metric([_text(row["group_id"])], row["expires_at_min"].timestamp())
    return family


def _bytes(rows: pa.Table) -> Metric:
    family = GaugeMetricFamily(
        "groupscope_topic_bytes",
        "Bytes of records of an internal partition, uncompressed, by what has become of them.",
        labels=["topic", "partition", "state"],
    )
    place = ["topic", "partition"]
    sums = rows.group_by(place).aggregate([(column, "sum") for column in _BYTES.values()])
    for row in sums.sort_by([(name, "ascending") for name in place]).to_pylist():
        for state, column in _BYTES.items():
            if row[f"{column}_sum"] is not None:
                labels = [row["topic"], str(row["partition"]), state]
                family.add_metric(labels, row[f"{column}_sum"])
    return family


def _text(name: str | None) -> str:
    """Return a name that can be written as UTF-8."""
    return (name or "").encode("utf-8", "replace").decode()
