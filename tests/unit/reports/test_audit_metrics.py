"""Metrics of an audit: read again by a parser of the format, whatever names are like."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from reports.findings import Audited, metrics_of
from schemas.finding_rules import finding_rules

WHEN = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
LAG = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("lag", pa.int64()),
    ]
)
TIME = pa.timestamp("us", "UTC")


def samples_of(
    found: list[tuple[str, str]] | None = None, **tables: pa.Table
) -> list[tuple[str, dict[str, str], float]]:
    findings = Counter(found or ())
    text = metrics_of(Audited(finding_rules(), findings, tables, WHEN, WHEN, 1))
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
        ("groupscope_offset_expires_timestamp_seconds", {"group": "g"}, WHEN.timestamp())
    ]


@given(st.text(st.characters(codec=None), min_size=1, max_size=50))
def test_any_name_is_read_again(name: str) -> None:
    # What is no character has been replaced before it is in a table.
    name = name.encode("utf-8", "replace").decode()
    found = samples_of(lag=lag_table((name, 1)))
    (label,) = [labels["group"] for each, labels, _ in found if each == "groupscope_group_lag"]
    assert label == name
