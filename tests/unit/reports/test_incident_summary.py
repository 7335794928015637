"""What an incident came from and what it cost, in sentences that say no more than the rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from reports.incident_summary import (
    NOTHING,
    Restored,
    commands_of,
    sentences_of,
    steps_of,
    summary_text,
)
from reports.layout.output_format import OutputFormat, Paper

if TYPE_CHECKING:
    from schemas.manifest import CopyEntry

T1 = datetime(2026, 11, 21, 9, 18, 11, 244_000, UTC)
T2 = datetime(2026, 11, 21, 9, 20, 36, 59_000, UTC)
T3 = datetime(2026, 11, 21, 9, 20, 37, 551_000, UTC)
COPIES: list[CopyEntry] = [
    {"name": "broker-1", "node_id": 1},
    {"name": "broker-2", "node_id": 2},
    {"name": "archive", "node_id": None},
]
NOTHING_BACK = Restored(T1, 0, 0, 0, 0, {}, None)
ELECTION = {
    "verdict": "lost_by_election", "copy": "broker-1", "last_record_at": T1,
    "lost_records": 426, "partitions": 11, "elected_brokers": [2, 3],
    "partitions_without_leader": 0, "elected_from": T2, "elected_to": T3,
    "election_shown_by": "metadata_log", "unclean": True, "surviving_copy": "broker-2",
    "groups": 12, "commit_groups": 9, "lost_commits": 26, "unsure_commits": 0,
    "offsets": 35, "records_again": 512, "records_skipped": 0, "is_at_least": True,
    "removed_offsets": 0, "removed_groups": 0, "reason": None, "other_reasons": 0,
    "deleted_states": 0, "state_groups": 0, "groups_without_offsets": 0,
}  # fmt: skip
OTHER = {
    **dict.fromkeys(ELECTION),
    "verdict": "rewound_by_member",
    "elected_brokers": [],
    "groups": 1,
    "commit_groups": 0,
    "lost_commits": 0,
    "unsure_commits": 0,
    "offsets": 3,
    "records_again": 120,
    "records_skipped": 0,
    "is_at_least": False,
    "removed_offsets": 0,
    "removed_groups": 0,
    "other_reasons": 0,
    "deleted_states": 0,
    "state_groups": 0,
    "groups_without_offsets": 0,
}
UNTOLD = {
    **OTHER,
    "verdict": "cannot_tell",
    "records_again": 0,
    "is_at_least": True,
    "reason": "the log of broker 1, the leader before, is not in the dump",
}


def said(*causes: dict[str, Any], restored: Restored = NOTHING_BACK) -> str:
    return " ".join(sentences_of(causes, COPIES, restored))


def test_an_election_says_whose_records_are_gone_who_was_elected_and_what_it_cost() -> None:
    assert sentences_of([ELECTION], COPIES, NOTHING_BACK)[0] == (
        "broker-1's last record in internal topics is from 2026-11-21T09:18:11.244Z; broker-2 "
        "and broker 3, which lacked its last 426 records in 11 partitions of internal topics, "
        "were elected from 2026-11-21T09:20:36.059Z to 2026-11-21T09:20:37.551Z (unclean); "
        "9 groups lost 26 commits, at least 512 records are read again; 3 more groups lost "
        "deletions or the state of share groups."
    )


@pytest.mark.parametrize(
    ("less", "sentence", "not_said"),
    [
        (
            {"elected_brokers": []},
            "cannot tell who was elected, or whether unclean: no",
            "were elected",
        ),
        ({"elected_brokers": [2]}, "broker-2, which lacked its last 426 records", "broker 3"),
        ({"partitions_without_leader": 4}, "cannot tell who was elected in 4 of these", "no meta"),
        ({"unclean": None}, "(cannot tell whether unclean: no metadata log", "(unclean)"),
        ({"last_record_at": None}, "which lacked broker-1's last 426 records", "is from"),
        ({"elected_from": None}, "at a time that the dump does not show", "09:20:36"),
        ({"election_shown_by": "first_record"}, "by 2026-11-21T09:20:37.551Z at the latest", "36"),
        ({"is_at_least": False}, "26 commits, 512 records are read again", "at least"),
        ({"records_again": 0}, "cannot tell how many records are read again", "at least"),
        ({"groups": 0, "commit_groups": 0, "records_again": 0}, "is known to have lost", "more"),
        ({"unsure_commits": 5}, "(cannot tell for sure of 5: low confidence)", "more cause"),
        ({"groups": 9}, "9 groups lost 26 commits", "more group"),
        ({"records_skipped": 7}, "7 records are skipped", "more cause"),
    ],
)
def test_what_no_record_shows_is_not_said(
    less: dict[str, Any], sentence: str, not_said: str
) -> None:
    text = said({**ELECTION, **less})
    assert sentence in text
    assert not_said not in text


def test_what_cannot_be_told_is_said_with_its_reason_however_much_else_happened() -> None:
    others = [{**OTHER, "verdict": each} for each in ("expired", "group_deleted", "topic_deleted")]
    text = said(ELECTION, *others, UNTOLD)
    assert "Cannot tell what happened to 1 group on 3 partitions: the log of broker 1" in text
    assert "1 more cause: topic deleted." in text
    assert "(and 2 other reasons)" in said({**UNTOLD, "other_reasons": 2})


def test_of_removals_it_is_said_that_they_were_and_not_by_what() -> None:
    removed = {**UNTOLD, "offsets": 3, "removed_offsets": 3, "removed_groups": 2, "reason": None}
    assert sentences_of([removed], COPIES, NOTHING_BACK)[0] == (
        "3 offsets of 2 groups were removed; cannot tell whether they expired or were deleted: no "
        "record shows it."
    )
    one = said({**removed, "offsets": 3, "removed_offsets": 1, "reason": "records are missing"})
    assert "1 offset of 2 groups was removed; cannot tell whether it expired or was" in one
    assert one.endswith(
        "cannot tell what happened to 2 more: records are missing. No offset can be given back."
    )


REMOVED_APART = {**UNTOLD, "groups": 0, "offsets": 0, "reason": None}


def test_share_groups_that_lost_their_state_are_counted_and_so_are_groups_without_offsets() -> None:
    states = {**REMOVED_APART, "deleted_states": 8, "state_groups": 2}
    assert sentences_of([states], COPIES, NOTHING_BACK)[0] == (
        "The state of 8 share partitions of 2 share groups was deleted."
    )
    alone = {**REMOVED_APART, "groups_without_offsets": 2}
    assert sentences_of([alone], COPIES, NOTHING_BACK)[0] == (
        "2 groups were removed without a committed offset; cannot tell whether they were deleted "
        "or a cleanup removed them: no record shows it."
    )
    both = {**states, "groups_without_offsets": 1}
    assert "was deleted; 1 more group was removed without" in said(both)


def test_what_was_removed_apart_hides_nothing_else_that_cannot_be_told() -> None:
    both = {**UNTOLD, "groups_without_offsets": 1}
    assert "a cleanup removed it: no record shows it; cannot tell what happened to 1 gr" in said(
        both
    )
    removed = {**both, "removed_offsets": 3, "removed_groups": 1, "reason": None}
    assert said(removed).startswith("3 offsets of 1 group were removed; cannot tell whether they")
    assert "1 more group was removed without" in said(removed)


def test_an_election_of_which_nobody_has_the_other_line_is_said_and_not_judged() -> None:
    of_elections = ("partitions", "elected_from", "elected_to", "election_shown_by", "unclean")
    unseen = {**UNTOLD, **{name: ELECTION[name] for name in of_elections}}
    text = said({**unseen, "elected_brokers": [2]})
    assert text.startswith("broker-2 was elected in 11 partitions of internal topics from 2026")
    assert "(unclean); cannot tell what happened to 1 group" in text


def test_where_nothing_happened_nothing_is_known_to_be_lost() -> None:
    assert said() == f"{NOTHING} No offset can be given back."


BACK = Restored(T1, 11, 5, 2, 16, {"above_log_end": 8, "share_group": 6}, "/in '1'/commands.sh")


def test_what_is_given_back_and_refused_is_counted_and_the_command_can_be_pasted() -> None:
    assert said(ELECTION, restored=BACK).endswith(
        "11 offsets of 5 groups can be given back with the command below (16 refused)."
    )
    steps = " ".join(steps_of(BACK))
    assert "16 offsets are refused (8 above log end, 6 share group; refused.csv" in steps
    dry, execute = commands_of(BACK)
    assert dry == "BOOTSTRAP_SERVER=host:port sh '/in '\"'\"'1'\"'\"'/commands.sh'"
    assert execute == f"{dry} --execute"


def test_where_nothing_is_refused_no_refusal_is_named() -> None:
    whole = replace(BACK, refused=0, unchanged=0, reasons={})
    assert said(ELECTION, restored=whole).endswith(
        "11 offsets of 5 groups can be given back with the command below."
    )
    assert steps_of(whole)[0] == "Gives back 11 offsets of 5 groups as of 2026-11-21T09:18:11.244Z."
    assert steps_of(NOTHING_BACK) == ("Nothing is given back as of 2026-11-21T09:18:11.244Z.",)
    there = replace(NOTHING_BACK, unchanged=1)
    assert said(restored=there).endswith("No offset can be given back: 1 there already.")
    assert steps_of(there)[0].endswith("244Z: 1 is there already.")
    refused = replace(NOTHING_BACK, refused=3, reasons={"share_group": 3})
    assert steps_of(refused)[0].endswith(
        ": 3 offsets are refused (3 share group; refused.csv says of each why)."
    )


def test_a_script_in_a_store_is_copied_and_not_run_there() -> None:
    far = Restored(T1, 1, 1, 0, 0, {}, "s3://b/out/restore/commands.sh")
    assert commands_of(far) == ()
    assert "Copy the folder of s3://b/out/restore/commands.sh" in " ".join(steps_of(far))


@pytest.mark.parametrize("width", [60, 120])
def test_sentences_keep_to_the_width_and_no_name_does_anything_to_a_terminal(width: int) -> None:
    hostile = {**ELECTION, "copy": "b\x1b[31m"}
    form = OutputFormat("text", paper=Paper(width))
    text = summary_text(sentences_of([hostile], COPIES, BACK), BACK, form)
    assert "\x1b" not in text
    lines = [each for each in text.splitlines() if "BOOTSTRAP_SERVER" not in each]
    assert max(map(len, lines)) <= width


def test_as_markdown_a_name_is_no_more_than_a_name() -> None:
    form = OutputFormat("markdown")
    text = summary_text(sentences_of([{**ELECTION, "copy": "<b>"}], COPIES, BACK), BACK, form)
    assert "\\<b\\>" in text
    assert "## What to do now" in text
