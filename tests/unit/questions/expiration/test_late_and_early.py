"""Why a removal came at another time than expected, as far as the two logs show it.

Every case is a partition of its own, led by broker 1: what was committed, when the cleanup removed
it, and when its coordinator began. The retention is an hour, the check interval ten minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from analytics.questions.expiration.retention_settings import (
    BROKER_CONFIG,
    DYNAMIC,
    Retention,
    Setting,
)
from analytics.replay.history.partition_history import STARTS
from analytics.replay.metadata_log import Beginning
from tests.support.expiration_logs import Around, Row, log_of, removals_in, state_of

if TYPE_CHECKING:
    from collections.abc import Mapping

EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
HOUR, INTERVAL = 3_600_000, 600_000


EXPIRED, UNDECIDED = ("expiration", "high"), ("unknown", "low")
DELETED, PERHAPS_DELETED = ("group_deleted", "medium"), ("group_deleted", "low")


@dataclass(frozen=True)
class Case:
    """Minutes since the commit, at which the group was nobody's; the offset is due at 60.

    Attributes:
        removed: When the cleanup removed it.
        verdict: What is to be said.
        reason: How the reason begins; None for none.
        elected: When the leader of the tombstone's epoch was elected; None before the log begins.
        idle_since: Until when another one led before; None where nothing says.
        restarts: When the broker started again within that epoch.
        starts: When it started at other times.
        records: When the coordinator wrote something else, of another group.
        epoch: The tombstone's leader epoch; the commit's is 0.
        is_told: Whether there is a metadata log.
        set_at: When the retention was set in the metadata log; None where a file has it.
        cause: What is told as its cause, and with which confidence.
    """

    removed: int
    verdict: str
    reason: str | None
    elected: int | None = None
    idle_since: int | None = None
    restarts: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()
    records: tuple[int, ...] = ()
    epoch: int = 0
    is_told: bool = True
    set_at: int | None = None
    cause: tuple[str, str] = EXPIRED


RESTARTED = "the coordinator was restarted, and its cleanups began anew: the broker kept its leader"
MOVED = "the coordinator was restarted or moved, and its cleanups began anew: leader epoch since "
SEEN = "the coordinator was restarted or moved, and its cleanups began anew: leader epoch first "
LEFT = "the cleanups before left it too, and the first one after a restart or move took it: "
FAILED = "the log shows no reason: the coordinator was not restarted; a cleanup that failed leaves"
NOTHING = "the log shows no reason: a restart that kept the leader epoch, a cleanup that failed or"

CASES: Mapping[str, Case] = {
    "within one interval": Case(70, "on_time", None),
    "a restart within one interval is no matter": Case(70, "on_time", None, restarts=(62,)),
    "a restart that kept the epoch": Case(75, "late", RESTARTED, restarts=(64,), records=(64,)),
    "and another one after it": Case(
        75, "late", f"{RESTARTED} epoch, and registered again at 2024-01-01T01:04",
        restarts=(64, 80),
    ),
    "a restart long before it was due": Case(75, "late", FAILED, restarts=(20,), records=(21,)),
    "loading goes on until the first record": Case(
        75, "late", RESTARTED, restarts=(60,), records=(64,)
    ),
    "at work already before it was due": Case(
        75, "late", FAILED, restarts=(40,), records=(41, 43, 70)
    ),
    "a restart, and a cleanup long after it": Case(120, "late", FAILED, restarts=(61,)),
    "an election": Case(75, "late", MOVED, elected=64, epoch=2, records=(65,)),
    "an election, after a while without a leader": Case(
        100, "late", MOVED, elected=90, idle_since=68, epoch=2, records=(91,)
    ),
    "an election, and a leader before that cleaned up without it": Case(
        100, "late", LEFT, elected=90, idle_since=89, epoch=2, records=(91,)
    ),
    "an election long before the first record of its epoch": Case(
        120, "late", FAILED, elected=10, epoch=2
    ),
    "a first record long after an election does not stand for it": Case(
        120, "late", FAILED, epoch=2, records=(115,)
    ),
    "no metadata log: an epoch that is first seen": Case(
        75, "late", f"{SEEN}seen at 2024-01-01T01:05", epoch=2, records=(65,), is_told=False
    ),
    "no metadata log, the same epoch": Case(75, "late", NOTHING, is_told=False),
    "started again since, perhaps with other settings": Case(
        75, "late", f"{FAILED} no record, nor does a longer retention before the broker started "
        "again at 2024-01-01T01:40", starts=(100,)
    ),
    "set in the metadata log before": Case(70, "on_time", None, set_at=65),
    "set in the metadata log since": Case(
        70, "cannot_tell", "the retention is assumed", set_at=71, cause=UNDECIDED
    ),
    "before it was due, with the settings that it still has": Case(
        30, "not_applicable", "not due, and nothing of the group was left", cause=DELETED
    ),
    "before it was due, and started again since": Case(
        30, "not_applicable", "not due, and nothing of the group was left; unless the retention "
        "was shorter before the broker started again at 2024-01-01T00:50", restarts=(50,),
        cause=PERHAPS_DELETED,
    ),
    "before it was due, and nothing tells of starts": Case(
        30, "not_applicable", "not due, and nothing of the group was left; unless the retention "
        "was shorter then: no metadata log tells whether the broker started again",
        is_told=False, cause=PERHAPS_DELETED,
    ),
}  # fmt: skip


def at(minute: int) -> datetime:
    return EPOCH + timedelta(minutes=minute)


def records_of(number: int, case: Case) -> list[dict[str, Any]]:
    def record(minute: int, group: str, *, is_tombstone: bool = False) -> dict[str, Any]:
        said = round(at(minute).timestamp() * 1000)
        value = {"offset": 5, "commit_timestamp": said, "expire_timestamp": None, "metadata": ""}
        return {
            "topic": "__consumer_offsets",
            "partition": number,
            "timestamp": at(minute),
            "leader_epoch": case.epoch if minute else 0,
            "producer_id": -1,
            "is_transactional": False,
            "key": {"group": group, "topic": "orders", "partition": 0},
            "value": None if is_tombstone else value,
            "value_version": None if is_tombstone else 3,
            "is_tombstone": is_tombstone,
        }

    told = [record(0, f"g{number}"), record(case.removed, f"g{number}", is_tombstone=True)]
    told += [record(minute, "other") for minute in case.records]
    told.sort(key=lambda row: row["timestamp"])
    return [{**row, "offset": place, "batch_offset": place} for place, row in enumerate(told)]


def starts_of(number: int, case: Case) -> list[tuple[Any, ...]]:
    if not case.is_told:
        return []
    idle_since = case.idle_since and at(case.idle_since)
    begun = [(case.elected and at(case.elected), False, idle_since)]
    begun += [(at(minute), True, None) for minute in case.restarts]
    broker_starts = [at(minute) for minute in sorted({*case.restarts, *case.starts})]
    return [(number, case.epoch, 1, *each, broker_starts) for each in begun]


def set_in_metadata() -> dict[str, Setting]:
    return {
        f"g{number}": Setting(
            HOUR, DYNAMIC, INTERVAL, round(at(case.set_at).timestamp() * 1000), 168 * HOUR
        )
        for number, case in enumerate(CASES.values())
        if case.set_at is not None
    }


@pytest.fixture(scope="module")
def found() -> Mapping[str, Row]:
    """What is said of every case, from one log."""
    commits, starts = [], []
    for number, case in enumerate(CASES.values()):
        commits += records_of(number, case)
        starts += starts_of(number, case)
    rows = removals_in(
        log_of({"offset_commit": commits}, "3.9", "3.2-3.9"),
        Retention(Setting(HOUR, BROKER_CONFIG, INTERVAL), of_groups=set_in_metadata()),
        round(at(1000).timestamp() * 1000),
        Around(
            state_of("topics", [{"topic": "orders", "source": "metadata_log"}]),
            Beginning(has_log=True, is_cut=False, oldest=None, first_at=None),
            pl.DataFrame(starts, STARTS, orient="row"),
        ),
    )
    names = list(CASES)
    return {names[row.coordinator_partition]: row for row in rows}


@pytest.mark.parametrize("name", CASES)
def test_the_reason_is_what_the_logs_show(found: Mapping[str, Row], name: str) -> None:
    case, row = CASES[name], found[name]
    assert (row.cause, row.confidence) == case.cause, row
    assert row.verdict == case.verdict, row
    if case.reason is None:
        assert row.reason is None
    else:
        assert row.reason.startswith(case.reason), row.reason
