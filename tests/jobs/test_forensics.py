"""The command `forensics` on the bundled failover: who suffered, before and after, the page."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars.selectors as cs
import pytest
from markupsafe import escape

from analytics import State, open_dump
from analytics.engine.part_runs import PartRunner
from analytics.errors import SettingRefusedError
from analytics.questions.diff import question as diff_question
from analytics.questions.forensics import incident as incident_module
from analytics.questions.restore import question as restore_question
from analytics.questions.timeline import question as timeline_question
from reports.incident_summary import Restored, sentences_of
from tests.conftest import ELECTION
from tests.support.page_text import without_spans
from tests.verdicts.happened import (
    EXPIRED,
    GROUP_DELETED,
    LOST,
    OFFSET_DELETED,
    TOPIC_DELETED,
)
from tests.verdicts.truth import read_truth

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.library.state import Answered
    from tests.conftest import Groupscope


DUMP = Path(__file__).parents[1] / "data" / "dumps" / "kafka-4.3.1-failover"
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
    page = without_spans((failover_incident / "report" / "incident.html").read_text("utf-8"))
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


def _epoch_ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def test_what_it_came_from_is_what_brokers_and_operators_did(incident: Incident) -> None:
    cause = incident.rows["causes"][0]
    lines = (DUMP / "timeline-of-brokers.jsonl").read_text("utf-8").splitlines()
    events = [json.loads(each) for each in lines]
    told = json.loads((DUMP / "tools" / "divergence.json").read_text("utf-8"))
    of_coordinators = [each for each in told if each["partition"].startswith("__")]
    lost = [each for each in of_coordinators if each.get("dead_copy_records_lost")]
    elected = [each["at"] for each in events if each["event"] == "election"]
    killed = next(each["at"] for each in events if each.get("node") == 1)
    frozen = next(each["at"] for each in events if each["event"] == "clients-frozen")
    assert cause["copy"] == "broker-1"
    assert cause["lost_records"] == sum(each["dead_copy_records_lost"] for each in lost)
    assert cause["partitions"] == len(lost)
    # The operator's clock stands after the controller's: the election is done when it answers.
    assert min(elected) - 1000 <= _epoch_ms(cause["elected_from"]) <= min(elected)
    assert _epoch_ms(cause["elected_to"]) <= max(elected)
    assert cause["unclean"] is True
    assert cause["elected_brokers"] == sorted({each["survivor"] for each in lost})
    assert _epoch_ms(cause["last_record_at"]) <= frozen < killed


def test_what_it_cost_is_what_clients_had_committed(incident: Incident) -> None:
    cause = incident.rows["causes"][0]
    truth = read_truth("kafka-4.3.1-failover")
    lost = [each for each in truth.happenings if each.what == LOST]
    commits = [each for each in lost if each.was != frozenset({None})]
    assert cause["lost_commits"] == len(commits)
    assert cause["commit_groups"] == len({each.key[0] for each in commits})
    hit = {each.key[0] for each in lost} | truth.groups_lost | {key[0] for key in truth.share_lost}
    assert cause["groups"] == len(hit)
    # At least: where no offset came after, nobody told how much was read.
    gone_back = [(min(each.was - {None}), each.became - {None}) for each in commits]
    again = sum(was - min(after) for was, after in gone_back if after and min(after) < was)
    assert 0 < cause["records_again"] <= again
    assert cause["is_at_least"] is True


def test_the_first_sentence_says_just_that(incident: Incident) -> None:
    cause, first = incident.rows["causes"][0], incident.rows["summary"][0]
    for number in ("lost_records", "partitions", "commit_groups", "lost_commits", "records_again"):
        assert f" {cause[number]:,} " in first
    for time in ("last_record_at", "elected_from", "elected_to"):
        assert cause[time] in first
    assert "broker-2 and broker-3" in first
    assert "(unclean)" in first
    assert escape(first) in re.sub(r'<span class="t">(.*?)</span>', r"\1", incident.page)
    text = json.loads(incident.folder.with_name("said.json").read_text("utf-8"))["stdout"]
    assert " ".join(text.split()).startswith(first)


def test_what_to_do_now_gives_back_what_restore_says(incident: Incident) -> None:
    restored = incident.rows["restore"]
    told = json.loads((incident.folder / "restore" / "restore.json").read_text("utf-8"))["counts"]
    assert restored["offsets"] == told["restore"] > 0
    assert restored["refused"] == told["refused"]
    dry, execute = map(shlex.split, restored["commands"])
    assert Path(dry[2]).is_file()
    assert execute == [*dry, "--execute"]
    assert escape(restored["commands"][0]) in incident.page


def test_groups_come_by_what_it_cost_them(incident: Incident) -> None:
    costs = incident.rows["costs"]
    amounts = [(each["records_again"], each["lost_commits"]) for each in costs]
    assert amounts == sorted(amounts, reverse=True)
    assert incident.rows["groups"] == [each["group_id"] for each in costs]
    only = {each["group_id"] for each in costs if each["only_on"] == "broker-1"}
    assert only == read_truth("kafka-4.3.1-failover").groups_lost
    assert "broker-1: no record that survived names the group" in incident.page


def test_numbers_of_the_page_stand_right_aligned_also_those_that_are_bounds(
    incident: Incident,
) -> None:
    table = re.search(r'<table id="costs-table">.*?</table>', incident.page, re.DOTALL)
    assert table is not None
    numbers = re.findall(r'<th scope="col" class="n">([^<]*)</th>', table[0])
    assert numbers == [
        *("Records read again", "Commits lost", "Partitions", "Given back", "Refused"),
    ]
    # The first of them is the head of its row.
    first = re.findall(r'<th scope="row" class="n">([^<]*)</th>', table[0])
    assert len(first) == len(re.findall(r'<th scope="row"', table[0]))
    assert {"365", "cannot tell"} <= set(first)


@pytest.mark.parametrize(
    ("lacking", "sentence", "not_said"),
    [
        (("broker-1",), "cannot tell what happened to 29 groups", "which lacked"),
        (("controller-100", "__cluster_metadata-0"), "cannot tell who was elected", "(unclean)"),
    ],
    ids=["the other line", "the metadata log"],
)
def test_what_the_dump_lacks_is_said_in_the_first_sentence(
    lacking: tuple[str, ...],
    sentence: str,
    not_said: str,
    groupscope: Groupscope,
    failover_dump: Path,
    tmp_path: Path,
) -> None:
    dump = tmp_path / "dump"
    shutil.copytree(failover_dump, dump, ignore=shutil.ignore_patterns(*lacking))
    ran = groupscope(
        "forensics", dump, "--around", ELECTION, "--out", tmp_path / "out", "--format", "json"
    )
    first = json.loads(ran.stdout)["summary"][0]
    assert sentence in first
    assert not_said not in first


HAPPENED = {
    "lost_by_election": LOST,
    "expired": EXPIRED,
    "group_deleted": GROUP_DELETED,
    "offset_deleted": OFFSET_DELETED,
    "topic_deleted": TOPIC_DELETED,
}


@pytest.mark.parametrize(
    ("dump", "around"),
    [
        pytest.param("dumps/kafka-4.3.1-story", "2026-11-21T09:15:00Z", marks=pytest.mark.long),
        ("dumps/kafka-3.9.2-classic", "2026-11-21T09:18:00Z"),
        pytest.param("expiry/kafka-4.3.1-expiry", "2026-11-21T08:58:00Z", marks=pytest.mark.long),
    ],
)
def test_no_sentence_of_another_incident_says_more_than_happened(dump: str, around: str) -> None:
    with open_dump(str(DUMP.parents[1] / dump)) as opened:
        answer = opened.replay().forensics(around=around)
    causes = answer.to_polars("incident_causes").to_dicts()
    window = answer.figures["window"]
    begin, end = (round(each.timestamp() * 1000) for each in (window.begin, window.end))
    truth = read_truth(dump.partition("/")[2])
    told = [each for each in causes if each["verdict"] in HAPPENED]
    assert told
    for cause in told:
        happened = [
            each
            for each in truth.happenings
            if each.what == HAPPENED[cause["verdict"]] and each.at[0] <= end and each.at[1] >= begin
        ]
        assert cause["lost_commits"] <= len(happened)
        assert cause["commit_groups"] <= len({each.key[0] for each in happened})
        # None of these dumps has an election that lost anything.
        assert cause["copy"] is None
        first = sentences_of([cause], [], Restored(window.begin, 0, 0, 0, 0, {}, None))[0]
        assert first.startswith(f"{cause['groups']} group")


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
    groupscope: Groupscope, incident: Incident, tmp_path: Path
) -> None:
    ran = groupscope(
        "forensics", incident.folder, "--out", tmp_path / "named", "--around", ELECTION,
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


@pytest.fixture(scope="module")
def at_end(failover_workspace: Path) -> Iterator[State]:
    """What a notebook has of the bundled dump at its end."""
    with open_dump(str(failover_workspace)) as dump:
        yield dump.replay()


@pytest.fixture(scope="module")
def in_notebook(at_end: State) -> Answered:
    """The same incident, asked in a notebook."""
    return at_end.forensics(around=ELECTION)


def test_a_notebook_is_given_the_rows_that_the_command_writes(
    incident: Incident, in_notebook: Answered
) -> None:
    assert in_notebook.cannot_tell == tuple(incident.rows["cannot_tell"])
    for name, table in TABLES.items():
        rows = in_notebook.to_polars(name).with_columns(
            cs.temporal().dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
        )
        assert rows.to_dicts() == incident.rows[table], name
    given_back = in_notebook.restore_plan.filter(verdict="restore")
    assert 0 < given_back.height < in_notebook.restore_plan.height


def test_an_incident_is_asked_with_a_time(at_end: State) -> None:
    with pytest.raises(SettingRefusedError, match="`around` has to be a time"):
        at_end.forensics()


def test_an_incident_is_asked_of_the_end_of_a_dump(failover_workspace: Path) -> None:
    with open_dump(str(failover_workspace)) as dump:
        state = dump.replay(as_of="2026-11-21T09:18:30Z")
        with pytest.raises(SettingRefusedError, match="at the end of a dump"):
            state.forensics(around=ELECTION)


def test_the_answer_rests_on_no_number_of_groups_at_a_time(
    at_end: State,
    in_notebook: Answered,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for each in (incident_module, diff_question, restore_question, timeline_question):
        monkeypatch.setattr(each, "AT_ONCE", 50)
    monkeypatch.setattr(State, "_runner", PartRunner(str(tmp_path)))
    parted = at_end.forensics(around=ELECTION)
    for name in in_notebook.tables:
        assert parted.to_arrow(name).equals(in_notebook.to_arrow(name)), name
    assert len(list(tmp_path.iterdir())) > len(in_notebook.tables)
