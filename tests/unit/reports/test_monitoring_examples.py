"""Alert rules and the dashboard in `examples/monitoring` ask for metrics that an audit writes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from reports.metrics import Audited, metrics_of
from schemas.finding_rules import SEVERITIES, finding_rules

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "examples" / "monitoring"
RULES, DASHBOARD = FOLDER / "groupscope.rules.yaml", FOLDER / "grafana-dashboard.json"
WHEN = datetime(2026, 11, 21, tzinfo=UTC)
OF_GROUP = {"group_id": ["g"], "topic": ["t"], "partition": pa.array([0], pa.int32())}
BYTES = ("live", "superseded", "tombstoned", "standing_tombstone", "aborted", "open")
TABLES = {
    "lag": [
        pa.table(
            {
                **OF_GROUP,
                "lag": pa.array([lag], pa.int64()),
                "time_lag_ms": pa.array([7], pa.int64()),
                "time_lag_bound": ["exact"],
            }
        )
        for lag in (7, -7)
    ],
    "audited_groups": [
        pa.table(
            {
                "group_id": ["g"],
                "members": pa.array([1], pa.int64()),
                "lag_not_told": pa.array([0], pa.int64()),
            }
        )
    ],
    "offset_expiration": [
        pa.table({"group_id": ["g"], "expires_at": pa.array([WHEN], pa.timestamp("us", "UTC"))})
    ],
    "topic_usage": [
        pa.table(
            {
                "topic": ["__consumer_offsets"],
                "partition": pa.array([0], pa.int32()),
                **{f"{each}_bytes": pa.array([1], pa.int64()) for each in BYTES},
            }
        )
    ],
}


def written() -> dict[str, set[str]]:
    """Return the names of all metrics, and the labels that samples of each have."""
    reads = {
        name: lambda columns, tables=tables: [each.select(list(columns)) for each in tables]
        for name, tables in TABLES.items()
    }
    found = Audited("c", finding_rules(), {}, reads, WHEN, WHEN, 0)
    return {
        family.name: set(family.samples[0].labels)
        for family in text_string_to_metric_families("".join(metrics_of(found)))
    }


def asked_for() -> Iterator[tuple[str, str]]:
    """Yield where an expression stands, and the expression."""
    for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


@pytest.mark.parametrize(("place", "expression"), list(asked_for()))
def test_an_expression_asks_for_metrics_and_labels_that_are_written(
    place: str, expression: str
) -> None:
    metrics = written()
    names = re.findall(r"groupscope_\w+", expression)
    assert names, place
    assert set(names) <= set(metrics), place
    labels = set().union(*(metrics[name] for name in names))
    grouped = [each.split(",") for each in re.findall(r"(?:by|on) \(([^)]*)\)", expression)]
    matched = re.findall(r"(\w+)=~?\"", expression)
    assert {each.strip() for part in grouped for each in part} | set(matched) <= labels, place
    severities = re.findall(r'severity="(\w+)"', expression)
    assert set(severities) <= set(SEVERITIES), place


def test_every_metric_is_drawn_or_alerted_on() -> None:
    used = {name for _, each in asked_for() for name in re.findall(r"groupscope_\w+", each)}
    assert used == set(written())


def test_an_alert_says_what_it_is_about() -> None:
    for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"]:
        for rule in group["rules"]:
            said = " ".join(rule["annotations"].values())
            names = set(re.findall(r"\$labels\.(\w+)", said))
            metrics = written()
            there = set().union(
                *(metrics[each] for each in re.findall(r"groupscope_\w+", rule["expr"]))
            )
            assert names <= there, rule["alert"]
            grouped = re.search(r"by \(([^)]*)\)", rule["expr"])
            if grouped:
                assert names <= {each.strip() for each in grouped[1].split(",")}, rule["alert"]


def test_panels_do_not_cover_each_other() -> None:
    panels: list[dict[str, Any]] = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    assert len({each["id"] for each in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for place in (each["gridPos"] for each in panels):
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells


@pytest.mark.parametrize(
    "arguments",
    [("check", "rules", RULES), ("test", "rules", ROOT / "tests/cases/monitoring/rules_test.yaml")],
    ids=["check", "test"],
)
def test_prometheus_takes_the_rules(arguments: tuple[str | Path, ...]) -> None:
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("promtool is not installed")
    ran = subprocess.run([tool, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
