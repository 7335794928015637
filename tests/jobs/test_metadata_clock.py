"""A controller whose clock was set back: topics, settings and leaders at an instant around that."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from schemas import table
from tests.support.decoded_here import decoded_here
from tests.verdicts.altered_logs import moving_times
from tests.verdicts.asking import ask, call
from tests.verdicts.evidence import METADATA, copied

FAILOVER = Path(__file__).parents[2] / "examples" / "kafka-4.3.1-failover"
INSTANT = "2026-11-21T09:15:20Z"
TABLES = ("topics", "configs", "partition_leaders")
BACK_MS = 40_000
SET_BACK = range(51, 72)
"""Batches of the metadata log, from settings at offset 120 to the topic that was made last."""


def replayed(dump: Path, folder: Path) -> Path:
    decoded_here([str(dump)], folder / "decoded")
    command = ["replay", str(folder / "decoded"), "--as-of", INSTANT, "--out", str(folder / "out")]
    assert call(*command).code == 0
    return folder / "out"


def rows_of(workspace: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(str(workspace / "state" / name / "*.parquet"))


@pytest.fixture(scope="module")
def set_back(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("set-back")
    (folder / "dump").mkdir()
    dump = copied(FAILOVER, folder / "dump")
    moving_times(METADATA, -BACK_MS, lambda place, _: place in SET_BACK)(dump)
    return replayed(dump, folder)


def test_what_is_certain_is_as_a_right_clock_has_it(set_back: Path, tmp_path: Path) -> None:
    true = replayed(FAILOVER, tmp_path)
    counts: dict[str, tuple[int, int]] = {}
    for name in TABLES:
        key = list(table(name).key)
        rows, expected = rows_of(set_back, name), rows_of(true, name)
        assert expected["complete"].all()
        certain = rows.filter("complete").sort(key, nulls_last=True)
        same = expected.join(certain.select(key), on=key, how="semi", nulls_equal=True)
        assert certain.to_dicts() == same.sort(key, nulls_last=True).to_dicts()
        # What was there is not missing, only not certain.
        assert expected.join(rows, on=key, how="anti", nulls_equal=True).is_empty()
        counts[name] = (certain.height, rows.height - certain.height)
    assert counts == {"topics": (8, 2), "configs": (4, 13), "partition_leaders": (23, 17)}


@pytest.mark.parametrize("question", ["lag", "describe", "expiration", "list"])
def test_answers_that_rest_on_it_say_so(set_back: Path, question: str) -> None:
    answer = ask(question, set_back)
    assert answer.code == 3
    uncertain = answer.told["uncertain"]
    assert any(each.startswith("topic ") for each in uncertain)
    assert all("the times of __cluster_metadata-0 go back" in each for each in uncertain)
    for each in uncertain:
        assert f"cannot tell: {each}" in answer.said
