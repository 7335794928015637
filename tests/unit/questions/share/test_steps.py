"""KIP-932, the table of operations: "Create share group", "Delete share group", step by step."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from analytics.contracts import polars_rows
from analytics.decode.tables import decoded_schema
from analytics.questions.share.group_pictures import COLUMNS, KnownLogs, StepRecords
from analytics.questions.share.share_log import COLUMNS as STATE_COLUMNS
from analytics.questions.share.share_log import share_log
from analytics.questions.share.steps import share_steps
from schemas import record_types
from schemas.share_rules import share_rules
from tests.support.decoded_here import decoded_here
from tests.support.reference_share_coordinator import ShareRecord, Snapshot
from tests.unit.questions.share.backlog import BEGIN, decoded

SLACK_MS = 5000
KINDS = {
    "group": "share_group_metadata",
    "member": "share_group_member_metadata",
    "picture": "share_group_state_partition_metadata",
}
MADE = Snapshot(0, 1, 0, -1, -1, 1, 1, ())
LED = Snapshot(1, 1, 3, 5, 0, 1, 1, ())
Step = tuple[str, int, Any]
"""A record: its kind, the minute it was written in, and what it says (None: a tombstone)."""


def topics(*partitions: int) -> list[dict[str, Any]]:
    return [{"topic_id": "t", "topic_name": "orders", "partitions": list(partitions)}]


def picture(
    initializing: tuple[int, ...] = (), initialized: tuple[int, ...] = (), deleting: bool = False
) -> dict[str, Any]:
    return {
        "initializing_topics": topics(*initializing) if initializing else [],
        "initialized_topics": topics(*initialized) if initialized else [],
        "deleting_topics": [{"topic_id": "t", "topic_name": "orders"}] if deleting else [],
    }


CREATE: tuple[Step, ...] = (
    ("group", 0, {"epoch": 1}),
    ("member", 0, {}),
    ("picture", 0, picture((0,))),
    ("state", 1, MADE),
    ("picture", 2, picture((), (0,))),
)
DELETE: tuple[Step, ...] = (
    ("member", 10, None),
    ("picture", 11, picture(deleting=True)),
    ("state", 12, None),
    ("picture", 13, None),
    ("group", 13, None),
)


def told(
    *steps: Step,
    complete_from: int | None = 0,
    is_state_whole: bool = True,
    born_from: int | None = None,
    are_clocks_alike: bool = True,
) -> list[tuple[str, str, bool]]:
    """Return act, verdict and whether there is a reason; records in order, offsets from 0 on."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in KINDS.values()}
    states = []
    minutes = {}
    for place, (kind, minute, value) in enumerate(steps):
        if kind == "state":
            minutes[place] = minute
            states.append(ShareRecord(0, place, ("g", "t", 0), value))
            continue
        key = {"group_id": "g", **({"member_id": "m"} if kind == "member" else {})}
        at = BEGIN + timedelta(minutes=minute)
        rows[KINDS[kind]].append(
            {"partition": 7, "offset": place, "timestamp": at, "is_tombstone": value is None,
             "key": key, "value": value}
        )  # fmt: skip
    types = {each.table: each for each in record_types("__consumer_offsets").values()}
    tables = {}
    for name, found in rows.items():
        schema = decoded_schema(types[name])
        fields = pa.schema([schema.field(each) for each in COLUMNS])
        tables[name] = polars_rows(pa.Table.from_pylist(found, fields))
    snapshots, updates = decoded(states)
    when = [BEGIN + timedelta(minutes=minutes[each]) for each in snapshots["offset"]]
    snapshots = snapshots.with_columns(pl.Series("timestamp", when, snapshots.schema["timestamp"]))
    records = StepRecords(
        tables[KINDS["picture"]],
        tables[KINDS["group"]],
        tables[KINDS["member"]],
        share_log(snapshots, updates),
        KnownLogs(
            {} if complete_from is None else {7: complete_from},
            is_state_whole,
            {} if born_from is None else {7: born_from},
            are_clocks_alike=are_clocks_alike,
        ),
    )
    found = share_steps(records, SLACK_MS).to_dicts()
    assert {row["verdict"] for row in found} <= share_rules().step_verdicts.keys()
    return [(row["act"], row["verdict"], row["reason"] is not None) for row in found]


def moved(steps: tuple[Step, ...], kind: str, minute: int, nth: int = 0) -> tuple[Step, ...]:
    """Return steps with the nth of a kind at another minute, in order of time."""
    places = [place for place, step in enumerate(steps) if step[0] == kind]
    changed = list(steps)
    changed[places[nth]] = (kind, minute, steps[places[nth]][2])
    return tuple(sorted(changed, key=lambda step: step[1]))


def test_a_group_that_is_made_and_removed_step_by_step_is_in_order() -> None:
    assert sorted(told(*CREATE, *DELETE)) == [
        (act, "in_order", False)
        for act in ("create_group", "delete_group", "delete_state", "initialize")
    ]


def test_where_the_clock_went_back_meanwhile_nothing_tells_what_was_first() -> None:
    begun, state, ended = CREATE[2:]
    late = (begun[0], 9, begun[2])
    found = told(*CREATE[:2], late, (state[0], 9, state[2]), ended)
    assert ("initialize", "cannot_tell", True) in found
    assert "out_of_order" not in {verdict for _, verdict, _ in found}


