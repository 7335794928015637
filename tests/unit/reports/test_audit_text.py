"""An audit as text: what is wrong leads, and what an incident has is not listed once more."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from analytics.questions.findings.ended_lines import elections_of
from analytics.questions.findings.found import in_order
from analytics.questions.findings.incidents import incident_sums, incidents_of
from analytics.tables.parted_table import PartedTable
from reports.findings import AuditFindings, answer_of
from reports.layout.output_format import OutputFormat, Paper
from reports.verdict import incidents_in
from tests.support.page_tables import AT, finding, rows_of

INTERNAL = "__consumer_offsets"
LINE = {
    "topic": INTERNAL,
    "partition": 0,
    "copy": "broker-1",
    "diverges_at": 5,
    "lost_records": 7,
    "elected_at": AT,
}
RESTORE = "groupscope restore dump " + " ".join(f"--group group-{n}" for n in range(12))


def lost(group: str) -> dict[str, Any]:
    """A finding that the election took offsets of a group."""
    record = {"topic": INTERNAL, "partition": 0, "offset": 9}
    said = {"severity": "critical", "since": AT, "suggestion": RESTORE, "evidence": [record]}
    return finding(group, "offsets_lost_by_election", message=f"{group} lost 4", **said)


def lost_line() -> dict[str, Any]:
    record = {"topic": INTERNAL, "partition": 0, "offset": 5, "copy": "broker-1"}
    return finding(None, "line_lost_by_election", severity="critical", since=AT, evidence=[record])


ELECTION = [lost_line(), *(lost(f"group-{n}") for n in range(5))]
WARNING = finding("group-9", message="the lag of group-9 grows", since=AT + timedelta(hours=1))
INFO = finding("group-7", "partitions_unread", severity="info", message="nobody owns group-7")


def audit_text(
    findings: list[dict[str, Any]],
    output_format: OutputFormat | str = "text",
    changes: pa.Table | None = None,
    *,
    is_open: bool = False,
) -> str:
    rows = rows_of("findings", findings)
    counts = Counter((each["rule"], each["severity"]) for each in findings)
    severities = Counter(each["severity"] for each in findings)
    elections = elections_of(rows_of("divergences", [LINE]))
    sums = [incident_sums(in_order(rows), elections)]
    incidents = incidents_in(*incidents_of(sums, elections))
    summary = {
        "findings": {each: severities[each] for each in ("critical", "warning", "info")},
        "suppressed": 0,
        "could_not_be_asked": {},
    }
    answer = answer_of(
        AuditFindings(
            PartedTable.held(rows),
            counts,
            rows_of("suppressions", []),
            incidents,
            None if changes is None else PartedTable.held(changes),
            is_open,
        ),
        output_format,
        {"summary": summary},
    )
    return answer if isinstance(answer, str) else "".join(answer)


def test_it_leads_with_what_is_wrong_since_when_and_what_to_do() -> None:
    text = audit_text([*ELECTION, WARNING, INFO])
    assert text.startswith(
        "2 things are wrong, 1 of them critical; what costs most began at "
        "2026-11-21T09:20:00.000Z.\n\n"
        "6 critical, 1 warning, 1 worth knowing\n\n"
        "! critical: unclean election: 7 records of 1 internal partition are only on broker-1 "
        "(since\n      2026-11-21T09:20:00.000Z)\n"
        "    - 5 groups lost offsets by an unclean election: group-0, group-1, group-2 and 2 more\n"
        "    - an unclean election lost records of 1 partition\n"
        "  groupscope restore dump --group group-0 --group group-1 --group group-2 --group group-3 "
        "--group group-4 --group \\\n"
    )


def test_what_an_incident_has_is_not_listed_once_more() -> None:
    text = audit_text([*ELECTION, WARNING, INFO])
    assert "group-3 lost 4" not in text
    assert "--table findings lists each of these findings" in text
    assert text.count("the lag of group-9 grows") == 1
    assert text.index("Worth knowing\n") < text.index("nobody owns group-7")


@pytest.mark.parametrize(
    "output_format",
    [
        OutputFormat("text", table="findings"),
        OutputFormat("text", sort="GROUP"),
        OutputFormat("text", only_problems=True),
    ],
    ids=["table", "sort", "only-problems"],
)
def test_who_asks_for_rows_has_each_finding_and_nothing_else(output_format: OutputFormat) -> None:
    text = audit_text([*ELECTION, WARNING, INFO], output_format)
    assert "things are wrong" not in text
    for number in range(5):
        assert f"group-{number} lost 4" in text


def test_where_audits_are_compared_each_finding_says_how_it_changed() -> None:
    rows = rows_of("findings", [*ELECTION, WARNING])
    changes = rows.append_column("change", pa.array(["still_there"] * 6 + ["new"]))
    text = audit_text([*ELECTION, WARNING], changes=changes)
    assert text.startswith("2 things are wrong")
    assert "group-3 lost 4" in text
    assert "still there" in text


def test_where_there_is_no_room_for_all_incidents_every_finding_is_listed() -> None:
    rules = (
        *("lag_growing", "lag_old", "offsets_rewound", "offsets_stale", "owner_silent"),
        *("members_idle", "rebalance_storm", "transaction_hangs", "offsets_overdue"),
    )
    text = audit_text([finding("group-1", each, message=f"it is {each}") for each in rules])
    assert "1 more thing in evaluations/audit_incidents" in text
    assert all(f"it is {each}" in text for each in rules)


def test_nothing_that_needs_anyone_is_one_sentence() -> None:
    assert audit_text([INFO]).startswith(
        "Nothing was found that needs anyone.\n\n0 critical, 0 warnings, 1 worth knowing\n\n"
    )
    assert audit_text([]) == "Nothing was found.\n\n0 critical, 0 warnings, 0 worth knowing"


def test_where_the_dump_does_not_tell_all_nothing_found_is_no_promise() -> None:
    doubt = "The dump does not tell all: the page says, under Cannot tell, what it lacks."
    assert audit_text([], is_open=True).startswith(f"Nothing was found. {doubt}\n\n")
    assert audit_text([INFO], is_open=True).startswith(
        f"Nothing was found that needs anyone. {doubt}\n\n"
    )
    wrong, *_ = audit_text([WARNING], is_open=True).split("\n\n")
    assert wrong.startswith("1 thing is wrong; ")
    assert " ".join(wrong.split()).endswith(doubt)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_no_line_is_wider_than_the_page(width: int) -> None:
    text = audit_text([*ELECTION, WARNING, INFO], OutputFormat("text", paper=Paper(width)))
    assert max(map(len, text.splitlines())) <= width


def test_a_name_is_text_in_a_terminal_and_in_markdown() -> None:
    found = [*ELECTION[:1], *(lost(f"<b>\x1b[2J{n}</b>") for n in range(2))]
    assert "\x1b" not in audit_text(found)
    markdown = audit_text(found, "markdown")
    assert "\x1b" not in markdown
    assert r"2 groups lost offsets by an unclean election: \<b\>" in markdown


def test_json_has_rows_alone() -> None:
    text = audit_text([*ELECTION, WARNING, INFO], "json")
    assert pl.read_json(text.encode())["rows"].list.len().item() == 8
