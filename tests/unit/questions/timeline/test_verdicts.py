"""All verdicts on an offset: several of one, since when none, and what cannot be told."""

from __future__ import annotations

from typing import Any

from analytics.decode.unjudged_elections import Unjudged
from tests.support.offset_changes import HOME, PLACE, change, in_force, minute, verdicts_of

GROUPS = {"billing": HOME}
WHY = "an unclean election may have lost commits"


def told(*changes: dict[str, Any], **known: Any) -> list[dict[str, Any]]:
    return verdicts_of(changes, **{"committed": in_force(changes), **known})


def words(rows: list[dict[str, Any]]) -> list[str]:
    return [row["verdict"] for row in rows]


def test_an_offset_to_which_nothing_happened_says_since_when() -> None:
    (row,) = told(change(1, 5), change(3, 9, previous=5))
    assert (row["verdict"], row["since"], row["at"]) == ("no_loss_found", minute(1), None)
    assert row["rung"] == "whole_history"


def test_compaction_left_the_last_record_from_which_on_nothing_is_missing() -> None:
    changes = change(2, 5), change(9, 9, previous=5)
    (row,) = told(*changes, uncompacted_from={HOME: 8})
    assert row["since"] == minute(2)
    (row,) = told(change(9, 9), uncompacted_from={HOME: 8})
    assert row["since"] == minute(9)


def test_what_compaction_may_have_taken_is_said_with_the_first_that_happened() -> None:
    back = {"cause": "rewound_by_member"}
    changes = change(2, 9), change(9, 4, previous=9, **back), change(11, 1, previous=4, **back)
    rows = told(*changes, groups=GROUPS, uncompacted_from={HOME: 8})
    compacted = f"history before offset 8 of __consumer_offsets-{HOME} was compacted"
    assert {row["became"]: row["reason"] for row in rows} == {4: compacted, 1: None}
    assert {row["reason"] for row in told(*changes, groups=GROUPS)} == {None}


def test_before_an_election_that_nothing_judges_it_cannot_be_told() -> None:
    untold, since = told(change(1, 5), unjudged={HOME: Unjudged(minute(7), WHY)})
    assert (untold["verdict"], untold["at"], untold["reason"]) == ("cannot_tell", minute(7), WHY)
    assert (since["verdict"], since["since"]) == ("no_loss_found", minute(7))


def test_where_nothing_tells_when_it_was_nothing_is_found_since_any_time() -> None:
    rows = told(change(1, 5), unjudged={HOME: Unjudged(None, WHY)})
    assert words(rows) == ["cannot_tell"]


def test_lost_records_between_two_changes_are_said() -> None:
    gap = change(4, 9, complete=False, missing="records 2 to 3 are lost")
    untold, since = told(change(1, 5), gap)
    assert (untold["verdict"], untold["reason"]) == ("cannot_tell", "records 2 to 3 are lost")
    assert since["at"] == minute(4)


def test_an_offset_that_a_lost_record_may_have_replaced_cannot_be_told() -> None:
    doubtful = {"complete": False, "missing": "records 5 to 9 are lost"}
    committed = [row | doubtful for row in in_force([change(1, 5)])]
    (row,) = told(change(1, 5), committed=committed)
    assert (row["verdict"], row["reason"]) == ("cannot_tell", "records 5 to 9 are lost")
    assert row["was"] is None


def test_what_several_reasons_keep_from_being_told_is_one_verdict_with_all_of_them() -> None:
    lost = "records 5 to 9 are lost"
    election = {"unjudged": {HOME: Unjudged(None, WHY)}}
    rows = told(groups=GROUPS, gaps={"billing": lost}, **election)
    doubtful = [row | {"complete": False, "missing": lost} for row in in_force([change(1, 5)])]
    rows += told(change(1, 5), committed=doubtful, **election)

    assert [(row["verdict"], row["topic"] is None) for row in rows] == [
        ("cannot_tell", True),
        ("cannot_tell", False),
    ]
    assert {frozenset(row["reason"].split("; ")) for row in rows} == {frozenset({WHY, lost})}


def test_what_happened_is_told_beside_what_cannot_be() -> None:
    rows = told(
        change(1, 5),
        change(3, 2, previous=5, cause="rewound_by_member"),
        unjudged={HOME: Unjudged(minute(2), WHY)},
    )
    assert words(rows) == ["rewound_by_member", "cannot_tell"]


def test_an_offset_below_the_log_start_skips_what_was_deleted() -> None:
    (row,) = told(change(1, 99), log_starts={("orders", 0): 100})
    assert (row["verdict"], row["was"], row["cost"]) == ("below_log_start", 99, -1)
    (row,) = told(change(1, 100), log_starts={("orders", 0): 100})
    assert row["verdict"] == "no_loss_found"


def test_what_a_transaction_holds_is_told_beside_what_is_in_force() -> None:
    pending = change(4, 21, producer_id=7)
    rows = told(change(1, 12), pending=[pending])
    assert words(rows) == [
        "pending",
        "no_loss_found",
    ]
    assert rows[0]["reason"] == "21 is committed when the transaction of producer 7 is"
    assert words(told(pending=[pending])) == ["pending"]


def test_a_transaction_whose_marker_may_be_lost_is_not_said_to_be_pending() -> None:
    lost = change(4, 21, producer_id=7, complete=False, missing="record 5 is lost")
    (row,) = told(pending=[lost])
    assert (row["verdict"], row["reason"]) == (
        "cannot_tell",
        "whether the transaction of producer 7 has committed 21: record 5 is lost",
    )


def test_a_partition_of_a_member_without_any_commit_was_never_committed() -> None:
    assert words(told(given=[PLACE], groups=GROUPS)) == ["never_committed"]


def test_never_is_not_said_where_a_commit_may_be_gone() -> None:
    (row,) = told(given=[PLACE], groups=GROUPS, uncompacted_from={HOME: 40})
    assert row["verdict"] == "cannot_tell"
    assert "compacted" in row["reason"]
    rows = told(given=[PLACE], groups=GROUPS, unjudged={HOME: Unjudged(minute(7), WHY)})
    assert {(row["verdict"], row["reason"]) for row in rows} == {("cannot_tell", WHY)}
    assert [row["topic"] for row in rows] == [None, "orders"]


def test_what_is_lost_of_a_group_may_have_been_of_any_partition() -> None:
    (row,) = told(groups=GROUPS, gaps={"billing": "records 5 to 9 are lost"})
    assert (row["verdict"], row["topic"], row["reason"]) == (
        *("cannot_tell", None, "records 5 to 9 are lost"),
    )


def test_a_group_whose_offsets_are_gone_did_commit() -> None:
    gone = change(1, 5), change(2, None, previous=5, cause="expiration")
    assert words(told(*gone, given=[PLACE], groups=GROUPS)) == ["expired"]


def test_the_worst_comes_first() -> None:
    rows = told(
        change(1, 5),
        change(2, None, previous=5, cause="expiration"),
        change(3, 9),
        change(4, 8, previous=9, cause="rewound_by_member"),
        change(5, 3, previous=8, cause="rewound_by_member"),
    )
    assert [(row["verdict"], row["cost"]) for row in rows] == [
        ("expired", None),
        ("rewound_by_member", 5),
        ("rewound_by_member", 1),
    ]


def test_what_is_later_than_the_time_asked_about_did_not_happen_yet() -> None:
    rows = told(change(1, 5), until=minute(6), unjudged={HOME: Unjudged(minute(7), WHY)})
    assert "cannot_tell" not in words(rows)
