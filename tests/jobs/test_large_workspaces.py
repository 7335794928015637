"""A dump that is replayed bucket by bucket, and audited part by part, is told of as at once."""

from __future__ import annotations

import json
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import polars as pl
import pyarrow.parquet as pq
import pytest

import analytics.questions
from analytics.engine.replay_tasks import run_task
from analytics.engine.replay_work import ReplayWork, replay_workspace
from analytics.tables.buckets import GroupBucket
from analytics.workspace import EVALUATIONS, HISTORY, STATE

if TYPE_CHECKING:
    from analytics.workspace import Part, Staging, Workspace
    from schemas.manifest import Manifest
    from tests.conftest import Groupscope

BEFORE_THE_ELECTION = "2026-11-21T09:18:30Z"
LINES, SUMMARY = "findings.jsonl", "summary.json"
_SOURCE = re.compile(r"[^\s\"']*/(?:examples/kafka-4\.3\.1-failover|failover/workspace)")
FOUND = {0, 1, 3}
"""Done, findings, cannot tell."""


def _here(place: str, count: int) -> list[Any]:
    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(partial(run_task, place), range(count)))


def _in_tasks(
    source: Workspace, staging: Staging, work: ReplayWork, manifest: Manifest, *_: object
) -> list[Part]:
    """Replay as on Spark, with tasks that this process runs."""
    spark: Any = object()
    return replay_workspace(source, staging, work, manifest, spark)


def _looking_at_parts() -> Iterator[tuple[object, str]]:
    """Yield what says how many rows of groups are looked at together."""
    packages = pkgutil.walk_packages(analytics.questions.__path__, "analytics.questions.")
    for each in packages:
        module = import_module(each.name)
        for name in ("AT_ONCE", "GROUPS_AT_ONCE"):
            if hasattr(module, name):
                yield module, name


@contextmanager
def as_of_a_large_dump(records: int, rows: int | None) -> Iterator[None]:
    """Take every dump for a large one.

    Args:
        records: So many a bucket has.
        rows: So many are looked at together; None is as many as ever.
    """
    with ExitStack() as stack:
        for name in ("replaying", "replayed"):
            place = f"jobs.workspaces.{name}.is_small_workspace"
            stack.enter_context(mock.patch(place, return_value=False))
        no_java = mock.patch("jobs.workspaces.replayed.java_problem", return_value="there is none")
        stack.enter_context(no_java)
        stack.enter_context(mock.patch("jobs.workspaces.replaying._on_spark", _in_tasks))
        work = "analytics.engine.replay_work"
        stack.enter_context(mock.patch(f"{work}.on_spark", return_value=_here))
        stack.enter_context(mock.patch(f"{work}.check_executors"))
        stack.enter_context(mock.patch(f"{work}.MOST_ROWS", records))
        for module, name in _looking_at_parts() if rows is not None else ():
            stack.enter_context(mock.patch.object(module, name, rows))
        yield


Audit = Callable[..., Path]


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "key"
    path.write_bytes(bytes(range(32)))
    return path


@pytest.fixture(scope="module")
def audit(groupscope: Groupscope, failover_workspace: Path, failover_dump: Path) -> Audit:
    def run(out: Path, *options: str) -> Path:
        # At its end the workspace would be copied as it is.
        asked = failover_workspace if "--as-of" in options else failover_dump
        run = groupscope("audit", asked, "--out", out, "--quiet", *options)
        assert run.returncode in FOUND, run.stderr
        return out

    return run


