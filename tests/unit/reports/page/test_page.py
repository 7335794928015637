"""The page: what it says first, where its links lead, that every number is a cell."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from datetime import timedelta
from html import unescape
from html.parser import HTMLParser

import pytest

from reports.charts.look import GREEN
from reports.charts.offsets import RETENTIONS
from reports.page.build import page_of
from reports.page.forms import html_of, json_of, markdown_of, text_of
from schemas import table
from tests.support.page_tables import AT, MANIFEST, finding, rows_of, workspace
from tests.support.page_text import without_spans

GROUPS = [f"group-{n}" for n in range(30)]
FINDINGS = [
    finding("group-3", "offsets_lost_by_election", severity="critical", message="group-3 lost 4"),
    finding("group-5"),
    finding("group-6"),
    finding(
        "group-7",
        "group_not_whole",
        severity="info",
        message="the dump does not show all of group-7",
    ),
]


class Anchors(HTMLParser):
    """Ids, and what links lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        if given.get("id"):
            self.ids.append(str(given["id"]))
        if tag == "a":
            self.links.append(str(given["href"]))


@pytest.fixture(scope="module")
def html() -> str:
    return html_of(page_of(workspace(GROUPS, FINDINGS)))


def anchors_of(text: str) -> Anchors:
    found = Anchors()
    found.feed(text)
    return found


def test_the_verdict_names_the_worst_first_and_leads_to_it() -> None:
    page = page_of(workspace(GROUPS, FINDINGS))
    assert [(each.severity, each.text, each.href) for each in page.verdict] == [
        ("critical", "group-3 lost 4", "#rule-offsets_lost_by_election"),
        ("warning", "lag grows for 2 pairs of group and topic", "#rule-lag_growing"),
    ]
    # What costs most is about one group, and more are concerned by something else.
    assert page.answer == (
        "2 things are wrong, 1 of them critical. "
        "What concerns most groups: lag grows for 2 pairs of group and topic."
    )


def test_each_line_of_the_verdict_says_since_when_and_what_to_do_first() -> None:
    found = [
        finding("group-5", since=AT + timedelta(hours=1)),
        finding("group-6", since=AT),
        finding("group-7", "members_idle", severity="info"),
    ]
    page = page_of(workspace(GROUPS, found))
    (line,) = page.verdict
    assert page.answer == "1 thing is wrong; what costs most began at 2026-11-21T09:20:00.000Z."
    assert line.since == "2026-11-21T09:20:00.000Z"
    assert line.command == "kafka-consumer-groups --describe --group group-5"
    assert line.serves == "for the first of 2 findings; each says what to do"


def test_what_one_election_did_is_one_line_with_its_parts() -> None:
    lost = {"topic": "__consumer_offsets", "copy": "broker-1", "elected_at": AT}
    lines = [{**lost, "partition": n, "diverges_at": 5, "lost_records": 10 + n} for n in range(2)]
    place = {"topic": "__consumer_offsets", "partition": 0, "offset": 12}
    command = "groupscope restore dump --group group-5 --group group-6"
    found = [
        finding(
            None,
            "line_lost_by_election",
            severity="critical",
            message="lost",
            since=AT,
            evidence=[{**place, "copy": "broker-1"}],
        ),
        *(
            finding(
                each,
                "offsets_lost_by_election",
                severity="critical",
                since=AT,
                evidence=[place],
                suggestion=command if each != "group-7" else "groupscope timeline dump",
            )
            for each in ("group-7", "group-5", "group-6")
        ),
    ]
    page = page_of(workspace(GROUPS, found, {"divergences": lines}))
    (line,) = page.verdict
    assert line.text == (
        "unclean election: 21 records of 2 internal partitions are only on broker-1"
    )
    assert [(each.text, each.href) for each in line.parts] == [
        ("3 groups lost offsets by an unclean election", "#rule-offsets_lost_by_election"),
        ("an unclean election lost records of 1 partition", "#rule-line_lost_by_election"),
    ]
    assert (line.command, line.serves) == (
        command,
        "for 2 of 3; the findings say what to do for each",
    )
    shown = without_spans(html_of(page))
    for text in (shown, text_of(page, 400), markdown_of(page), json_of(page)):
        assert command in text
        assert "3 groups lost offsets by an unclean election" in text


