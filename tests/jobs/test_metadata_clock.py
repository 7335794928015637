"""A controller whose clock was set back: topics, settings and leaders at an instant around that."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from analytics.decode.unjudged_elections import Evidence
from analytics.questions.timeline.lost_commits import coordinator_evidence
from analytics.replayed.replayed_workspace import ReplayedWorkspace
from analytics.tables.stored_tables import StoredTables
from analytics.workspace import Workspace
from schemas import table
from tests.brokers.batches import batches_of
from tests.support.decoded_here import decoded_here
from tests.verdicts.altered_logs import moving_times
from tests.verdicts.asking import ask, call
from tests.verdicts.evidence import METADATA, copied

FAILOVER = Path(__file__).parents[2] / "examples" / "kafka-4.3.1-failover"
SHARE = Path(__file__).parents[1] / "data" / "dumps" / "kafka-4.0.2-share"
INSTANT = "2026-11-21T09:15:20Z"
BEFORE_IT = "2026-11-21T09:01:50Z"
TABLES = ("topics", "configs", "partition_leaders")
BACK_MS = 40_000
SET_BACK = range(51, 72)
"""Batches of the metadata log, from settings at offset 120 to the topic that was made last."""


def replayed(dump: Path, folder: Path, instant: str = INSTANT) -> Path:
    decoded_here([str(dump)], folder / "decoded")
    command = ["replay", str(folder / "decoded"), "--as-of", instant, "--out", str(folder / "out")]
    assert call(*command).code == 0
    return folder / "out"


def rows_of(workspace: Path, name: str, folder: str = "state") -> pl.DataFrame:
    return pl.read_parquet(str(workspace / folder / name / "*.parquet"))


def evidence_of(workspace: Path) -> dict[int, Evidence]:
    space, source = (Workspace(str(each)) for each in (workspace, workspace.parent / "decoded"))
    return coordinator_evidence(ReplayedWorkspace(StoredTables(space), source, space.manifest()))


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return replayed(FAILOVER, tmp_path_factory.mktemp("right"))


@pytest.fixture(scope="module")
def set_back(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("set-back")
    (folder / "dump").mkdir()
    dump = copied(FAILOVER, folder / "dump")
    moving_times(METADATA, -BACK_MS, lambda place, _: place in SET_BACK)(dump)
    return replayed(dump, folder)


def test_what_is_certain_is_as_a_right_clock_has_it(set_back: Path, right: Path) -> None:
    counts: dict[str, tuple[int, int]] = {}
    for name in TABLES:
        key = list(table(name).key)
        rows, expected = rows_of(set_back, name), rows_of(right, name)
        assert expected["complete"].all()
        certain = rows.filter("complete").sort(key, nulls_last=True)
        same = expected.join(certain.select(key), on=key, how="semi", nulls_equal=True)
        assert certain.to_dicts() == same.sort(key, nulls_last=True).to_dicts()
        # What was there is not missing, only not certain.
        assert expected.join(rows, on=key, how="anti", nulls_equal=True).is_empty()
        counts[name] = (certain.height, rows.height - certain.height)
    assert counts == {"topics": (8, 2), "configs": (4, 13), "partition_leaders": (23, 17)}


def test_an_election_that_only_one_cut_of_the_log_has_is_not_certain(
    set_back: Path, right: Path
) -> None:
    found, expected = evidence_of(set_back), evidence_of(right)
    assert not any(each.uncertain for each in expected.values())
    certain = {number for number, each in found.items() if each.uncertain is None}
    assert {number: found[number].elections for number in certain} == {
        number: expected[number].elections for number in certain
    }
    assert certain
    for number in found.keys() - certain:
        assert found[number].unjudged() is not None
        assert "the times of __cluster_metadata-0 go back" in str(found[number].uncertain)
    assert found.keys() - certain


DELETION = 353
"""The record of the metadata log that deletes `exports`, which two groups had offsets of."""


def test_a_topic_deleted_between_the_two_cuts_is_marked_in_history(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    dump = copied(SHARE, tmp_path / "dump")
    whole = batches_of(dump / "broker-1" / f"{METADATA}-0")
    last = max(place for place, each in enumerate(whole) if each.base_offset <= DELETION)
    moving_times(METADATA, -BACK_MS, lambda place, _: place == last)(dump)
    rows = rows_of(replayed(dump, tmp_path, BEFORE_IT), "group_events", "history")

    events = rows.filter(pl.col("log") == METADATA)
    deleted = events.filter(pl.col("event") == "topic_deleted")
    assert set(deleted["group_id"]) == {"manual-bookmarks", "one-off"}
    assert set(deleted["record_offset"]) == {DELETION}
    for each in deleted["missing"]:
        assert "the times of __cluster_metadata-0 go back" in each
    assert events.filter(pl.col("event") != "topic_deleted")["complete"].all()
    assert events.height > deleted.height


@pytest.mark.parametrize("question", ["lag", "describe", "expiration", "list"])
def test_answers_that_rest_on_it_say_so(set_back: Path, question: str) -> None:
    answer = ask(question, set_back)
    assert answer.code == 3
    uncertain = answer.told["uncertain"]
    assert any(each.startswith("topic ") for each in uncertain)
    assert all("the times of __cluster_metadata-0 go back" in each for each in uncertain)
    for each in uncertain:
        assert f"cannot tell: {each}" in answer.said
