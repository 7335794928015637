"""Findings of a large workspace are made of some groups at a time: they are the same, in order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from analytics.engine.part_runs import PartRunner
from analytics.questions.findings import found as subject
from analytics.questions.findings import rows_for_rules
from analytics.questions.findings.findings_in_parts import RuleFindings, counts_of
from analytics.questions.findings.findings_of import as_severe, findings_of
from analytics.questions.findings.found import changes_in_parts, kept_changes, with_changes
from analytics.questions.findings.rows_for_rules import judged_tables
from analytics.replayed.given_settings import GivenSettings, Settings
from analytics.tables.parted_table import PartedTable
from jobs.asking import PHRASING
from jobs.audit.run import NEEDS
from jobs.cli.console import Console
from jobs.workspaces.replayed import replayed
from tests.support.page_text import without_spans

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from tests.conftest import Groupscope

ASKED_OF = {"input": "DUMP", "dump": "DUMP"}
LATER = datetime(2099, 1, 1, tzinfo=UTC)
ENDED = datetime(2020, 1, 1, tzinfo=UTC)
ACCEPTED = [
    {"rule": "offsets_*", "reason": "known", "owner": "we", "until": LATER, "topic": "*o*"},
    {"rule": "*", "reason": "theirs", "owner": "they", "until": LATER, "group_id": "*-a*"},
    {"rule": "share_*", "reason": "mended", "owner": "we", "until": ENDED},
]


@pytest.fixture(scope="module", params=[(), ACCEPTED], ids=["all", "some accepted"])
def state(failover_audited: Path, request: pytest.FixtureRequest) -> Iterator[ReplayedWorkspace]:
    with replayed(Console(quiet=True), inputs=[str(failover_audited)], needs=NEEDS) as found:
        from_file = replace(found.settings.from_file, suppressions=request.param)
        assert isinstance(from_file, GivenSettings)
        yield replace(found, settings=Settings(found.settings.brokers, from_file))


def found_in(state: ReplayedWorkspace) -> RuleFindings:
    return findings_of(state, judged_tables(state), ASKED_OF, PHRASING)


@pytest.fixture(scope="module")
def whole(state: ReplayedWorkspace) -> RuleFindings:
    found = found_in(state)
    assert len(found.findings.parts) == 1
    assert found.findings.num_rows > 30
    return found


@pytest.fixture(scope="module", params=[pytest.param(20, marks=pytest.mark.long), 200])
def parted(
    state: ReplayedWorkspace,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> RuleFindings:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_for_rules, "AT_ONCE", request.param)
        folder = str(tmp_path_factory.mktemp("parts"))
        found = found_in(replace(state, runner=PartRunner(folder)))
    assert len(found.findings.parts) > 2
    return found


def test_findings_rest_on_no_number_of_groups_at_a_time(
    whole: RuleFindings, parted: RuleFindings
) -> None:
    rows = whole.findings.whole()
    assert parted.findings.whole() == rows
    assert pa.concat_tables(parted.findings.pieces()) == rows
    assert parted.findings.first(10) == rows.slice(0, 10)
    assert parted.accepted == whole.accepted
    assert dict(parted.counts) == dict(whole.counts) == dict(counts_of(rows))


def test_one_command_gives_back_offsets_of_groups_of_several_parts(
    whole: RuleFindings, parted: RuleFindings
) -> None:
    def commands(found: RuleFindings) -> list[str]:
        words = found.findings.whole()["suggestion"].to_pylist()
        return [each for each in words if each and each.count("--group") > 1]

    assert commands(parted) == commands(whole)
    assert commands(whole)


@pytest.mark.parametrize("fail_on", ["critical", "warning", "info", "never"])
def test_the_severe_ones_are_those_of_all_parts(
    whole: RuleFindings, parted: RuleFindings, fail_on: str
) -> None:
    severe, of_whole = as_severe(parted.findings, fail_on), as_severe(whole.findings, fail_on)
    assert severe.whole() == of_whole.whole()
    assert severe.num_rows == of_whole.num_rows == severe.whole().num_rows


@pytest.mark.parametrize("at_once", [7, 10_000], ids=["in parts", "at once"])
def test_changes_rest_on_no_number_of_findings_at_a_time(
    whole: RuleFindings,
    at_once: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    rows = whole.findings.whole()
    # Two of three were there before; of those one of three is not there now.
    numbers = range(rows.num_rows)
    now = rows.filter(pa.array([each % 3 != 0 for each in numbers]))
    before = rows.filter(pa.array([each % 3 != 1 for each in numbers]))
    monkeypatch.setattr(subject, "AT_ONCE", at_once)
    found = changes_in_parts(
        PartedTable.held(now), PartedTable.held(before), PartRunner(str(tmp_path))
    )
    expected = with_changes(now, before)
    assert set(expected["change"].to_pylist()) == {"new", "still_there", "gone"}
    assert pa.concat_tables(found.pieces()) == expected
    assert found.num_rows == expected.num_rows
    kept = kept_changes(found)
    assert pa.concat_tables(kept.pieces()) == expected.select(kept.column_names)
    assert kept.num_rows == expected.num_rows


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have audits answer as those of large workspaces do, without Spark."""
    monkeypatch.setattr("jobs.workspaces.replayed.is_small_workspace", lambda _: False)
    monkeypatch.setattr("jobs.workspaces.replayed.java_problem", lambda: "there is none")
    monkeypatch.setattr(rows_for_rules, "AT_ONCE", 100)
    monkeypatch.setattr(subject, "AT_ONCE", 20)


def _without_command(page: Path) -> str:
    """Return a page without the command that made it, which names its folder."""
    command = r"<code>groupscope audit [^<]*</code></pre>\n<p>Every"
    text, count = re.subn(command, "", without_spans(page.read_text("utf-8")))
    assert count == 1
    return text


@pytest.mark.usefixtures("small_parts")
def test_an_audit_in_parts_writes_what_one_at_once_does(
    groupscope: Groupscope, failover_workspace: Path, failover_audited: Path, tmp_path: Path
) -> None:
    def audit(*more: str | Path) -> Any:
        arguments = ["audit", failover_workspace, "--out", tmp_path, "--format", "json"]
        return json.loads(groupscope(*arguments, *more).stdout)

    first = audit()
    assert len(list((tmp_path / "evaluations" / "findings").iterdir())) > 2
    lines, page = "findings.jsonl", "report/index.html"
    assert (tmp_path / lines).read_text("utf-8") == (failover_audited / lines).read_text("utf-8")
    assert _without_command(tmp_path / page) == _without_command(failover_audited / page)
    # The earlier audit is in the folder that is written anew.
    again = audit("--since", tmp_path)
    assert [{**each, "change": "still_there"} for each in first["rows"]] == again["rows"]
    assert len(first["rows"]) == sum(first["summary"]["findings"].values())