@pytest.fixture(scope="module")
def at_once(
    audit: Audit, failover_audited: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """Audits of the same that look at everything at once."""
    made: dict[tuple[str, ...], Path] = {(): failover_audited}

    def of(*options: str) -> Path:
        if options not in made:
            made[options] = audit(tmp_path_factory.mktemp("at_once") / "out", *options)
        return made[options]

    return of


def tables_in(folder: Path) -> Iterator[Path]:
    for kind in (STATE, HISTORY, EVALUATIONS):
        yield from sorted((folder / kind).glob("*"))


def rows_of(table: Path) -> list[str]:
    rows = (pq.read_table(each, partitioning=None) for each in sorted(table.iterdir()))
    return sorted(of_any_source(str(row)) for each in rows for row in each.to_pylist())


def of_any_source(text: str) -> str:
    """Return a text in which the dump and its workspace are named alike, as in commands."""
    return _SOURCE.sub("SOURCE", text)


def labels_in(folder: Path) -> dict[str, set[int]]:
    """Return by kind among how many buckets files say that groups are divided; all are true."""
    said: dict[str, set[int]] = {}
    for table in tables_in(folder):
        for path in table.iterdir():
            groups = GroupBucket.of_file(pq.read_metadata(path).metadata)
            if groups is not None:
                rows = pl.DataFrame(pl.from_arrow(pq.read_table(path, partitioning=None)))
                assert rows.select(groups.has(pl.col("group_id")).all()).item(), path
                said.setdefault(table.parent.name, set()).add(groups.parts)
    return said


def assert_same(large: Path, whole: Path) -> None:
    there = [f"{each.parent.name}/{each.name}" for each in tables_in(whole)]
    assert [f"{each.parent.name}/{each.name}" for each in tables_in(large)] == there
    for name in there:
        assert rows_of(large / name) == rows_of(whole / name), name
    assert of_any_source((large / LINES).read_text("utf-8")) == of_any_source(
        (whole / LINES).read_text("utf-8")
    )
    assert summary_of(large) == summary_of(whole)


def summary_of(folder: Path) -> Mapping[str, Any]:
    said: dict[str, Any] = json.loads(of_any_source((folder / SUMMARY).read_text("utf-8")))
    # These name the folder, or one that is gone.
    unasked = [*said["could_not_be_asked"]]
    return {**said, "command": None, "input": None, "could_not_be_asked": unasked}


AT_AN_INSTANT = ("--as-of", BEFORE_THE_ELECTION)


@pytest.mark.long
def test_one_folder_is_audited_again_and_again_whatever_groups_are_divided_by(
    audit: Audit, at_once: Callable[..., Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with as_of_a_large_dump(150, 60):
        audit(out, *AT_AN_INSTANT)
    first = labels_in(out)
    assert min(len(first[each]) for each in (STATE, HISTORY, EVALUATIONS)) > 0
    assert_same(out, at_once(*AT_AN_INSTANT))
    with as_of_a_large_dump(400, 250):
        audit(out, *AT_AN_INSTANT)
    assert_same(out, at_once(*AT_AN_INSTANT))


def test_few_rows_of_many_buckets_are_looked_at_together(
    audit: Audit, at_once: Callable[..., Path], tmp_path: Path
) -> None:
    """What is made of all groups at once says nothing of the groups of a file it was read of."""
    with as_of_a_large_dump(400, None):
        audit(tmp_path / "out")
    assert {STATE, HISTORY} <= labels_in(tmp_path / "out").keys()
    assert_same(tmp_path / "out", at_once())


@pytest.fixture(scope="module")
def large_and_small(
    groupscope: Groupscope, failover_workspace: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """The bundled dump at an instant, replayed bucket by bucket and at once."""
    folder = tmp_path_factory.mktemp("replayed")
    replay = ["replay", failover_workspace, *AT_AN_INSTANT, "--out"]
    assert groupscope(*replay, folder / "small").returncode in FOUND
    with as_of_a_large_dump(400, 250):
        assert groupscope(*replay, folder / "large").returncode in FOUND
    assert labels_in(folder / "large")
    assert not labels_in(folder / "small")
    return folder / "large", folder / "small"


@pytest.mark.parametrize(
    "options",
    [
        ("--group", "*", "--exclude-group", "/.*a.*/"),
        pytest.param(("--group", "*a*"), marks=pytest.mark.long),
    ],
    ids=["others", "some"],
)
def test_some_groups_of_a_large_workspace_are_those_of_a_small_one(
    groupscope: Groupscope, large_and_small: tuple[Path, Path], options: tuple[str, ...]
) -> None:
    large, small = large_and_small
    for question in ("lag", "expiration", "timeline", "rebalances"):
        asked = [question, "--format", "json", *options]
        with as_of_a_large_dump(400, 250):
            found = json.loads(groupscope(*asked, large).stdout)
        at_once = json.loads(groupscope(*asked, small).stdout)
        assert found["rows"] == at_once["rows"], question


@pytest.mark.long
def test_names_that_are_taken_out_are_in_no_bucket_of_what_they_were(
    audit: Audit, at_once: Callable[..., Path], key_file: Path, tmp_path: Path
) -> None:
    options = (*AT_AN_INSTANT, "--redact", str(key_file))
    with as_of_a_large_dump(150, 60):
        audit(tmp_path / "out", *options)
    labels_in(tmp_path / "out")
    assert_same(tmp_path / "out", at_once(*options))
