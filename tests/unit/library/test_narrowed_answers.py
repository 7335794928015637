"""What a question keeps of some groups, topics or settings is nowhere taken for all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analytics import open_dump
from analytics.tables.table_readers import FilesReader
from tests.support.source_rows import assert_same, loaded, reader

if TYPE_CHECKING:
    from tests.conftest import Groupscope

NARROWED = {
    "of a topic": ("--topic", "parcels"),
    "of a group": ("--group", "parcel-router"),
    "of much lag": ("--min-lag", "1000000"),
}


@pytest.mark.parametrize("what", NARROWED)
def test_an_answer_that_was_kept_of_less_is_not_read_as_all(
    groupscope: Groupscope, failover_workspace: Path, tmp_path: Path, what: str
) -> None:
    out = tmp_path / "out"
    shutil.copytree(failover_workspace, out)
    assert groupscope("lag", out, *NARROWED[what], "--out", out).returncode in {0, 3}
    assert not json.loads((out / "manifest.json").read_text())["evaluations"]["lag"]["is_whole"]
    with open_dump(str(failover_workspace)) as dump:
        assert_same(loaded(out, table="lag"), dump.replay().lag().to_polars("lag"))


def test_an_answer_that_was_kept_of_all_is_read(
    groupscope: Groupscope, failover_workspace: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(failover_workspace, out)
    assert groupscope("lag", out, "--out", out).returncode in {0, 3}
    found, _ = reader(out, {"table": "lag"})
    assert isinstance(found, FilesReader)


@pytest.mark.parametrize("inputs", ["the audit", "its dump"])
def test_an_audit_keeps_its_own_answers(
    groupscope: Groupscope,
    failover_dump: Path,
    failover_audited: Path,
    tmp_path: Path,
    inputs: str,
) -> None:
    audited = tmp_path / "audited"
    shutil.copytree(failover_audited, audited)
    before = {each: each.read_bytes() for each in audited.rglob("*") if each.is_file()}
    source = audited if inputs == "the audit" else failover_dump
    ran = groupscope("lag", source, "--topic", "parcels", "--out", audited)
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1] == (
        f"groupscope: {audited} holds an audit, whose page is made of the answers there: keep this "
        "answer in another folder (--out)"
    )
    assert before == {each: each.read_bytes() for each in audited.rglob("*") if each.is_file()}
