"""Metrics of an audit: read again by a parser of the format, whatever names are like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from reports.metrics import Audited, metrics_of
from schemas.finding_rules import finding_rules

CLUSTER = "c-1"
WHEN = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
LAG = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("lag", pa.int64()),
        ("time_lag_ms", pa.int64()),
        ("time_lag_bound", pa.string()),
    ]
)
TIME = pa.timestamp("us", "UTC")


def text_of(findings: Mapping[tuple[str, str], int], **tables: pa.Table) -> str:
    """Return the metrics of tables that are read three rows at a time."""

    def read(rows: pa.Table, columns: Sequence[str]) -> Iterator[pa.Table]:
        yield rows.schema.empty_table().select(list(columns))
        for start in range(0, rows.num_rows, 3):
            yield rows.slice(start, 3).select(list(columns))

    reads = {name: partial(read, rows) for name, rows in tables.items()}
    return "".join(metrics_of(Audited(CLUSTER, finding_rules(), findings, reads, WHEN, WHEN, 1)))


def samples_of(
    found: list[tuple[str, str]] | None = None, **tables: pa.Table
) -> list[tuple[str, dict[str, str], float]]:
    findings = Counter(found or ())
    text = text_of(findings, **tables)
    assert text.endswith("# EOF\n")
    return [
        (each.name, each.labels, each.value)
        for family in text_string_to_metric_families(text)
        for each in family.samples
    ]


def lag_table(*rows: tuple[str, int | None]) -> pa.Table:
    said: list[dict[str, Any]] = [
        {"group_id": group, "topic": "t", "partition": 0, "lag": lag} for group, lag in rows
    ]
    return pa.Table.from_pylist(said, schema=LAG)


def test_a_rule_that_found_nothing_counts_0() -> None:
    counts = {
        labels["rule"]: value
        for name, labels, value in samples_of([("offsets_due", "critical")] * 2)
        if name == "groupscope_findings"
    }
    assert counts.keys() == {rule.name for rule in finding_rules()}
    assert {name: value for name, value in counts.items() if value} == {"offsets_due": 2}


def test_a_lag_that_is_not_known_has_no_sample() -> None:
    found = samples_of(lag=lag_table(("known", 7), ("unknown", None)))
    lags = [labels["group"] for name, labels, _ in found if name == "groupscope_group_lag"]
    assert lags == ["known"]


def test_an_offset_beyond_the_end_is_no_lag_that_hides_another() -> None:
    rows = [("behind", 7), ("read all", 0), ("beyond", -60), ("far beyond", 1 - 2**63)]
    found = samples_of(lag=lag_table(*rows))
    values = {(name, labels["group"]): value for name, labels, value in found if "group" in labels}
    assert values == {
        ("groupscope_group_lag", "behind"): 7,
        ("groupscope_group_lag", "read all"): 0,
        ("groupscope_group_offsets_beyond_end", "beyond"): 60,
        ("groupscope_group_offsets_beyond_end", "far beyond"): float(2**63 - 1),
    }


def test_a_group_expires_when_its_first_offset_does() -> None:
    later = datetime(2026, 12, 1, tzinfo=UTC)
    rows = [("g", later), ("g", WHEN), ("never", None)]
    table = pa.table(
        {
            "group_id": [group for group, _ in rows],
            "expires_at": pa.array([at for _, at in rows], TIME),
        }
    )
    found = [each for each in samples_of(offset_expiration=table) if "expires" in each[0]]
    assert found == [
        (
            "groupscope_offset_expires_timestamp_seconds",
            {"cluster": CLUSTER, "group": "g"},
            WHEN.timestamp(),
        )
    ]


@given(st.text(st.characters(codec=None), min_size=1, max_size=50))
def test_any_name_is_read_again(name: str) -> None:
    # What is no character has been replaced before it is in a table.
    name = name.encode("utf-8", "replace").decode()
    found = samples_of(lag=lag_table((name, 1)))
    (label,) = [labels["group"] for each, labels, _ in found if each == "groupscope_group_lag"]
    assert label == name


NAMES = st.sampled_from(["a", "b", 'a "b"', "a\\nb", "a\nb", "ä", ""])
LAGS = st.none() | st.sampled_from([0, 1, 10**6 - 1, 10**6, 1230000, 2**53 - 1, 2**53 + 1])
LAGS |= st.integers(min_value=-(2**63), max_value=2**63 - 1) | st.integers(0, 10**8)
PLACES = st.tuples(NAMES, NAMES, st.integers(min_value=0, max_value=11))


def samples_in(text: str, name: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(name + "{")]


def as_the_library_has_it(name: str, values: Mapping[tuple[str, ...], float], *labels: str) -> str:
    """Return the family of a gauge that was set value by value."""
    registry = CollectorRegistry()
    gauge = Gauge(name, "about", labels, registry=registry)
    for place, value in values.items():
        gauge.labels(*place).set(value)
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


@given(st.dictionaries(PLACES, LAGS, max_size=9))
@example({("g", "t", 0): -(2**63), ("g", "t", 1): 2**63 - 1})
def test_lags_are_written_as_the_library_writes_them(
    lags: dict[tuple[str, str, int], int | None],
) -> None:
    names = LAG.names[:4]
    rows = [dict(zip(names, [*place, lag], strict=True)) for place, lag in lags.items()]
    text = text_of({}, lag=pa.Table.from_pylist(rows, schema=LAG))
    known = {place: lag for place, lag in sorted(lags.items()) if lag is not None}
    for name, values in (
        ("groupscope_group_lag", {place: lag for place, lag in known.items() if lag >= 0}),
        (
            "groupscope_group_offsets_beyond_end",
            {place: -lag for place, lag in known.items() if lag < 0},
        ),
    ):
        by_text: dict[tuple[str, ...], float] = {
            (CLUSTER, group, topic, str(number)): n for (group, topic, number), n in values.items()
        }
        wanted = as_the_library_has_it(name, by_text, "cluster", "group", "topic", "partition")
        assert samples_in(text, name) == samples_in(wanted, name)


TIMES = st.integers(min_value=-(10**13), max_value=10**16).map(
    lambda micros: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
)


@given(st.lists(st.tuples(NAMES, st.none() | TIMES), max_size=12))
@example([("g", datetime(1969, 12, 31, 23, 59, 59, 500000, UTC))])
@example([("g", datetime(1970, 1, 1, 0, 0, 0, 1, UTC))])
@example([("g", datetime(1970, 1, 1, tzinfo=UTC)), ("h", datetime(1970, 1, 20, tzinfo=UTC))])
def test_times_are_written_as_the_library_writes_them(
    rows: list[tuple[str, datetime | None]],
) -> None:
    table = pa.table(
        {
            "group_id": pa.array([group for group, _ in rows], pa.string()),
            "expires_at": pa.array([at for _, at in rows], TIME),
        }
    )
    first: dict[tuple[str, ...], float] = {}
    for group, at in sorted((group, at.timestamp()) for group, at in rows if at is not None):
        first.setdefault((CLUSTER, group), at)
    name = "groupscope_offset_expires_timestamp_seconds"
    wanted = as_the_library_has_it(name, first, "cluster", "group")
    text = text_of({}, offset_expiration=table)
    assert samples_in(text, name) == samples_in(wanted, name)


BOUNDS = st.sampled_from(["exact", "at_least"])


@given(st.dictionaries(PLACES, st.none() | st.tuples(st.integers(0, 2**40), BOUNDS), max_size=9))
def test_a_time_lag_is_in_seconds_and_says_whether_it_is_a_bound(
    lags: dict[tuple[str, str, int], tuple[int, str] | None],
) -> None:
    rows = [
        {
            **dict(zip(LAG.names[:3], place, strict=True)),
            "time_lag_ms": None if lag is None else lag[0],
            "time_lag_bound": "unknown" if lag is None else lag[1],
        }
        for place, lag in lags.items()
    ]
    text = text_of({}, lag=pa.Table.from_pylist(rows, schema=LAG))
    name, labels = "groupscope_group_lag_seconds", ("group", "topic", "partition")
    known: dict[tuple[str, ...], float] = {
        (lag[1], CLUSTER, group, topic, str(number)): lag[0] / 1000
        for (group, topic, number), lag in sorted(lags.items())
        if lag is not None
    }
    wanted = as_the_library_has_it(name, known, "bound", "cluster", *labels)
    assert samples_in(text, name) == samples_in(wanted, name)


def test_members_of_a_group_are_counted_where_they_are_known() -> None:
    groups = pa.table(
        {
            "group_id": ["idle", "busy", "gone"],
            "members": pa.array([0, 12, None], pa.int64()),
            "lag_not_told": pa.array([0, 2, None], pa.int64()),
        }
    )
    found = samples_of(audited_groups=groups)
    members = {labels["group"]: n for name, labels, n in found if name.endswith("_members")}
    assert members == {"busy": 12, "idle": 0}
    unknown = {
        labels["group"]: n for name, labels, n in found if name.endswith("_unknown_partitions")
    }
    assert unknown == {"busy": 2, "idle": 0}


def test_every_sample_names_the_cluster() -> None:
    groups = pa.table(
        {
            "group_id": ["g"],
            "members": pa.array([1], pa.int64()),
            "lag_not_told": pa.array([0], pa.int64()),
        }
    )
    found = samples_of(lag=lag_table(("g", 1)), audited_groups=groups)
    assert {labels["cluster"] for _, labels, _ in found} == {CLUSTER}