def test_steps_that_are_not_done_are_under_way() -> None:
    assert ("initialize", "under_way", False) in told(*CREATE[:3])
    assert ("initialize", "under_way", False) in told(*CREATE[:4])
    assert ("delete_state", "under_way", False) in told(*CREATE, *DELETE[:2])


@pytest.mark.parametrize(
    ("steps", "act"),
    [
        # c) before d): the snapshot is stored before the group says that the state is there.
        (moved(CREATE, "state", 9), "initialize"),
        # a): the partition record follows those of the group and of a member.
        (CREATE[1:], "create_group"),
        ((CREATE[0], *CREATE[2:]), "create_group"),
        # What was never about to get state has it.
        ((*CREATE, ("picture", 3, picture((), (0, 1)))), "initialize"),
        ((*CREATE[:2], ("picture", 0, picture((), (0,)))), "initialize"),
        # Tombstones of state come before the second partition record.
        ((*CREATE, *moved(DELETE, "state", 20)), "delete_state"),
        # The partition record's tombstone comes before that of the group.
        ((*CREATE, *DELETE[:3], DELETE[4]), "delete_group"),
        ((*CREATE, *DELETE[:3], DELETE[4], DELETE[3]), "delete_group"),
    ],
)
def test_a_step_too_early_or_left_out_is_found(steps: tuple[Step, ...], act: str) -> None:
    wrong = [each for each in told(*steps) if each[1] == "out_of_order"]
    assert wrong == [(act, "out_of_order", True)]
    # Where records may be gone nobody is accused.
    for lacking in ({"complete_from": None}, {"complete_from": 100}):
        assert not [each for each in told(*steps, **lacking) if each[1] == "out_of_order"]


def test_a_group_was_made_where_no_picture_before_that_can_be_gone() -> None:
    made = ("create_group", "in_order", False)
    not_known = ("create_group", "cannot_tell", True)
    again = (*CREATE, ("picture", 3, picture((), (0,))))
    # Of two pictures the cleaner left the second: the group was not made there.
    assert not_known in told(*CREATE[:2], *again[-1:], complete_from=3, born_from=3)
    assert made in told(*again, complete_from=1, born_from=1)
    # Where a loss, and not the cleaner, took records, none that is left is sure to be the first.
    assert not_known in told(*again, complete_from=1)


def test_where_share_state_lacks_records_a_late_one_may_be_another() -> None:
    late = moved(CREATE, "state", 9)
    assert ("initialize", "cannot_tell", True) in told(*late, is_state_whole=False)
    assert ("initialize", "out_of_order", True) in told(*late)
    assert ("initialize", "cannot_tell", True) in told(*late, are_clocks_alike=False)
    pruned = tuple(each for each in CREATE if each[0] != "state")
    assert ("initialize", "cannot_tell", True) in told(*pruned)
    assert ("initialize", "cannot_tell", True) in told(*pruned, ("state", 30, LED))


def test_brokers_clocks_may_be_a_little_apart() -> None:
    assert share_rules().steps.slack_seconds * 1000 == SLACK_MS
    assert ("initialize", "in_order", False) in told(*moved(CREATE, "state", 2))


def test_a_second_life_is_held_against_its_own_records() -> None:
    again = tuple((kind, minute + 30, value) for kind, minute, value in (*CREATE, *DELETE))
    verdicts = told(*CREATE, *DELETE, *again)
    assert len(verdicts) == 8
    assert {each[1] for each in verdicts} == {"in_order"}
    # What was pruned of the first life makes nothing of the second late.
    first = tuple(each for each in (*CREATE, *DELETE) if each[0] != "state")
    found = told(*first, *again)
    assert [each for each in found if each[1] == "out_of_order"] == []
    assert len([each for each in found if each[1] == "cannot_tell"]) == 2


def test_without_decoded_tables_there_are_no_steps() -> None:
    nothing = pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.Null))
    log = share_log(*decoded([]))
    records = StepRecords(nothing, nothing, nothing, log, KnownLogs({}))
    assert share_steps(records, SLACK_MS).is_empty()


@pytest.mark.parametrize(
    ("dump", "acts"),
    [
        ("kafka-4.0.2-share", 1),
        ("kafka-4.2.1-share", 37),
        ("kafka-4.3.1-story", 43),
        ("kafka-4.3.1-failover", 8),
        ("kafka-4.4.0-random", 10),
    ],
)
def test_real_coordinators_keep_the_order(
    dump: str, acts: int, repository: Path, tmp_path: Path
) -> None:
    space = decoded_here([str(repository / "tests/data/dumps" / dump)], tmp_path / "workspace")

    def read(name: str, columns: tuple[str, ...]) -> pl.DataFrame:
        return polars_rows(
            ds.dataset(space.table(f"decoded/{name}")).to_table(columns=list(columns))
        )

    log = share_log(*(read(f"share_{name}", STATE_COLUMNS) for name in ("snapshot", "update")))
    metadata, members, pictures = (read(KINDS[kind], COLUMNS) for kind in KINDS)
    since = {
        each["partition"]: each["complete_from"]
        for each in space.manifest()["partitions"]
        if each["topic"] == "__consumer_offsets" and each["complete_from"] is not None
    }
    records = StepRecords(pictures, metadata, members, log, KnownLogs(since))
    found = share_steps(records, SLACK_MS)
    assert found.height == acts
    assert "out_of_order" not in found["verdict"].to_list()