def test_of_more_incidents_than_there_is_room_for_the_rest_are_counted() -> None:
    rules = [
        *("lag_growing", "lag_old", "offsets_rewound", "offsets_stale", "owner_silent"),
        *(
            "members_idle",
            "rebalance_storm",
            "transaction_hangs",
            "offsets_overdue",
            "quality_broken",
        ),
    ]
    page = page_of(workspace(GROUPS, [finding("group-1", each) for each in rules]))
    assert len(page.verdict) == 8
    assert page.more_incidents == "2 more things among the findings below"


def test_what_cannot_be_told_is_said_apart_with_what_to_copy_next_time() -> None:
    page = page_of(
        workspace(
            GROUPS,
            FINDINGS,
            {
                "applied_rules": [
                    {"rule": "group_not_whole", "subject": "coverage", "findings": 1},
                    {"rule": "lag_growing", "subject": "lag", "findings": 2},
                ]
            },
        )
    )
    (reason,) = page.cannot_tell
    assert reason.text == "the dump does not show all of group-7"
    assert reason.advice.startswith("Copy every partition")
    assert "group_not_whole" not in {each.name for each in page.rules}


UNKNOWN_ENDS = {
    "question": "lag",
    "code": "lag_unknown",
    "parameters": "{}",
    "words": "2 committed offsets: where the log ends at that instant is not known",
}


def test_what_questions_cannot_tell_is_said_though_no_rule_looks_for_it() -> None:
    rules = [
        {"rule": "lag_not_told", "subject": "lag", "is_on": False, "was_applied": False},
        {"rule": "lag_growing", "subject": "lag", "is_on": True, "was_applied": True},
    ]
    other = {**UNKNOWN_ENDS, "question": "share"}
    gaps = [UNKNOWN_ENDS, other, UNKNOWN_ENDS]
    page = page_of(workspace(GROUPS, [], {"applied_rules": rules, "gaps": gaps}))
    (reason,) = page.cannot_tell
    assert reason.text == f"lag, share: {UNKNOWN_ENDS['words']}"
    assert "--end-offsets" in reason.advice
    assert page.checked.endswith("Without a warning, but not fully told: lag.")
    assert page.coverage.says.endswith("what cannot be told all the same is below")
    for text in (html_of(page), text_of(page, 400), markdown_of(page), json_of(page)):
        assert "where the log ends at that instant is not known" in text


def test_of_more_gaps_than_there_is_room_for_the_rest_are_counted() -> None:
    gaps = [{**UNKNOWN_ENDS, "words": f"offset {number}: why"} for number in range(15)]
    page = page_of(workspace(GROUPS, [], {"gaps": gaps}))
    assert page.cannot_tell[-1].text == "3 more things in evaluations/gaps"
    assert len(page.cannot_tell) == 13


def test_rows_that_cannot_be_told_are_no_whole_answer_without_a_gap_or_a_rule() -> None:
    read = workspace(GROUPS, [])
    told, is_open = page_of(read), page_of(replace(read, summary={**read.summary, "is_open": True}))
    assert told.cannot_tell == ()
    assert "Nothing that was asked is left open" in text_of(told, 400)
    (reason,) = is_open.cannot_tell
    assert reason.text.startswith("some rows of tables cannot be told")
    assert "Nothing that was asked is left open" not in html_of(is_open) + text_of(is_open, 400)


def test_where_nothing_is_wrong_it_says_what_is_in_order() -> None:
    rules = [{"rule": "lag_growing", "subject": "lag", "was_applied": True, "findings": 0}]
    page = page_of(workspace(GROUPS, [], {"applied_rules": rules}))
    assert page.verdict == ()
    assert page.checked.startswith("Nothing was found that needs anyone. 1 rule")
    assert page.checked.endswith("Without a warning: lag.")


