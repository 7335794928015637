"""The command `forensics` on the bundled failover: who suffered, before and after, the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars.selectors as cs
import pytest

from analytics import State, open_dump
from analytics.engine.part_runs import PartRunner
from analytics.errors import SettingRefusedError
from analytics.questions.diff import question as diff_question
from analytics.questions.forensics import incident as incident_module
from analytics.questions.restore import question as restore_question
from analytics.questions.timeline import question as timeline_question
from tests.conftest import ELECTION
from tests.verdicts.happened import LOST
from tests.verdicts.truth import read_truth

if TYPE_CHECKING:
    from tests.conftest import Groupscope


TABLES = {
    "incident_causes": "causes",
    "incident_costs": "costs",
    "offset_verdicts": "verdicts",
    "changed_offsets": "changes",
    "incident_owners": "owners",
    "group_events": "events",
    "incident_brokers": "cluster",
    "incident_others": "others",
}


class Incident(NamedTuple):
    folder: Path
    rows: dict[str, Any]
    page: str


@pytest.fixture(scope="module")
def incident(
    failover_incident: Path,
) -> Incident:
    said = json.loads(failover_incident.with_name("said.json").read_text("utf-8"))
    assert said["code"] == 0, said["stderr"]
    rows = json.loads((failover_incident / "incident.json").read_text("utf-8"))
    page = (failover_incident / "report" / "incident.html").read_text("utf-8")
    return Incident(failover_incident, rows, page)


def test_without_a_name_those_that_the_election_cost_something_are_told(
    incident: Incident,
) -> None:
    truth = read_truth("kafka-4.3.1-failover")
    lost = {each.key[0] for each in truth.happenings if each.what == LOST}
    said = {each["group_id"] for each in incident.rows["verdicts"] if "lost" in each["verdict"]}
    # Of groups that committed nothing nobody told; nor of share groups, whose brokers disagreed.
    assert lost <= said <= lost | truth.groups_lost | {"fleet-telemetry", "pickup-dispatch"}
    assert said <= set(incident.rows["groups"])


def test_offsets_before_are_what_the_coordinator_had_and_after_what_was_left(
    incident: Incident,
) -> None:
    changes = {
        (each["group_id"], each["topic"], each["partition"]): each
        for each in incident.rows["changes"]
    }
    found = changes["billing-eos", "invoices", 0]
    assert (found["from_committed_offset"], found["to_committed_offset"]) == (46, 10)
    assert found["cause"] == "lost_by_election"


def test_what_brokers_did_meanwhile_is_told(incident: Incident) -> None:
    assert all(each["at"].startswith("2026-11-21T09:") for each in incident.rows["cluster"])
    assert {"event", "broker"} <= set(incident.rows["cluster"][0])


def test_the_page_runs_nothing_and_leads_to_each_group(incident: Incident) -> None:
    assert "<script" not in incident.page
    assert "http://" not in incident.page.replace("http://www.w3.org/", "")
    for group in incident.rows["groups"]:
        assert group in incident.page


def test_what_restore_gives_back_lies_beside_it(incident: Incident) -> None:
    folder = incident.folder / "restore"
    assert {"commands.sh", "refused.csv"} <= {each.name for each in folder.iterdir()}
    assert "billing-eos,parcels" not in (folder / "refused.csv").read_text("utf-8")


def test_a_group_that_is_named_is_told_with_those_of_its_coordinator(
    groupscope: Groupscope, incident: Incident
) -> None:
    ran = groupscope(
        "forensics", incident.folder, "--out", incident.folder, "--around", ELECTION,
        "--group", "parcel-*", "--format", "json",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["groups"] == ["parcel-router"]
    others = {each["group_id"]: each["is_same_coordinator"] for each in told["others"]}
    assert others["billing-eos"] is True
    assert others["old-reports"] is False
    assert "parcel-router" not in others


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--around", "2026-11-22T00:00:00Z"), "is not in this dump, whose records are from"),
        (("--around", ELECTION, "--group", "no-*"), "no group that matches no-* is in this dump"),
        (("--around", "2026-11-21T09:19:30Z", "--window-minutes", "0.1"), "name one with --group"),
    ],
)
def test_what_is_not_there_cannot_be_told(
    arguments: tuple[str, ...],
    said: str,
    groupscope: Groupscope,
    failover_workspace: Path,
    tmp_path: Path,
) -> None:
    ran = groupscope("forensics", failover_workspace, "--out", tmp_path / "out", *arguments)
    assert ran.returncode == 3
    assert said in ran.stderr
    assert not (tmp_path / "out" / "report").exists()


def test_a_notebook_is_given_the_rows_that_the_command_writes(
    incident: Incident, failover_dump: Path
) -> None:
    with open_dump(str(failover_dump)) as dump:
        answer = dump.replay().forensics(around=ELECTION)
        assert answer.cannot_tell == tuple(incident.rows["cannot_tell"])
        for name, table in TABLES.items():
            rows = answer.to_polars(name).with_columns(
                cs.temporal().dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
            )
            assert rows.to_dicts() == incident.rows[table], name
        given_back = answer.restore_plan.filter(verdict="restore")
        assert 0 < given_back.height < answer.restore_plan.height


@pytest.mark.parametrize("instant", [None, "2026-11-21T09:18:30Z"])
def test_an_incident_is_asked_of_the_end_of_a_dump_with_a_time(
    failover_dump: Path, instant: str | None
) -> None:
    with open_dump(str(failover_dump)) as dump:
        state = dump.replay(as_of=instant)
        around = {} if instant is None else {"around": ELECTION}
        missing = "`around` has to be a time" if instant is None else "at the end of a dump"
        with pytest.raises(SettingRefusedError, match=missing):
            state.forensics(**around)


def test_the_answer_rests_on_no_number_of_groups_at_a_time(
    failover_dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_dump(str(failover_dump)) as dump:
        state = dump.replay()
        whole = state.forensics(around=ELECTION)
        for each in (incident_module, diff_question, restore_question, timeline_question):
            monkeypatch.setattr(each, "AT_ONCE", 50)
        monkeypatch.setattr(State, "_runner", PartRunner(str(tmp_path)))
        parted = state.forensics(around=ELECTION)
        for name in whole.tables:
            assert parted.to_arrow(name).equals(whole.to_arrow(name)), name
        assert len(list(tmp_path.iterdir())) > len(whole.tables)
