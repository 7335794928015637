"""Bugs of Kafka, and what surprises, recognised from the bytes: by what was removed when.

Each case is a group of its own in one log of its era, among neighbours that look alike and are
sound. The retention is a day, and cleanups are ten minutes apart.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from analytics.questions.expiration.retention_settings import ASSUMED, OPTION, Retention, Setting
from tests.support.coordinator_bytes import log_dir_of
from tests.support.decoded_frames import tables_of_dump
from tests.support.expiration_logs import TABLES, Row, log_of, removals_in
from tests.support.reference_expiration import Coordinator

START = 1_700_000_000_000
MINUTE = 60_000
DAY = 1440 * MINUTE
RELEASES = {"pre-2.1": "2.0", "2.1-2.3": "2.1", "current": "4.3"}
OFFSET = ("g", "orders", 0)


class Case(NamedTuple):
    """What happened, and what is to be said of what was removed; None where nothing was.

    ``said`` is cause, confidence, verdict, rule, and how the reason begins (None: there is none).
    The settings are given, or nothing but Kafka's defaults is known (``is_assumed``).
    """

    era: str
    happened: Callable[[Coordinator], None]
    said: tuple[str, str, str, str | None, str | None] | None
    is_assumed: bool = False


def store(coordinator: Coordinator, version: int, expire_ms: int | None) -> None:
    said = {"offset": 5, "commit_timestamp": coordinator.now, "expire_timestamp": expire_ms}
    coordinator.offset_record(OFFSET, {**said, "metadata": ""}, version, -1)


def remove(coordinator: Coordinator, after_ms: int) -> None:
    coordinator.now += after_ms
    coordinator.offset_record(OFFSET, None, None, -1)


def clean_up(coordinator: Coordinator, after_ms: int, *, takes: bool = True) -> None:
    coordinator.now += after_ms
    assert coordinator.sweep() == ({OFFSET} if takes else set())


# --- KAFKA-8069: an expire time of -1 taken as a time ---------------------------------------------


def stored_without_expire_time(coordinator: Coordinator) -> None:
    store(coordinator, 1, -1)
    remove(coordinator, 2 * MINUTE)


def stored_without_and_gone_when_due(coordinator: Coordinator) -> None:
    store(coordinator, 1, -1)
    remove(coordinator, DAY + MINUTE)


def stored_without_by_an_active_group(coordinator: Coordinator) -> None:
    coordinator.join("g", "consumer", "m", ["orders"])
    store(coordinator, 1, -1)
    remove(coordinator, 2 * MINUTE)


def stored_as_2_1_does(coordinator: Coordinator) -> None:
    store(coordinator, 3, None)
    remove(coordinator, 2 * MINUTE)


def stored_with_a_time_of_its_own(coordinator: Coordinator) -> None:
    store(coordinator, 1, coordinator.now + MINUTE)
    remove(coordinator, 2 * MINUTE)


# --- KAFKA-4682: an active group that rarely commits ----------------------------------------------


def rarely_commits(coordinator: Coordinator, kind: str = "consumer") -> None:
    coordinator.join("g", kind, "m", ["orders"])
    coordinator.commit(OFFSET)
    clean_up(coordinator, DAY + MINUTE)


def connect_rarely_commits(coordinator: Coordinator) -> None:
    rarely_commits(coordinator, "connect")


def commits_each_half_day(coordinator: Coordinator) -> None:
    coordinator.join("g", "consumer", "m", ["orders"])
    for _ in range(4):
        coordinator.commit(OFFSET)
        clean_up(coordinator, DAY // 2, takes=False)


def left_after_its_commit(coordinator: Coordinator) -> None:
    coordinator.join("g", "consumer", "m", ["orders"])
    coordinator.commit(OFFSET)
    coordinator.leave("g", "m")
    clean_up(coordinator, DAY + MINUTE)


def never_had_members(coordinator: Coordinator) -> None:
    coordinator.commit(OFFSET)
    clean_up(coordinator, DAY + MINUTE)


def active_and_deleted(coordinator: Coordinator) -> None:
    coordinator.join("g", "consumer", "m", ["orders"])
    coordinator.commit(OFFSET)
    remove(coordinator, 2 * DAY)


# --- what counts from the commit since 4.0 --------------------------------------------------------


def stays_for_days(coordinator: Coordinator, kind: str) -> None:
    coordinator.join("g", kind, "m", ["orders"])
    coordinator.commit(OFFSET)
    coordinator.now += 3 * DAY
    coordinator.leave("g", "m")


def modern_stays_for_days(coordinator: Coordinator) -> None:
    stays_for_days(coordinator, "modern")
    clean_up(coordinator, 5 * MINUTE)


def classic_stays_for_days(coordinator: Coordinator) -> None:
    stays_for_days(coordinator, "consumer")
    clean_up(coordinator, 5 * MINUTE, takes=False)
    clean_up(coordinator, DAY)


def modern_of_another_topic(coordinator: Coordinator) -> None:
    coordinator.join("g", "modern", "m", ["other"])
    coordinator.commit(OFFSET)
    clean_up(coordinator, DAY + MINUTE)


def committed_when_due(coordinator: Coordinator) -> None:
    coordinator.join("g", "consumer", "m", ["orders"])
    coordinator.commit(("g", "orders", 1), keep_ms=9 * DAY)
    coordinator.leave("g", "m")
    coordinator.now += 3 * DAY
    coordinator.commit(OFFSET)
    clean_up(coordinator, 10 * MINUTE)


BY_TIME = "per_offset_expiry"
SOUND = ("expiration", "high", "on_time")
DELETED = ("medium", "not_applicable", None, "not due")
"""Before 2.4 nothing else takes offsets that an active group keeps."""
CASES = [
    Case("2.1-2.3", stored_without_expire_time,
         ("expiration", "medium", "early", "simple_consumer", "KAFKA-8069: ")),
    Case("2.1-2.3", stored_without_and_gone_when_due, (*SOUND, "simple_consumer", None)),
    Case("2.1-2.3", stored_without_by_an_active_group, ("topic_deleted", *DELETED)),
    # Nothing says whether its topic was deleted.
    Case("2.1-2.3", stored_as_2_1_does,
         ("unknown", "low", "cannot_tell", None, "not due, so a deletion: nothing shows whether")),
    Case("2.1-2.3", stored_with_a_time_of_its_own, (*SOUND, "explicit_expire_timestamp", None)),
    Case("2.1-2.3", stored_with_a_time_of_its_own,
         ("expiration", "high", "cannot_tell", "explicit_expire_timestamp", "not early; how often"),
         is_assumed=True),
    Case("pre-2.1", rarely_commits, (*SOUND, BY_TIME, "KAFKA-4682: ")),
    Case("pre-2.1", connect_rarely_commits, (*SOUND, BY_TIME, "KAFKA-4682: ")),
    Case("pre-2.1", commits_each_half_day, None),
    Case("pre-2.1", left_after_its_commit, (*SOUND, BY_TIME, None)),
    Case("pre-2.1", never_had_members, (*SOUND, BY_TIME, None)),
    Case("current", modern_stays_for_days,
         (*SOUND, "kip_848_commit_time", "counted from the commit, as of all groups of this type")),
    Case("current", classic_stays_for_days, (*SOUND, "empty_group", None)),
    Case("current", modern_of_another_topic, (*SOUND, "kip_848_commit_time", None)),
    Case("current", committed_when_due,
         (*SOUND, "empty_group", "due already when it was committed")),
    # Nothing says whether its topic was deleted.
    Case("current", active_and_deleted,
         ("unknown", "low", "cannot_tell", None, "not due, so a deletion: nothing shows whether")),
]  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, Row]]:
    """What is said of the removals of an era, by the number of the case."""
    return {era: judged(era, tmp_path_factory.mktemp("log") / "broker") for era in RELEASES}


def judged(era: str, path: Path) -> dict[int, Row]:
    coordinators = []
    for number, case in enumerate(CASES):
        if case.era == era:
            coordinators.append(Coordinator(number, era, DAY, START))
            case.happened(coordinators[-1])
    decoded = tables_of_dump(log_dir_of(path, coordinators), "__consumer_offsets", TABLES)
    log = log_of(decoded, RELEASES[era], era)
    assumed = Setting(DAY, ASSUMED, 10 * MINUTE)
    settings = Retention(
        Setting(DAY, OPTION, 10 * MINUTE),
        {number: assumed for number, case in enumerate(CASES) if case.is_assumed},
    )
    rows = removals_in(log, settings, START + 9 * DAY)
    assert len({row.coordinator_partition for row in rows}) == len(rows)
    return {row.coordinator_partition: row for row in rows}


@pytest.mark.parametrize(
    ("number", "case"), [*enumerate(CASES)], ids=[each.happened.__name__ for each in CASES]
)
def test_what_is_known_is_named_and_only_that(
    found: dict[str, dict[int, Row]], number: int, case: Case
) -> None:
    row = found[case.era].get(number)
    if case.said is None:
        assert row is None
        return
    assert row is not None
    *said, reason = case.said
    assert [row.cause, row.confidence, row.verdict, row.rule] == said, row
    if reason is None:
        assert row.reason is None
    else:
        assert row.reason.startswith(reason)
