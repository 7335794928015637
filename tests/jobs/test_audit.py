"""The command `audit` on the bundled failover: what is found, kept, accepted, and told as new."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from prometheus_client.parser import text_string_to_metric_families

from analytics.tables.stored_tables import StoredTables
from analytics.workspace import Workspace
from schemas.finding_rules import SEVERITIES
from tests.verdicts.happened import LOST
from tests.verdicts.truth import read_truth

if TYPE_CHECKING:
    import subprocess

    from tests.conftest import Groupscope

CONFIG = """
findings:
  line_lost_by_election: {severity: info}
  offsets_beyond_end: {enabled: false}
suppressions:
  - {rule: offsets_lost_by_election, reason: told in the review, owner: on call, until: 2099-01-01}
  - {rule: "share_*", reason: mended, owner: on call, until: 2020-01-01}
"""


HOOK = """python3 -c "import sys; open('{}', 'w').write(sys.stdin.read()); sys.exit(7)" """


class Audited(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture(scope="module")
def workspace(failover_audited: Path) -> Path:
    return failover_audited


@pytest.fixture(scope="module")
def audited(workspace: Path) -> Audited:
    said = json.loads(workspace.with_name("said.json").read_text("utf-8"))
    return Audited(said["code"], said["stdout"], said["stderr"])


@pytest.fixture(scope="module")
def lines(audited: Audited, workspace: Path) -> list[dict[str, Any]]:
    assert audited.returncode == 1, audited.stderr
    text = (workspace / "findings.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_it_ends_with_1_where_something_critical_is_found(
    audited: Audited, workspace: Path, lines: list[dict[str, Any]]
) -> None:
    summary = json.loads((workspace / "summary.json").read_text("utf-8"))
    assert (audited.returncode, summary["exit_code"], summary["fail_on"]) == (1, 1, "critical")
    assert sum(summary["findings"].values()) == len(lines) > 10
    assert sum(summary["by_rule"].values()) == len(lines)
    assert summary["could_not_be_asked"] == {}
    first, _, counts = audited.stdout.splitlines()[:3]
    worst = summary["incidents"][0]
    assert first == (
        f"{len(summary['incidents'])} things are wrong, 3 of them critical; "
        f"what costs most began at {worst['since']}."
    )
    assert counts.startswith(f"{summary['findings']['critical']} critical, ")


def test_what_costs_most_is_in_one_order_as_text_on_the_page_and_in_the_summary(
    audited: Audited, workspace: Path
) -> None:
    summary = json.loads((workspace / "summary.json").read_text("utf-8"))["incidents"]
    rows = StoredTables(Workspace(str(workspace))).read("audit_incidents").to_pylist()
    page = (workspace / "report" / "index.html").read_text("utf-8")
    verdict = page[page.index('<section id="verdict"') :].partition("</section>")[0]
    texts = {
        "text": " ".join(audited.stdout.split()),
        "page": " ".join(unescape(re.sub(r"<[^>]+>", " ", verdict)).split()),
    }
    messages = [each["message"] for each in summary]
    assert messages == [each["message"] for each in sorted(rows, key=lambda row: row["incident"])]
    severities = [SEVERITIES.index(each["severity"]) for each in summary]
    assert len(messages) > 3
    assert severities == sorted(severities)
    for name, text in texts.items():
        places = [text.find(each) for each in messages if each in text]
        assert len(places) > 3, name
        assert places == sorted(places), name


def test_every_group_that_the_election_cost_commits_is_found_and_no_other(
    lines: list[dict[str, Any]],
) -> None:
    truth = read_truth("kafka-4.3.1-failover")
    lost = {each.key[0] for each in truth.happenings if each.what == LOST}
    found = {each["group_id"] for each in lines if each["rule"] == "offsets_lost_by_election"}
    # Of groups that committed nothing nobody told; nor of share groups, whose brokers disagreed.
    assert lost <= found <= lost | truth.groups_lost | {"fleet-telemetry", "pickup-dispatch"}


def test_a_finding_says_what_to_do_and_where_its_records_are(lines: list[dict[str, Any]]) -> None:
    (one,) = (
        each
        for each in lines
        if (each["rule"], each["group_id"]) == ("offsets_lost_by_election", "parcel-router")
    )
    assert one["since"] == "2026-11-21T09:20:36.859Z"
    # The last instant before the first election of all that took offsets.
    assert "--as-of 2026-11-21T09:20:36.058Z" in one["suggestion"]
    assert one["evidence"][0]["topic"] == "__consumer_offsets"


def test_text_fits_the_page_and_the_worst_comes_first(
    audited: Audited,
) -> None:
    assert max(map(len, audited.stdout.splitlines())) <= 120
    severities = [line.split()[1] for line in audited.stdout.splitlines() if line[:2] == "! "]
    assert len(severities) == 7
    assert severities == sorted(severities, key=["critical:", "warning:"].index)


def check_what_others_are_told(
    workspace: Path, folder: Path, run: subprocess.CompletedProcess[str], told: dict[str, Any]
) -> None:
    """The hook got the summary, and its failure changed nothing; metrics count what was found."""
    summary = (workspace / "summary.json").read_text("utf-8")
    assert (folder / "told.json").read_text("utf-8") == summary
    assert run.returncode == json.loads(summary)["exit_code"] == 1
    assert "ended with 7" in run.stderr
    found = Counter(each["rule"] for each in told["rows"] if each["change"] != "gone")
    samples = [
        each
        for family in text_string_to_metric_families((folder / "audit.prom").read_text("utf-8"))
        for each in family.samples
    ]
    counted = {
        each.labels["rule"]: int(each.value)
        for each in samples
        if each.name == "groupscope_findings" and each.value
    }
    assert counted == dict(found)
    lags = StoredTables(Workspace(str(workspace))).read("lag")["lag"].drop_null().to_pylist()
    assert sorted(each.value for each in samples if each.name == "groupscope_group_lag") == sorted(
        each for each in lags if each >= 0
    )


def test_rules_and_accepted_findings_are_a_teams_own(
    groupscope: Groupscope,
    workspace: Path,
    lines: list[dict[str, Any]],
    tmp_path: Path,
) -> None:
    config = tmp_path / "audit.yaml"
    config.write_text(CONFIG)
    again = shutil.copytree(workspace, tmp_path / "again")
    run = groupscope(
        "audit", again, "--out", again, "--config", config, "--since", workspace,
        "--metrics", tmp_path / "audit.prom", "--on-findings", HOOK.format(tmp_path / "told.json"),
        "--format", "json",
    )  # fmt: skip
    told = json.loads(run.stdout)
    check_what_others_are_told(again, tmp_path, run, told)
    rules = {each["rule"] for each in told["rows"] if each["change"] != "gone"}
    assert "offsets_beyond_end" not in rules
    assert "suppression_expired" in rules
    accepted, ended = told["suppressions"]
    assert accepted["suppressed"] == sum(
        each["rule"] == "offsets_lost_by_election" for each in lines
    )
    assert ended["suppressed"] == 0
    changes = {each["rule"]: each["change"] for each in told["rows"]}
    assert changes["offsets_lost_by_election"] == changes["offsets_beyond_end"] == "gone"
    assert changes["suppression_expired"] == "new"
    assert changes["line_lost_by_election"] == "still_there"
    assert told["summary"]["suppressed"] == accepted["suppressed"]


def test_its_page_is_made_again_byte_for_byte(
    groupscope: Groupscope, workspace: Path, lines: list[dict[str, Any]], tmp_path: Path
) -> None:
    kept = (workspace / "report/index.html").read_text("utf-8")
    assert all(f'id="finding-{each["finding_id"]}"' in kept for each in lines)
    again = groupscope("report", workspace, "--output", tmp_path / "again.html")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again.html").read_text("utf-8") == kept
    told = json.loads(groupscope("report", workspace, "--format", "json").stdout)
    assert (
        told["counts"][0]["text"] == f"{sum(e['severity'] == 'critical' for e in lines)} critical"
    )


def test_numbers_of_the_page_are_cells_of_its_tables(audited: Audited, workspace: Path) -> None:
    assert audited.returncode == 1
    html = (workspace / "report/index.html").read_text("utf-8")
    for grid, table, columns in (
        ("groups-table", "audited_groups", {"Lag": "lag", "Members": "members"}),
        ("lag-table", "lag", {"Lag": "lag", "Committed offset": "committed_offset"}),
        ("divergences-table", None, {"Records lost": "lost_records"}),
    ):
        path = workspace / ("history/divergences" if table is None else f"evaluations/{table}")
        # Groups that a tool named alike are one line, the last.
        rows = [each for each in pq.read_table(path).to_pylist() if not is_of_tool(each)]
        heads, shown = table_of_page(html, grid)
        shown = [row for row in shown if "console-consumer" not in row[0]]
        assert shown
        for head, column in columns.items():
            expected = [shown_number(row, column) for row in rows]
            place = heads.index(head)
            cells = [unescape(row[place]) for row in shown]
            assert cells == expected[: len(shown)], (grid, head)


def shown_number(row: dict[str, Any], column: str) -> str:
    """Return a number as a page has it; a sum of lags has the sign of its bound."""
    if row[column] is None:
        return "-"
    signs = {"at_least": ">= ", "at_least_about": ">= ~", "interpolated": "~"}
    bound = row.get("lag_bound") if column == "lag" else None
    return f"{signs.get(bound or 'exact', '')}{row[column]:,}"


def is_of_tool(row: dict[str, Any]) -> bool:
    """Return whether a row is of a group that kafka-console-consumer.sh named."""
    return re.fullmatch(r"console-consumer-\d+", row.get("group_id") or "") is not None


def table_of_page(html: str, anchor: str) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the texts of a table."""
    text = html.partition(f'<table id="{anchor}">')[2].partition("</table>")[0]
    heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', text)
    rows = re.findall(r"<tr><th scope=.row.>(.*?)</tr>", text, re.DOTALL)
    return heads, [
        [re.sub(r"<[^>]*>", "", each) for each in re.split(r"</t[hd]>\s*<td[^>]*>|</td>$", row)]
        for row in rows
    ]


def test_a_workspace_that_was_not_audited_has_no_page(
    groupscope: Groupscope, failover_workspace: Path
) -> None:
    run = groupscope("report", failover_workspace)
    assert run.returncode == 3
    assert f"audit it: groupscope audit {failover_workspace} --out" in run.stderr


def test_a_config_to_start_from_is_one_that_is_taken(
    groupscope: Groupscope, tmp_path: Path
) -> None:
    run = groupscope("audit", "--print-config")
    assert run.returncode == 0
    config = tmp_path / "audit.yaml"
    config.write_text(run.stdout.replace("offsets_expire_soon:", "offsets_expire_son:"))
    out = tmp_path / "out"
    wrong = groupscope("audit", tmp_path, "--out", out, "--config", config)
    assert wrong.returncode == 2
    assert "unknown rule 'offsets_expire_son'; did you mean 'offsets_expire_soon'?" in wrong.stderr
    assert not out.exists()