def test_a_subject_of_which_something_cannot_be_told_is_not_simply_fine() -> None:
    rules = [
        {"rule": name, "subject": "lag", "was_applied": True, "findings": 1}
        for name in ("lag_growing", "lag_not_told")
    ]
    found = [finding("group-7", "lag_not_told", severity="info", message="its lag is not known")]
    page = page_of(workspace(GROUPS, found, {"applied_rules": rules}))
    assert "Without a warning, but not fully told: lag." in page.checked
    assert page.coverage.says.endswith("what cannot be told all the same is below")


def test_coverage_says_which_records_are_missing() -> None:
    lacking = {**MANIFEST["partitions"][0], "lacks": "offsets 3 to 9 of __consumer_offsets-0"}
    page = page_of(workspace(GROUPS, [], manifest={**MANIFEST, "partitions": [lacking]}))
    assert (page.coverage.word, page.coverage.says) == (
        "gaps",
        "offsets 3 to 9 of __consumer_offsets-0",
    )
    (reason,) = page.cannot_tell
    assert reason.text == page.coverage.says


def test_every_link_leads_somewhere_and_no_id_is_there_twice(html: str) -> None:
    found = anchors_of(html)
    assert len(found.ids) == len(set(found.ids))
    assert {each for each in found.links if not each.startswith("#")} == set()
    assert {each[1:] for each in found.links} <= set(found.ids)


def test_nothing_is_loaded_and_nothing_runs_but_the_script_that_the_policy_names(
    html: str,
) -> None:
    found = anchors_of(html)
    assert found.tags.count("script") == 1
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"script-src 'sha256-{digest}'"
    assert policy in unescape(html)
    assert not re.search(r"fetch|XMLHttpRequest|import|eval|innerHTML|localStorage|https?:", script)
    assert re.findall(r"""(?:src|href|action)=["'](?!#|data:,)[^"']*|url\(|@import""", html) == []


def test_the_same_tables_give_the_same_bytes() -> None:
    read = workspace(GROUPS, FINDINGS)
    assert html_of(page_of(read)) == html_of(page_of(read))


def test_a_record_is_found_again_with_kafkas_own_tool() -> None:
    page = page_of(workspace(GROUPS, FINDINGS))
    (record,) = page.rules[0].shown[0].records
    assert record.place == "__consumer_offsets-0@12"
    assert record.command == (
        "kafka-dump-log.sh --files dump/broker-1/__consumer_offsets-0/00000000000000000000.log "
        "--deep-iteration --offsets-decoder | grep -w 'offset: 12'"
    )


def test_groups_are_those_of_the_table_in_its_order() -> None:
    read = workspace(GROUPS, FINDINGS)
    grid = page_of(read).groups
    shown = [row[0].text for row in grid.rows]
    assert shown == read.rows("audited_groups")["group_id"].to_pylist()
    assert shown[:3] == ["group-3", "group-6", "group-5"]
    place = grid.heads.index("Lag")
    lags = {row[0].text: row[place].text for row in grid.rows}
    known = rows_of("lag", read.rows("lag").to_pylist())
    assert lags == {row["group_id"]: f"{row['lag']:,}" for row in known.to_pylist()}


def test_ten_thousand_groups_take_no_more_than_five_megabytes() -> None:
    names = [f"a-service-with-a-rather-long-name-{n:05}" for n in range(10_000)]
    findings = [finding(each) for each in names]
    place = {"topic": "orders", "partition": 0}
    tables = {
        "group_events": [
            {"group_id": each, "at": AT, "event": "assignment", "detail": "lost orders-1" * 8}
            for each in names[-200:]
            for _ in range(60)
        ],
        "group_churn": [{"group_id": each, "epochs": 4, "storms": 0} for each in names],
        "rebalances": [{"group_id": each, "at": AT, "member_count": 2} for each in names],
        "offset_expiration": [
            {"group_id": each, **place, "expires_at": AT, "status": "scheduled"} for each in names
        ],
        "offset_removals": [
            {"group_id": each, **place, "removed_at": AT, "cause": "expired", "verdict": "early"}
            for each in names
        ],
    }
    page = page_of(workspace(names, findings, tables))
    assert len(page.groups.rows) == 200
    assert page.groups.more == "9,800 more in evaluations/audited_groups"
    assert len(html_of(page).encode()) < 5_000_000


