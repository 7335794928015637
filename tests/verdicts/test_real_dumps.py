"""What commands say of real dumps, with all their evidence and with some of it taken away.

Nothing that happened is missing, nothing is said that did not happen; where evidence is gone an
answer stays right or becomes "cannot tell". `python -m tests.verdicts FOLDER` prints the table for
all dumps, which are too large for the repository.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.verdicts.asking import call
from tests.verdicts.comparison import compared, hold_earlier, hold_workspace, middle_of
from tests.verdicts.evidence import (
    DAMAGES,
    EVIDENCE,
    LOST_SEGMENTS,
    OF_THE_FAILOVER,
    OFFSETS,
    copied,
    partitions,
)
from tests.verdicts.held import CANNOT_TELL, RIGHT, WRONG, Held, iso
from tests.verdicts.truth import read_truth

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

DUMPS = Path(__file__).parents[1] / "data" / "dumps"
FAILOVER = "kafka-4.3.1-failover"
SMALL = "kafka-3.9.2-classic"
TAKES = {**DAMAGES, **LOST_SEGMENTS}


def _assert_nothing_is_wrong(helds: Mapping[str, Held]) -> None:
    faults = {name: [fault for _, fault in held.faults] for name, held in helds.items()}
    assert not any(faults.values()), "\n".join(
        f"{name}: {fault}" for name, each in faults.items() for fault in each[:5]
    )


def _count(helds: Mapping[str, Held], word: str) -> int:
    return sum(held.count(word) for held in helds.values())


def test_the_whole_failover_is_told_right(failover_workspace: Path) -> None:
    truth = read_truth(FAILOVER)
    helds = hold_workspace(failover_workspace, truth, truth.end_values)
    _assert_nothing_is_wrong(helds)
    assert helds["timeline"].count(RIGHT) > 2 * len(truth.happenings)
    assert _count(helds, CANNOT_TELL) == 0


@pytest.mark.usefixtures("one_session")
def test_commands_of_these_tests_leave_the_session_open(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert call("decode", DUMPS / SMALL, "--out", tmp_path / "decoded").code == 0
    assert spark.range(3).count() == 3


@pytest.mark.usefixtures("one_session")
def test_the_manifest_has_partitions_that_only_the_metadata_log_shows(tmp_path: Path) -> None:
    dump = copied(DUMPS / SMALL, tmp_path / "dump")
    assert call("decode", dump, "--out", tmp_path / "decoded").code == 0
    absent = json.loads((tmp_path / "decoded" / "manifest.json").read_text())["absent_partitions"]
    there = {int(each.name.rpartition("-")[2]) for each in partitions(dump, OFFSETS)}
    # That topic has fifty.
    assert absent[OFFSETS] == sorted(set(range(50)) - there)


@pytest.mark.long
@pytest.mark.usefixtures("one_session")
def test_without_the_dead_brokers_disk_nobody_denies_the_loss(
    failover_dump: Path, tmp_path: Path
) -> None:
    truth = read_truth(FAILOVER)
    helds = compared(failover_dump, truth, "without the dead broker's disk", tmp_path)
    _assert_nothing_is_wrong(helds)
    assert helds["timeline"].count(CANNOT_TELL) >= len(truth.happenings) // 2
    assert helds["describe"].count(RIGHT) > 0


@pytest.mark.long
@pytest.mark.usefixtures("one_session")
def test_a_dump_with_absent_partitions_and_lost_segments_is_told_right_or_not_at_all(
    tmp_path: Path,
) -> None:
    # Only five of its fifty offsets partitions are there.
    helds = compared(DUMPS / SMALL, read_truth(SMALL), "damaged partitions", tmp_path)
    _assert_nothing_is_wrong(helds)
    assert _count(helds, CANNOT_TELL) > 0


def _take_at_random(dump: Path, target: Path, drawn: st.DataObject) -> Path:
    copy = copied(dump, target)
    # Markers are found in sound segments only.
    for name in ("no markers", "no metadata log", "no transaction log"):
        take = EVIDENCE[name]
        if take is not None and drawn.draw(st.booleans(), label=name):
            take(copy)
    for folder in partitions(copy, OFFSETS):
        TAKES[drawn.draw(st.sampled_from(sorted(TAKES)), label=folder.name)](folder)
    return copy


def _hold_random_losses(dump: str, drawn: st.DataObject, folder: Path) -> dict[str, Held]:
    copy = _take_at_random(DUMPS / dump, folder / "dump", drawn)
    truth = read_truth(dump)
    at = middle_of(truth)
    workspace, earlier = folder / "workspace", folder / "earlier"
    for out, options in ((workspace, []), (earlier, ["--as-of", iso(at)])):
        replayed = call("replay", copy, *options, "--out", out)
        assert replayed.code in {0, 3}, replayed.said
    return {
        **hold_workspace(workspace, truth, truth.end_values),
        **hold_earlier(earlier, workspace, truth, at, folder / "restored"),
    }


AT_RANDOM = settings(
    max_examples=1, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.long
@pytest.mark.usefixtures("one_session")
@AT_RANDOM
@given(drawn=st.data())
def test_whatever_is_lost_no_answer_becomes_another(
    drawn: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    _assert_nothing_is_wrong(_hold_random_losses(SMALL, drawn, tmp_path_factory.mktemp("random")))


@pytest.mark.long
@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("dump", [SMALL, "kafka-4.3.1-story", "kafka-2.0.1-v1"])
@settings(AT_RANDOM, max_examples=20)
@given(drawn=st.data())
def test_whatever_is_lost_no_answer_becomes_another_in_many_examples(
    dump: str, drawn: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    _assert_nothing_is_wrong(_hold_random_losses(dump, drawn, tmp_path_factory.mktemp("random")))


@pytest.mark.long
@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("evidence", sorted(OF_THE_FAILOVER))
def test_the_failover_is_told_right_or_not_at_all(
    evidence: str, failover_dump: Path, tmp_path: Path
) -> None:
    helds = compared(failover_dump, read_truth(FAILOVER), evidence, tmp_path)
    _assert_nothing_is_wrong(helds)
    assert _count(helds, WRONG) == 0
