"""What an incident came from: each loss is counted once, of the copy that alone had the record."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from analytics.contracts import arrow_schema, table_of
from analytics.questions.forensics.causes import (
    Election,
    causes_of,
    costs_of_offsets,
    group_costs,
    untold_reasons,
)
from analytics.questions.forensics.removals import removals_without_offsets
from analytics.tables.parted_table import AS_THEY_ARE, PartedTable

T = datetime(2026, 11, 21, 9, 20, tzinfo=UTC)
LATER = T + timedelta(seconds=2)
LOG = "__consumer_offsets"
ELECTION = Election((LOG, 9), "broker-1", 245, 200, 3, T, T, True, True, "broker-3", ("gone",))
SECOND = replace(ELECTION, place=(LOG, 1), diverges_at=27, lost_records=14, broker=2, at=LATER)
RESTORED = pl.DataFrame(
    {"group_id": ["billing"], "restore": [2], "refused": [1]},
    {"group_id": pl.String(), "restore": pl.Int64(), "refused": pl.Int64()},
)


def verdict(group: str, partition: int | None, word: str = "lost_by_election", **more: Any) -> Any:
    place = {"topic": None if partition is None else "orders", "partition": partition}
    found = {"rung": "lost_line", "at": T, "was": 50, "committed_at": T, "record": f"{LOG}-9@300"}
    nothing = dict.fromkeys(arrow_schema("offset_verdicts").names)
    return {**nothing, **place, **found, "group_id": group, "verdict": word, **more}


def verdicts(*rows: Any, parts: int = 1) -> PartedTable:
    made = table_of("offset_verdicts", rows)
    size = max(1, -(-made.num_rows // parts))
    pieces = [made.slice(n, size) for n in range(0, max(made.num_rows, 1), size)]
    return PartedTable(made.schema, pieces, AS_THEY_ARE)


def group_events(*rows: tuple[str, str, str | None]) -> PartedTable:
    nothing = {**dict.fromkeys(arrow_schema("group_events").names), "log": LOG, "complete": True}
    names = ("group_id", "event", "subject")
    made = [
        {**nothing, **dict(zip(names, each, strict=True)), "coordinator_partition": 0}
        for each in rows
    ]
    table = table_of("group_events", made)
    return PartedTable(table.schema, [table], AS_THEY_ARE)


def causes(
    rows: PartedTable, *elections: Election, events: PartedTable | None = None
) -> list[dict[str, Any]]:
    costs = costs_of_offsets(rows, elections)
    last = {"broker-1": T - timedelta(minutes=2)}
    found: list[dict[str, Any]] = causes_of(
        costs,
        elections,
        last,
        untold_reasons(rows),
        removals_without_offsets(group_events() if events is None else events, costs),
    ).to_pylist()
    return found


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_what_one_copy_lost_in_several_elections_is_one_cause(parts: int) -> None:
    rows = verdicts(
        verdict("billing", 0, cost=40),
        verdict("billing", 1, confidence="low"),
        verdict("audit", 0, cost=0, record=f"{LOG}-1@30", at=LATER),
        verdict("old", 0, was=None, committed_at=None, became=50),
        parts=parts,
    )
    [cause] = causes(rows, ELECTION, SECOND)
    assert cause["copy"] == "broker-1"
    assert (cause["lost_records"], cause["partitions"]) == (214, 2)
    assert cause["elected_brokers"] == [2, 3]
    assert (cause["elected_from"], cause["elected_to"]) == (T, LATER)
    assert (cause["groups"], cause["commit_groups"], cause["lost_commits"]) == (3, 2, 3)
    assert (cause["records_again"], cause["is_at_least"]) == (40, True)
    assert cause["unsure_commits"] == 1


def test_what_took_most_commits_comes_first_though_nothing_tells_what_is_read_again() -> None:
    rows = verdicts(
        verdict("deleted", 0, "group_deleted", cost=76),
        *(verdict("idle", partition, "expired") for partition in range(3)),
        verdict("back", 0, "rewound_by_member", cost=500, became=10),
        verdict("unclear", 0, "cannot_tell", was=None, reason="records are missing"),
    )
    assert [each["verdict"] for each in causes(rows)] == [
        *("expired", "group_deleted", "rewound_by_member"),
        "cannot_tell",
    ]


def test_offsets_that_nobody_knows_who_removed_come_before_those_that_only_moved() -> None:
    removed = {"rung": "deletion", "committed_at": None}
    rows = verdicts(
        verdict("back", 0, "rewound_by_member", cost=500, became=10),
        verdict("gone", 0, "cannot_tell", **removed, reason="no record tells"),
        verdict("gone", 0, "cannot_tell", **removed, was=None, reason="then 7 was committed"),
        verdict("gone", 1, "cannot_tell", **removed, reason="no record tells"),
        verdict("unclear", 0, "cannot_tell", was=None, reason="records are missing"),
    )
    untold, moved = causes(rows)
    assert (untold["verdict"], moved["verdict"]) == ("cannot_tell", "rewound_by_member")
    assert (untold["removed_offsets"], untold["removed_groups"]) == (2, 1)
    assert (untold["groups"], untold["offsets"], untold["lost_commits"]) == (2, 3, 0)
    # What tells nothing of a removal is no other reason.
    assert (untold["reason"], untold["other_reasons"]) == ("records are missing", 0)


def test_a_removal_whose_time_nobody_knows_may_be_of_another_time() -> None:
    removed = {"rung": "deletion", "committed_at": None, "was": None, "reason": "no time is there"}
    rows = verdicts(
        verdict("gone", 0, "cannot_tell", **removed),
        verdict("once", 0, "cannot_tell", **removed, at=None),
    )
    (untold,) = causes(rows)
    assert (untold["removed_offsets"], untold["removed_groups"]) == (1, 1)
    assert (untold["groups"], untold["offsets"]) == (2, 2)
    assert untold["reason"] == "no time is there"


def test_removals_that_no_offset_tells_of_are_counted_once_and_by_what_they_took() -> None:
    events = group_events(
        ("share", "share_deleted", "jobs-0"),
        ("share", "share_deleted", "jobs-1"),
        ("share", "share_deleted", "jobs-1"),
        ("share", "deleted", None),
        ("idle", "deleted", None),
        ("idle", "created", None),
        ("expired", "deleted", None),
        ("gone", "deleted", None),
        ("back", "deleted", None),
        ("other", "emptied", None),
    )
    rows = verdicts(
        verdict("expired", 0, "expired"),
        verdict("gone", 0, "cannot_tell", rung="deletion"),
        verdict("back", 0, "rewound_by_member", cost=500, became=10),
    )
    by_verdict = {each["verdict"]: each for each in causes(rows, events=events)}
    untold = by_verdict["cannot_tell"]
    assert (untold["deleted_states"], untold["state_groups"]) == (2, 1)
    # A group whose offsets went is told of with them.
    assert untold["groups_without_offsets"] == 2
    assert (untold["groups"], untold["removed_offsets"]) == (1, 1)
    assert by_verdict["expired"]["groups_without_offsets"] == 0


def test_what_was_removed_is_a_cause_though_no_offset_is() -> None:
    rows = verdicts(verdict("back", 0, "rewound_by_member", cost=500, became=10))
    moved, alone = causes(rows, events=group_events(("idle", "deleted", None)))
    assert (moved["verdict"], alone["verdict"]) == ("rewound_by_member", "cannot_tell")
    assert (alone["groups"], alone["groups_without_offsets"], alone["reason"]) == (0, 1, None)
    states, _ = causes(rows, events=group_events(("share", "share_deleted", "jobs-0")))
    assert (states["deleted_states"], states["state_groups"]) == (1, 1)


def test_a_loss_that_two_copies_have_is_counted_of_one() -> None:
    shorter = replace(ELECTION, copy="broker-4", lost_records=60)
    rows = verdicts(verdict("billing", 0, cost=40), verdict("billing", None, record=None))
    first, second = causes(rows, shorter, ELECTION)
    assert (first["copy"], first["lost_commits"], first["records_again"]) == ("broker-1", 1, 40)
    assert (second["copy"], second["groups"], second["lost_records"]) == ("broker-4", 0, 60)


def test_an_offset_that_was_lost_and_rewound_is_one_offset_of_its_group() -> None:
    rows = verdicts(
        verdict("billing", 0, cost=0), verdict("billing", 0, "rewound_by_member", cost=40)
    )
    costs = costs_of_offsets(rows, [ELECTION])
    [row] = group_costs(["billing"], costs, [ELECTION], RESTORED).to_pylist()
    assert (row["offsets"], row["records_again"], row["lost_commits"]) == (1, 40, 1)
    assert (row["restore"], row["refused"]) == (2, 1)
    assert row["verdicts"] == "lost_by_election, rewound_by_member"


def test_groups_come_by_their_cost_and_those_that_only_a_lost_line_has_say_so() -> None:
    rows = verdicts(verdict("cheap", 0, cost=1), verdict("cheap", 1, cost=1), verdict("gone", 0))
    costs = costs_of_offsets(
        verdicts(*rows.whole().to_pylist(), verdict("dear", 0, cost=9)), [ELECTION]
    )
    found = group_costs(["cheap", "dear", "gone", "quiet"], costs, [ELECTION], RESTORED)
    assert found["group_id"].to_pylist() == ["dear", "cheap", "gone", "quiet"]
    assert found["only_on"].to_pylist() == [None, None, "broker-1", None]


def test_an_election_whose_other_line_nobody_has_cannot_be_judged() -> None:
    unseen = replace(ELECTION, copy=None, lost_records=None, groups_only_there=(), why="not there")
    untold = verdict("billing", None, "cannot_tell", was=None, cost=None, reason="not there")
    [cause] = causes(verdicts(untold), unseen)
    assert (cause["verdict"], cause["copy"], cause["lost_records"]) == ("cannot_tell", None, None)
    assert (cause["partitions"], cause["unclean"], cause["reason"]) == (1, True, "not there")
    [alone] = causes(verdicts(), unseen)
    assert (alone["groups"], alone["reason"]) == (0, "not there")


@pytest.mark.parametrize(
    ("at", "not_before", "may"),
    [
        (T, T, True),
        (LATER, LATER, False),
        (LATER, T, True),
        (T - timedelta(hours=1), T - timedelta(hours=1), False),
        (None, None, True),
        (None, LATER, False),
    ],
)
def test_an_election_of_which_only_bounds_are_known_may_be_of_the_time(
    at: datetime | None, not_before: datetime | None, may: bool
) -> None:
    election = replace(ELECTION, at=at, not_before=not_before)
    assert election.may_be_in(T - timedelta(seconds=1), T + timedelta(seconds=1)) is may
