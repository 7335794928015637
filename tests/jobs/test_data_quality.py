"""An audit judges its own tables, and holds them against a team's suites."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from schemas import tables
from schemas.expectation_suites import written_suites

if TYPE_CHECKING:
    from tests.conftest import Groupscope

OURS = {
    "name": "ours",
    "expectations": [
        {
            "type": "expect_rows_at_most",
            "severity": "critical",
            "kwargs": {"column": "lag", "value": 0},
            "meta": {"name": "nobody behind", "where": {"group_id": ["parcel-router"]}},
        },
        {
            "type": "expect_column_values_to_match_regex",
            "kwargs": {"column": "topic", "regex": "("},
        },
        {
            "type": "expect_column_values_to_not_be_null",
            "severity": "info",
            "kwargs": {"column": "committed_offset"},
        },
    ],
}


def test_what_tables_hold_is_kept_and_what_they_do_not_is_found(
    groupscope: Groupscope, failover_workspace: Path, tmp_path: Path
) -> None:
    suites = tmp_path / "suites"
    suites.mkdir()
    (suites / "lag.json").write_text(json.dumps(OURS))
    out = tmp_path / "out"

    docs = tmp_path / "docs"

    result = groupscope(
        *("audit", failover_workspace, "--out", out, "--expectations", suites, "--quiet"),
        *("--data-docs", docs),
    )

    assert result.returncode == 1, result.stderr
    assert "great" not in result.stderr.lower()
    rows = pq.read_table(out / "evaluations" / "data_quality").to_pylist()
    ours = {row["type"]: row for row in rows if row["suite"] == "lag.json"}
    assert [each["outcome"] for each in ours.values()] == ["broken", "failed", "passed"]
    assert ours["expect_rows_at_most"]["unexpected_count"] > 0
    assert "parcel-router" in ours["expect_rows_at_most"]["example"]
    # Of what we and the contracts expect everything holds.
    others = [row for row in rows if row["suite"] != "lag.json"]
    assert [row for row in others if row["outcome"] != "passed"] == []
    judged = {(row["table"], row["expectation"]) for row in others}
    there = {row["table"] for row in others}
    assert {(name, "key unique") for name in there} <= judged
    kinds = {name: tables()[name].kind for name in there}
    assert {"decoded", "state", "history", "evaluation", "data_log", "control"} == {*kinds.values()}
    assert {
        (name, each.name)
        for name, suite in written_suites().items()
        if name in there
        for each in suite
    } <= judged
    lines = [json.loads(each) for each in (out / "findings.jsonl").read_text("utf-8").splitlines()]
    found = {each["rule"] for each in lines if each["rule"].startswith("quality")}
    assert found == {"quality_failed", "quality_broken"}
    pages = {(row["table"], row["suite"]) for row in rows}
    assert {each.relative_to(docs).as_posix() for each in docs.rglob("*.html")} == {
        "index.html",
        *(f"{suite}/{table}.html" for table, suite in pages),
    }
    page = (docs / "lag.json" / "lag.html").read_text("utf-8")
    assert ">nobody behind<" in page
    assert "parcel-router" in page
    assert shlex.quote(str(failover_workspace)) in page


def test_pages_of_something_else_are_not_written_over(
    groupscope: Groupscope, failover_workspace: Path, tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.html").write_text("mine")
    file = tmp_path / "file"
    file.write_text("mine")
    for folder, why in ((docs, "has pages that no audit wrote"), (file, "is a file")):
        result = groupscope(
            "audit", failover_workspace, "--out", tmp_path / "out", "--data-docs", folder
        )
        assert (result.returncode, result.stdout) == (2, "")
        assert f"--data-docs {folder} {why}" in result.stderr
        assert not (tmp_path / "out").exists()
    assert (docs / "index.html").read_text() == file.read_text() == "mine"


def test_a_suite_of_a_table_that_is_not_there_is_a_wrong_call(
    groupscope: Groupscope, failover_workspace: Path, tmp_path: Path
) -> None:
    suites = tmp_path / "suites"
    suites.mkdir()
    for name, content in (("lags", json.dumps(OURS)), ("lag", "no json"), ("lag", "{}")):
        path = suites / f"{name}.json"
        path.write_text(content)
        result = groupscope(
            "audit", failover_workspace, "--out", tmp_path / "out", "--expectations", suites
        )
        assert result.returncode == 2
        assert name in result.stderr
        path.unlink()
    nowhere = tmp_path / "nowhere"
    result = groupscope(
        "audit", failover_workspace, "--out", tmp_path / "out", "--expectations", nowhere
    )
    assert result.returncode == 2
