"""Who was in a group as clients told it, and how rebalances and sizes are held against that."""

from __future__ import annotations

import base64
import gzip
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.verdicts.held import CANNOT_TELL, RIGHT, WRONG
from tests.verdicts.held_members import FOREVER, hold_balance, hold_rebalances
from tests.verdicts.members import members_of
from tests.verdicts.truth import DATA, read_truth

SEEN: dict[str, Any] = {
    "seen": {"g": {"m1": [[10_000, 10_000], [20_000, 20_000]]}},
    "left": {},
    "epochs": [],
    "end": {"g": [1]},
}
NOBODY: dict[str, Any] = {"seen": {}, "left": {}, "epochs": [], "end": {}}


def at(seconds: float) -> str:
    return f"1970-01-01T00:{int(seconds) // 60:02}:{seconds % 60:06.3f}+00:00"


def row(epoch: int, seconds: float, **also: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"group_id": "g", "epoch": epoch, "at": at(seconds), "joined": []}
    told |= {"left": [], "complete": True, "missing_is_compacted": False, "missing_before": 0}
    told |= {"group_type": "classic"}
    told["member_count"] = len(also.get("joined", ()))
    return {**told, "from_offset": round(seconds), **also}


def held_as(members: dict[str, Any], *rows: dict[str, Any], is_untold: bool = False) -> list[str]:
    held = hold_rebalances(members, rows, FOREVER, is_untold=is_untold)
    return [word for word in (RIGHT, CANNOT_TELL, WRONG) for _ in range(held.count(word))]


def test_who_joined_before_it_was_seen_is_right() -> None:
    assert held_as(SEEN, row(1, 9, joined=["m1"])) == [RIGHT, RIGHT]


def test_who_joined_later_or_left_sooner_than_it_was_seen_is_wrong() -> None:
    assert held_as(SEEN, row(1, 15, joined=["m1"])) == [RIGHT, WRONG]
    gone = row(1, 9, joined=["m1"]), row(2, 15, left=["m1"])
    assert held_as(SEEN, *gone) == [RIGHT, WRONG]
    back = row(3, 18, joined=["m1"])
    assert held_as(SEEN, *gone, back) == [RIGHT, RIGHT]


def test_what_is_admitted_to_have_gaps_is_not_wrong() -> None:
    assert held_as(SEEN, row(5, 15, joined=["m1"], complete=False)) == [RIGHT, CANNOT_TELL]
    assert held_as(SEEN, row(5, 30, missing_is_compacted=True)) == [CANNOT_TELL, CANNOT_TELL]
    assert held_as(SEEN, is_untold=True) == [CANNOT_TELL, CANNOT_TELL]
    assert held_as(SEEN, row(1, 9, member_count=1)) == [CANNOT_TELL, CANNOT_TELL]
    assert held_as(SEEN, row(1, 9, joined=["m2"])) == [WRONG, WRONG]
    assert held_as(SEEN) == [WRONG, WRONG]
    assert held_as({**SEEN, "end": {}}) == [CANNOT_TELL, CANNOT_TELL]


def test_who_closed_may_not_be_told_to_stay() -> None:
    closed: dict[str, Any] = {**SEEN, "left": {"g": {"m1": 21_000}}}
    assert held_as(closed, row(1, 9, joined=["m1"])) == [RIGHT, RIGHT, WRONG]
    gone = row(2, 22, left=["m1"])
    assert held_as(closed, row(1, 9, joined=["m1"]), gone) == [RIGHT, RIGHT, RIGHT]


def test_who_closed_may_be_told_to_stay_where_that_is_not_all() -> None:
    closed: dict[str, Any] = {**SEEN, "left": {"g": {"m1": 21_000}}}
    rows = [row(1, 9, joined=["m1"])]
    for complete, wrong in ((True, 1), (False, 0)):
        churn = [{"group_id": "g", "complete": complete}]
        held = hold_rebalances(closed, rows, FOREVER, is_untold=True, churn=churn)
        assert (held.count(WRONG), held.count(CANNOT_TELL)) == (wrong, 1 - wrong)


def test_an_epoch_somebody_was_in_has_left_a_record() -> None:
    seen: dict[str, Any] = {**NOBODY, "epochs": [["g", 2, 12_000]]}
    assert held_as(seen, row(1, 9), row(2, 11)) == [RIGHT]
    assert held_as(seen, row(1, 9), row(2, 14)) == [WRONG]
    assert held_as(seen, row(1, 9), row(3, 14, missing_before=1)) == [WRONG]
    lost = row(3, 14, missing_before=None, missing_is_compacted=True)
    assert held_as(seen, row(1, 9), lost) == [CANNOT_TELL]


