"""An `--out` that holds another dump already ends as an empty one does: nothing of it is left."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from jobs.cli.main import cli
from tests.conftest import ELECTION
from tests.support.decoded_here import decoded_here
from tests.support.replayed_here import replayed_here

DUMPS = Path(__file__).parents[1] / "data" / "dumps"
DUMP, ANOTHER = DUMPS / "kafka-4.3.1-failover", DUMPS / "kafka-4.1.2-share-streams"
ANSWERS = ("summary.json", "findings.jsonl", "incident.json", "report/index.html")


def run(*arguments: object) -> int:
    done = CliRunner().invoke(cli, [*map(str, arguments)], standalone_mode=False)
    assert done.exception is None, (arguments, done.exception)
    return int(done.return_value)


@pytest.fixture(scope="module")
def decoded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("asked") / "decoded"
    decoded_here([str(DUMP)], folder)
    return folder


@pytest.fixture(scope="module")
def asked(decoded: Path) -> Path:
    """The dump replayed into one workspace, decoded into another."""
    folder = decoded.parent / "replayed"
    run("replay", decoded, "--out", folder)
    return folder


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another dump decoded, replayed, asked and audited in one folder. Not to be changed."""
    folder = tmp_path_factory.mktemp("used") / "out"
    replayed_here(decoded_here([str(ANOTHER)], folder), folder)
    for question in ("usage", "share", "lag"):
        run(question, folder, "--out", folder)
    for name in ANSWERS:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("{}")
    return folder


def contents(folder: Path) -> dict[str, Any]:
    """Return tables by file, manifests without what a table says for itself, names of the rest."""
    found: dict[str, Any] = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.suffix == ".parquet":
            found[name] = pq.read_table(path, partitioning=None)
        elif path.name == "manifest.json":
            found[name] = json.loads(path.read_text())
        elif path.is_file():
            found[name] = None
    return found


def assert_equal_folders(reused: Path, fresh: Path) -> None:
    one, other = contents(reused), contents(fresh)
    assert sorted(one) == sorted(other)
    for name, found in one.items():
        if isinstance(found, pa.Table):
            assert found.equals(other[name]), name
        else:
            assert found == other[name], name


INSTANT = ("--as-of", "2026-11-21T09:15:00Z")
QUESTIONS: Sequence[Sequence[str]] = (
    *(("replay",), ("replay", *INSTANT), ("lag", *INSTANT)),
    *(("share",), ("usage",), ("balance",), ("rebalances",), ("expiration",)),
    *(("forensics", "--around", ELECTION), ("audit",)),
)
EVERY = [(source, question) for source in ("decoded", "replayed") for question in QUESTIONS]
QUICK = [("decoded", ("replay",)), ("replayed", ("lag",)), ("decoded", ("lag", *INSTANT))]


@pytest.mark.parametrize(
    ("source", "question"),
    [*QUICK, *(pytest.param(*each, marks=pytest.mark.long) for each in EVERY)],
)
def test_a_used_folder_ends_as_an_empty_one(
    source: str, question: Sequence[str], decoded: Path, asked: Path, used: Path, tmp_path: Path
) -> None:
    dump = decoded if source == "decoded" else asked
    reused, fresh = tmp_path / "reused" / "out", tmp_path / "fresh" / "out"
    shutil.copytree(used, reused)
    name, *options = question
    codes = [run(name, dump, *options, "--out", each) for each in (reused, fresh)]
    assert codes[0] == codes[1]
    assert_equal_folders(reused, fresh)
    # What is asked there next is asked of the same tables; where it cannot be, of none.
    for later in ("lag", "share"):
        answers = [
            CliRunner().invoke(cli, [later, str(each), "--format", "json"], standalone_mode=False)
            for each in (reused, fresh)
        ]
        said = [
            (each.return_value, type(each.exception), each.stdout.replace(str(folder), ""))
            for each, folder in zip(answers, (reused, fresh), strict=True)
        ]
        assert said[0] == said[1]


def test_a_dump_decoded_into_a_used_folder_is_all_that_is_there(
    used: Path, decoded: Path, tmp_path: Path
) -> None:
    shutil.copytree(used, tmp_path / "out")
    decoded_here([str(DUMP)], tmp_path / "out")
    assert_equal_folders(tmp_path / "out", decoded)