def test_all_forms_say_the_same() -> None:
    page = page_of(workspace(GROUPS, FINDINGS))
    for text in (html_of(page), text_of(page, 120), markdown_of(page), json_of(page)):
        assert "lag grows for 2 pairs of group and topic" in text
    assert max(map(len, text_of(page, 120).splitlines())) <= 120


def test_what_changed_since_an_earlier_audit_is_said() -> None:
    found = [finding("group-5"), finding("group-6")]
    changes = [
        {**row, "change": change}
        for row, change in zip(
            [*found, finding("group-9", message="the lag of group-9 grew")],
            ("new", "still_there", "gone"),
            strict=True,
        )
    ]
    page = page_of(workspace(GROUPS, found, {"finding_changes": changes}))
    assert [each.change for each in page.rules[0].shown] == ["new", "still there"]
    assert [each.text for each in page.gone] == ["the lag of group-9 grew"]
    text = text_of(page, 120)
    assert "- [new] the lag of group-5 grows" in text
    assert "Gone since the earlier audit" in text


def test_a_clause_of_the_verdict_is_not_cut_within_a_name() -> None:
    named = "a: b (c; d"
    message = f"members of {named} committed earlier offsets: 4 (orders)"
    page = page_of(workspace([named], [finding(named, message=message)]))
    assert page.verdict[0].text == f"members of {named} committed earlier offsets"


def test_groups_that_a_tool_named_alike_are_one_line() -> None:
    names = [*(f"console-consumer-{n}" for n in (4711, 90210)), "billing", "console-consumer-x"]
    found = [finding("console-consumer-4711"), finding("console-consumer-90210")]
    grid = page_of(workspace(names, found)).groups
    assert [row[0].text for row in grid.rows] == [
        *("console-consumer-x", "billing", "console-consumer-<number> (2 groups)"),
    ]
    warnings = grid.heads.index("Warnings")
    assert [row[warnings].text for row in grid.rows] == ["0", "0", "2"]


@pytest.mark.parametrize(("score", "is_even"), [(100, True), (99.5, False)])
def test_nothing_is_uneven_where_all_scores_are_100(score: float, *, is_even: bool) -> None:
    spread = {"min_partitions": 2, "mean_partitions": 2.5, "max_partitions": 3}
    balance = {"group_id": "group-1", **spread, "verdict": "even", "score": score}
    choice = {"group_id": "group-1", "assignor": "range", "score": 50.0}
    tables = {"assignment_balance": [balance], "assignment_alternatives": [choice]}
    (subject,) = (
        each
        for each in page_of(workspace(GROUPS, [], tables)).subjects
        if each.anchor == "assignment"
    )
    says = [*(each.says for each in subject.figures), *(each.caption for each in subject.grids)]
    assert any("uneven" in each for each in says) is not is_even


def test_on_the_scale_of_what_retentions_do_no_loss_is_green() -> None:
    words = table("retention_what_if").column("verdict").closed
    assert words is not None
    assert {each.replace("_", " ") for each in words.values} == RETENTIONS.keys()
    assert {each for each, (colour, _) in RETENTIONS.items() if colour == GREEN} == {"safe"}
    assert len({shape for _, shape in RETENTIONS.values()}) == len(RETENTIONS)


def test_what_a_rule_says_to_type_is_code_and_names_keep_their_backticks() -> None:
    odd = "a`b`c"
    findings = [finding(odd, "expiry_not_told", severity="info", message=f"of {odd}")]
    html = html_of(page_of(workspace([odd], findings)))
    whole = unescape(html)
    assert "each broker's <code>server.properties</code>" in whole
    assert '<code><span class="p">--broker-config</span> FILE</code>' in html
    assert f"of {odd}" in html