def test_the_first_epoch_of_a_regular_expression_leaves_no_record() -> None:
    seen: dict[str, Any] = {**NOBODY, "epochs": [["g", 1, 12_000]]}
    assert held_as(seen, row(2, 9, group_type="consumer")) == [RIGHT]
    assert held_as(seen, row(2, 9)) == [WRONG]


def balance(**also: Any) -> dict[str, Any]:
    told = {"group_id": "g", "verdict": "even", "member_count": 2}
    return {**told, "min_partitions": 1, "max_partitions": 2, **also}


@pytest.mark.parametrize(
    ("sizes", "rows", "word"),
    [
        ([1, 2], [balance()], RIGHT),
        ([2, 2], [balance()], WRONG),
        ([1, 1, 2], [balance()], WRONG),
        ([2, 2], [balance(verdict="cannot_tell")], CANNOT_TELL),
        ([], [balance()], WRONG),
        ([], [], RIGHT),
        ([1, 2], [], WRONG),
    ],
)
def test_sizes_are_those_that_members_had(
    sizes: list[int], rows: list[dict[str, Any]], word: str
) -> None:
    assert hold_balance({"g": sizes}, rows, is_untold=False).count(word) == 1


def test_clients_tell_who_had_what_where_nothing_moved(tmp_path: Path) -> None:
    events = [
        {"at": 1_000, "event": "opened", "group": "g", "actor": "a"},
        {"at": 2_000, "event": "assigned", "partitions": ["t-0", "t-1", "t-2"], "epoch": 1},
        {"at": 30_000, "event": "revoked", "partitions": ["t-2"], "epoch": 2},
        {"at": 60_000, "event": "commit", "sent_at": 59_000, "epoch": 3, "offsets": {}},
        {"at": 90_000, "event": "closed"},
    ]
    dump = written(tmp_path, [{"group": "g", "actor": "a", "member": "m", **e} for e in events])
    told = members_of(dump, [20_000, 28_000, 50_000, 70_000])
    assert [each["groups"] for each in told["sizes"]] == [{"g": [3]}, {}, {"g": [2]}, {"g": [2]}]
    assert told["seen"] == {"g": {"m": [[2_000, 2_000], [59_000, 60_000]]}}
    assert told["epochs"] == [["g", 1, 2_000], ["g", 3, 60_000]]
    assert told["left"] == {"g": {"m": 90_000}}


def test_coordinators_tell_how_much_members_have_in_the_end(tmp_path: Path) -> None:
    told = members_of(written(tmp_path, []), [])
    assert told["end"] == {"classic": [0, 3], "modern": [2]}


def written(folder: Path, events: list[dict[str, Any]]) -> Path:
    """Write what a dump tells besides its logs."""
    partitions = struct.pack(">iiiii", 3, 0, 1, 2, -1)
    assigned = struct.pack(">hih", 1, 1, 1) + b"t" + partitions
    old = {"memberAssignment": base64.b64encode(assigned).decode()}
    classic = {"protocolType": "consumer", "groupState": "Stable"}
    now = {"topicPartitions": [{"topicName": "t", "partitions": [0, 4]}]}
    new = {"assignment": now, "targetAssignment": now, "memberEpoch": 5}
    moving = {**new, "targetAssignment": {"topicPartitions": []}}
    groups = {
        "classic": {**classic, "members": [old, {"memberAssignment": ""}]},
        "modern": {"groupEpoch": 5, "members": [new]},
        "moving": {"groupEpoch": 5, "members": [moving]},
    }
    rows = [{"group_id": name, "described": {"groups": [each]}} for name, each in groups.items()]
    (folder / "tools").mkdir()
    state = json.dumps({"groups": rows}).encode()
    (folder / "tools" / "state.json.gz").write_bytes(gzip.compress(state))
    (folder / "timeline.jsonl").write_text("\n".join(map(json.dumps, events)))
    return folder


@pytest.mark.parametrize(
    "dump", [path.name.removesuffix(".json.gz") for path in sorted(DATA.iterdir())]
)
def test_of_every_dump_it_is_known_who_had_what_in_the_end(dump: str) -> None:
    truth = read_truth(dump)
    assert len(truth.sizes(None)) > 10
    assert all(list(sizes) == sorted(sizes) for sizes in truth.sizes(None).values())
