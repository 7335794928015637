"""Groups, members and share partitions of two states."""

from __future__ import annotations

from typing import Any

import polars as pl

from analytics.questions.diff.changes import (
    GROUP_COLUMNS,
    INCOMPLETE_GROUPS,
    LOST_LINES,
    MEMBER_COLUMNS,
    SHARE_COLUMNS,
    changed_groups,
    changed_members,
    changed_share_partitions,
)

NOTHING = INCOMPLETE_GROUPS.to_frame()
NO_ELECTION = LOST_LINES.to_frame()
_NUMBERS = {"epoch", "assignment_epoch", "member_count", "partition", "coordinator_partition"}


def incomplete(group: str) -> pl.DataFrame:
    return pl.DataFrame({"group_id": [group], "reason": ["to: lost"]}, INCOMPLETE_GROUPS)


def table(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> pl.DataFrame:
    is_number = {
        name: name in _NUMBERS or name.endswith(("_epoch", "_count", "_offset")) for name in columns
    }
    schema = {name: pl.Int64 if is_number[name] else pl.String for name in columns}
    return pl.DataFrame(rows, schema)


def groups(*rows: tuple[str, str, str, int | None]) -> pl.DataFrame:
    return table(
        GROUP_COLUMNS,
        [
            {"group_id": name, "group_type": kind, "state": state, "epoch": epoch}
            for name, kind, state, epoch in rows
        ],
    )


def test_groups_appear_vanish_and_change_their_type_state_or_epoch() -> None:
    before = groups(
        ("same", "simple", "Empty", None),
        ("typed", "consumer", "Stable", 3),
        ("older", "classic", "Stable", 3),
        ("gone", "share", "Stable", 1),
    )
    after = groups(
        ("same", "simple", "Empty", None),
        ("typed", "classic", "Stable", 3),
        ("older", "classic", "Stable", 2),
        ("new", "classic", "Empty", 1),
    )
    found = changed_groups(before, after, NOTHING, NO_ELECTION).to_dicts()
    assert [(row["group_id"], row["change"]) for row in found] == [
        ("gone", "vanished"),
        ("new", "appeared"),
        ("older", "changed"),
        ("typed", "changed"),
    ]
    for name in ("gone", "same"):
        unsure = changed_groups(before, after, incomplete(name), NO_ELECTION).to_dicts()
        assert [(row["group_id"], row["reason"]) for row in unsure if row["reason"]] == [
            (name, "to: lost")
        ]
        assert {row["change"] for row in unsure if row["reason"]} == {"cannot_tell"}


def test_members_join_leave_and_come_back_under_their_instance_id() -> None:
    def members(*rows: tuple[str, str, str | None]) -> pl.DataFrame:
        named = [dict(zip(MEMBER_COLUMNS, (*row, row[1], "/h"), strict=True)) for row in rows]
        return table(MEMBER_COLUMNS, named)

    before = members(("g", "stays", None), ("g", "leaves", None), ("g", "static-1", "i"))
    after = members(("g", "stays", None), ("g", "joins", None), ("g", "static-2", "i"))
    found = changed_members(before, after, NOTHING).to_dicts()
    assert [(row["member_id"], row["change"], row["previous_member_id"]) for row in found] == [
        ("joins", "joined", None),
        ("leaves", "left", None),
        ("static-2", "restarted", "static-1"),
    ]
    unsure = changed_members(before, after, incomplete("g")).to_dicts()
    assert {row["change"] for row in unsure} == {"cannot_tell"}


def share(number: int, start: int | None, **others: Any) -> dict[str, Any]:
    key = {"group_id": "s", "topic_id": "T", "partition": number, "topic": "t"}
    return {**key, "start_offset": start, "phase": "initialized", **others}


def test_share_partitions_move_go_back_and_change_their_state() -> None:
    before = table(
        SHARE_COLUMNS,
        [
            share(0, 5),
            share(1, 5),
            share(2, 5, archived_count=1),
            share(3, None),
            share(4, 5),
            share(5, 5, coordinator_partition=7),
        ],
    )
    after = table(
        SHARE_COLUMNS,
        [
            share(0, 9),
            share(1, 2),
            share(2, 5, archived_count=2),
            share(3, 0),
            share(4, 6, missing="its snapshot is not in the dump"),
        ],
    )
    found = changed_share_partitions(before, after, NOTHING, NO_ELECTION).to_dicts()
    assert {row["partition"]: row["change"] for row in found} == {
        0: "moved",
        1: "went_back",
        2: "changed",
        3: "changed",
        4: "cannot_tell",
        5: "vanished",
    }
    lost = changed_share_partitions(before, after, NOTHING, NO_ELECTION, lost_after=[7]).to_dicts()
    assert lost[-1]["change"] == "cannot_tell"
    assert "__share_group_state-7" in lost[-1]["reason"]
