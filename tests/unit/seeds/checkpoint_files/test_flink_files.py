"""Exports of successive checkpoints of Flink, a file each: the latest of them counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analytics.seeds.region.merge import merged
from analytics.seeds.region.recognized import read_checkpoints
from analytics.seeds.region.table import evaluate_regions
from schemas.evaluation_rules import region_rules

CASE = Path(__file__).parents[3] / "cases" / "reports" / "flink-file-each" / "export"


def export(number: int, *starting: int, group: str | None = "enrich") -> dict[str, Any]:
    splits = [
        {"topic": "orders", "partition": place, "startingOffset": offset}
        for place, offset in enumerate(starting)
    ]
    subtask = {"uid": "source", "subtask": 0, "parallelism": 1, "splits": splits}
    named = {} if group is None else {"group_id": group}
    return {"checkpoint_id": number, "completed": True, "operators": [subtask], **named}


def written(path: Path, document: object) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return str(path)


def latest(paths: list[str], group: str | None = None) -> list[tuple[int | None, list[int | None]]]:
    """Return the latest checkpoint of each job, and its offsets."""
    found = merged(read_checkpoints(paths, group), 15_000)
    answer = evaluate_regions(found, None, region_rules())
    return [
        (each.latest.key.sequence_id, [one.offset for one in each.latest.offsets.values()])
        for each in answer.regions
        if each.latest
    ]


def test_the_case() -> None:
    assert latest([str(CASE)]) == [(42, [120, 80])]
    assert latest([str(CASE / "chk-42.json"), str(CASE / "chk-41.json")]) == [(42, [120, 80])]


@pytest.mark.parametrize("names", [("b.json", "a.json"), ("chk-1/x.json", "chk-2/x.json")])
def test_neither_names_nor_order_decide(names: tuple[str, str], tmp_path: Path) -> None:
    paths = [
        written(tmp_path / name, export(number, number))
        for name, number in zip(names, (9, 10), strict=True)
    ]
    assert latest(paths) == latest(paths[::-1]) == [(10, [10])]


def test_two_jobs_stay_two(tmp_path: Path) -> None:
    written(tmp_path / "a.json", export(9, 5))
    written(tmp_path / "b.json", export(3, 7, group="other"))
    assert latest([str(tmp_path)]) == [(9, [5]), (3, [7])]


def test_without_a_group_the_files_of_a_folder_are_of_one_job(tmp_path: Path) -> None:
    for number in (1, 2):
        written(tmp_path / f"{number}.json", export(number, number * 10, group=None))
    assert latest([str(tmp_path)]) == [(2, [20])]


def test_one_id_with_different_offsets_is_not_decided(tmp_path: Path) -> None:
    for name, offset in (("a.json", 5), ("b.json", 6)):
        written(tmp_path / name, export(9, offset))
    (found,) = merged(read_checkpoints([str(tmp_path)], None), 15_000)
    assert found.conflicts == [("orders", 0)]


@pytest.mark.parametrize(
    ("marker", "words"),
    [(-1, "the latest offset"), (-2, "the earliest offset"), (-3, "the committed offset")],
)
def test_a_marker_is_named_and_is_no_offset(marker: int, words: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", export(9, marker))
    (found,) = merged(read_checkpoints([path], None), 15_000)
    (offset,) = found.offsets.values()
    assert offset.offset is None
    assert offset.missing == (
        f"the checkpoint has the marker {marker} ({words}) instead of an offset of it"
    )
