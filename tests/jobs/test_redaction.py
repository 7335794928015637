"""`audit --redact`: no name of the dump is in anything that is written or said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from tests.support.names_in_dump import names_in_dump

if TYPE_CHECKING:
    import subprocess

    from tests.conftest import Groupscope

CLASSIC = Path(__file__).parents[1] / "data/dumps/kafka-3.9.2-classic/broker-1"
CONFIG = """
suppressions:
  - {rule: partitions_unread, group_id: "parcel-*", reason: parcel-router is slow, owner: me,
     until: 2099-01-01}
"""
SUITE = {
    "expectations": [
        {
            "type": "expect_column_values_to_not_be_in_set",
            "kwargs": {"column": "topic", "value_set": ["parcel-router"]},
        }
    ]
}


OUR_WORDS = {"last", "given up"}
"""Metadata of two commits that our own sentences have, too."""


class Audit(NamedTuple):
    folder: Path
    ran: subprocess.CompletedProcess[str]
    names: set[str]


@pytest.fixture(scope="module")
def audit(
    groupscope: Groupscope, failover_workspace: Path, tmp_path_factory: pytest.TempPathFactory
) -> Audit:
    folder = tmp_path_factory.mktemp("redacted")
    (folder / "key").write_bytes(bytes(range(32)))
    (folder / "audit.yaml").write_text(CONFIG, encoding="utf-8")
    (folder / "suites").mkdir()
    (folder / "suites" / "lag.json").write_text(json.dumps(SUITE), encoding="utf-8")
    ran = groupscope(
        "audit", failover_workspace, "--out", folder / "out", "--redact", folder / "key",
        "--config", folder / "audit.yaml", "--metrics", folder / "out" / "audit.prom",
        "--expectations", folder / "suites", "--data-docs", folder / "out" / "data-docs",
        "--fail-on", "never",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return Audit(folder / "out", ran, names_in_dump(failover_workspace) - OUR_WORDS)


def texts_of(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".parquet":
            rows = pq.read_table(path)
            names = [field.name for field in rows.schema]
            yield str(path), json.dumps([names, rows.to_pylist()], default=str, ensure_ascii=False)
        elif path.is_file():
            yield str(path), path.read_text("utf-8")


def found_in(text: str, names: set[str]) -> list[str]:
    """Return the names that stand in a text by themselves or between signs."""
    return [
        name
        for name in names
        if name in text and re.search(rf"(?<![0-9A-Za-z]){re.escape(name)}(?![0-9A-Za-z])", text)
    ]


def test_the_dump_has_names_of_every_kind(audit: Audit) -> None:
    assert {"parcel-router", "parcels", "/127.0.0.1"} <= audit.names
    assert len(audit.names) > 80


def test_no_file_has_a_name(audit: Audit) -> None:
    texts = dict(texts_of(audit.folder))
    assert {Path(each).name for each in texts} >= {"index.html", "summary.json", "audit.prom"}
    leaks = {path: found for path, text in texts.items() if (found := found_in(text, audit.names))}
    assert leaks == {}


def test_nothing_that_is_said_has_a_name(audit: Audit) -> None:
    assert found_in(audit.ran.stdout + audit.ran.stderr, audit.names) == []
    assert "group-" in audit.ran.stdout


def test_findings_are_those_of_the_plain_audit_but_what_a_team_accepts_by_name(
    audit: Audit, failover_audited: Path
) -> None:
    named, unnamed = (
        [json.loads(line) for line in (folder / "findings.jsonl").read_text("utf-8").splitlines()]
        for folder in (failover_audited, audit.folder)
    )
    accepted = [
        each
        for each in named
        if each["rule"] == "partitions_unread" and each["group_id"].startswith("parcel-")
    ]
    assert accepted

    def counted(rows: list[dict[str, Any]]) -> list[tuple[str, str, int | None]]:
        return sorted((each["rule"], str(each["since"]), each["partition"]) for each in rows)

    assert counted(unnamed) == counted([each for each in named if each not in accepted])


def test_the_workspace_is_read_and_not_asked(audit: Audit, groupscope: Groupscope) -> None:
    assert json.loads((audit.folder / "manifest.json").read_text("utf-8"))["redacted"] is True
    assert not (audit.folder / "decoded").exists()
    for asked in (("describe",), ("lag",), ("replay", "--out", audit.folder.parent / "again")):
        ran = groupscope(asked[0], audit.folder, *asked[1:])
        assert ran.returncode == 3
        assert "has no decoded records: it was redacted" in ran.stderr
    page = groupscope("report", audit.folder, "--format", "json")
    assert page.returncode == 0
    assert found_in(page.stdout, audit.names) == []


def test_what_is_said_of_an_earlier_run_names_neither_its_place_nor_its_copies(
    groupscope: Groupscope, tmp_path: Path
) -> None:
    decoded, replayed = tmp_path / "zanzibar", tmp_path / "quagmire"
    ran = groupscope("decode", f"kafka-7.acme.example={CLASSIC}", "--out", decoded)
    assert ran.returncode == 0, ran.stderr
    ran = groupscope("replay", decoded, "--out", replayed)
    assert ran.returncode == 0, ran.stderr
    key, out = tmp_path / "key", tmp_path / "out"
    key.write_bytes(bytes(range(32)))
    ran = groupscope(
        "audit", CLASSIC, "--resume", replayed, "--redact", key, "--out", out, "--fail-on", "never"
    )
    assert ran.returncode in (0, 3), ran.stderr
    assert "nothing is kept from INPUT: it was made of copies of other names, copy-" in ran.stderr
    names = {"zanzibar", "quagmire", "acme", str(tmp_path / "zanzibar"), "kafka-7.acme.example"}
    said = {"stdout": ran.stdout, "stderr": ran.stderr.replace(str(out), "")}
    texts = {**dict(texts_of(out)), **said}
    assert {where: found for where, text in texts.items() if (found := found_in(text, names))} == {}


def test_a_short_key_is_refused(groupscope: Groupscope, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret")
    ran = groupscope("audit", tmp_path, "--out", tmp_path / "out", "--redact", tmp_path / "key")
    assert ran.returncode == 2
    assert "a key has at least 16 bytes, and this has 6" in ran.stderr
