"""Copies of logs that some releases refuse to load, as real brokers of them did or did not."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.replay.graph import needed_for, resolve
from analytics.replay.history.tables import HISTORY
from analytics.replay.log.losses import WHOLE
from analytics.replay.log.rules import replay_rules
from schemas import CONSUMER_OFFSETS, tables
from tests.support.decoded_frames import frames_of_dump

CASES = Path(__file__).parents[3] / "cases" / "reports"
Faults = list[tuple[int, str, bool | None, str | None]]


@pytest.fixture(scope="module")
def decoded() -> dict[str, object]:
    names = [each.name for each in tables().values() if each.kind in {"decoded", "control"}]
    log_dir = CASES / "handover-compacted" / "dump" / "broker-1"
    return dict(frames_of_dump(log_dir, CONSUMER_OFFSETS, names))


def faults(decoded: dict[str, object], release: str) -> Faults:
    given = {"cut": decoded, "rules": replay_rules(release), "coverage": WHOLE}
    found = resolve(needed_for(HISTORY, ("load_faults",)), given)["load_faults"]
    columns = ("record_offset", "fault", "stops_loading", "patch_releases")
    return found.select(columns).rows()


@pytest.mark.parametrize("release", ["4.0.0", "4.0.1", "4.1.0", "4.1.1"])
def test_a_handover_that_compaction_thinned_stops_releases_before_the_fix(
    decoded: dict[str, object], release: str
) -> None:
    assert faults(decoded, release) == [(8, "partition_still_owned", True, None)]


@pytest.mark.parametrize("release", ["4.0.2", "4.1.2", "4.2.0", "4.2", "4.3.1", "4.4"])
def test_it_is_loaded_since(decoded: dict[str, object], release: str) -> None:
    assert faults(decoded, release) == []


@pytest.mark.parametrize(
    ("release", "patches"), [("4.0", "4.0.0 to 4.0.1"), ("4.1", "4.1.0 to 4.1.1")]
)
def test_without_the_patch_it_cannot_be_told(
    decoded: dict[str, object], release: str, patches: str
) -> None:
    assert faults(decoded, release) == [(8, "partition_still_owned", None, patches)]


def test_the_oldest_releases_cannot_read_its_records_at_all(decoded: dict[str, object]) -> None:
    unread = {"newer_record_type", "newer_value_version"}
    assert {fault for _, fault, _, _ in faults(decoded, "3.2.3")} == unread
    assert faults(decoded, "3.9.1") == []
