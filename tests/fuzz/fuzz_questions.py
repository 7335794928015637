"""Coverage-guided dumps through decoding, replay and every question, in one process.

    python tests/fuzz/fuzz_questions.py CORPUS -max_total_time=60

The bytes of an input are the choices by which `made_dumps` makes a small dump. Each is decoded and
asked one question, for which as much is replayed as it needs; one of sixteen is replayed whole and
asked half of all questions, or is audited, restored or what else writes tables. No command may end
with a fault of ours, every record is decoded or kept as undecoded, no two rows of a table have the
same key, and nothing needs Spark.

Dumps are so small that most of the time goes into calls of libraries, a thousand a replay: each
takes longer where it is shared out to threads.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import polars as pl
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from analytics.contracts import table_of
from analytics.errors import GroupscopeError
from jobs.cli.exit_codes import CANNOT_TELL, DONE, SEVERE_FINDING
from schemas import tables
from tests.fuzz.fuzzing import fuzz
from tests.fuzz.made_dumps import write_dump
from tests.support.decoded_here import decoded_here
from tests.verdicts.asking import call

MANY_OF = 16
"""Of so many inputs one is asked many questions."""
ANSWERED = {DONE, SEVERE_FINDING, CANNOT_TELL}
FORMATS = ("text", "json", "markdown", "csv")
AT = "2023-11-14T22:13:21Z"
"""The instant of the records, which begin with the second before."""
QUESTIONS = (
    "list --state",
    "list --type",
    "describe --offsets",
    "describe --members --verbose",
    "describe --state --verbose",
    "timeline --group *",
    f"diff --from {AT} --to end",
    "expiration --retention-minutes 1,10080",
    "balance --history",
    "rebalances",
    "lag --history",
    "lag --by group",
    "share --history",
    "share --by topic",
    "usage",
    "usage --by group",
)
"""Asked of what was decoded, or of the workspace with a whole replay."""
KEPT = (
    ("audit DECODED --out OUT/audited", "report OUT/audited --output OUT/page.html"),
    (f"restore DECODED --as-of {AT} --group * --out OUT/restored",),
    (f"forensics DECODED --around {AT} --out OUT/incident",),
    ("inspect DUMP --check-crc",),
)
"""Asked of what was decoded and not yet replayed, and of the dump."""


def look_at(content: bytes) -> None:
    """Make a dump and ask of it what it says; an assertion fails where a promise does."""
    where = "/dev/shm" if Path("/dev/shm").is_dir() else None  # in memory
    folder = Path(tempfile.mkdtemp(prefix="groupscope-fuzz-", dir=where))
    try:
        _look_at(content, folder)
    finally:
        shutil.rmtree(folder)


def _look_at(content: bytes, folder: Path) -> None:
    draw = write_dump(content, folder / "dump")
    try:
        decoded = decoded_here([str(folder / "dump")], folder / "decoded")
    except GroupscopeError:
        return  # a refusal that says why; `inspect` and the other readers of headers have targets
    _accounted(decoded.manifest())
    with without_spark():
        if draw.randrange(MANY_OF):
            _ask_about("DECODED", draw.choice(QUESTIONS), folder, draw)
        else:
            _ask_much(folder, draw)


def _ask_much(folder: Path, draw: Random) -> None:
    if draw.random() < 0.5:
        _ask("replay DECODED --out OUT/state", folder, draw)
        for question in draw.sample(QUESTIONS, len(QUESTIONS) // 2):
            _ask_about("OUT/state", question, folder, draw)
    else:
        for question in draw.choice(KEPT):
            _ask(question, folder, draw)
    _have_keys(folder)


def _ask_about(where: str, question: str, folder: Path, draw: Random) -> None:
    command, _, options = question.partition(" ")
    _ask(f"{command} {where} {options} --format FORMAT", folder, draw)


def _ask(question: str, folder: Path, draw: Random) -> None:
    places = {"DECODED": str(folder / "decoded"), "DUMP": str(folder / "dump")}
    words = [
        places.get(each, each.replace("OUT", str(folder)))
        for each in question.replace("FORMAT", draw.choice(FORMATS)).split()
    ]
    answer = call(*words)
    assert answer.code in ANSWERED, f"{question} ended with {answer.code}:\n{answer.said}"


def _accounted(manifest: Any) -> None:
    """Hold the records that were read against what became of them."""
    for each in manifest["reconciliation"]:
        gone = sum(each["undecoded"].values()) + sum(each["left_out"].values())
        assert each["reconciles"], each
        assert each["records"] == each["decoded"] + each["control_markers"] + gone, each


def _have_keys(folder: Path) -> None:
    """Look whether rows of every table that was written have keys of their own."""
    for parts in sorted({each.parent for each in folder.rglob("*.parquet")}):
        if parts.name in tables() and (key := list(tables()[parts.name].key)):
            keys = pl.read_parquet(parts / "*.parquet", columns=key)
            double = keys.filter(keys.is_duplicated())
            assert double.is_empty(), f"{parts.name} of {parts}: {double}"


@contextmanager
def without_spark() -> Iterator[None]:
    """Let no session start, no judge of tables begin, and the last resort say where it was."""

    def unjudged(*_: object, **__: object) -> pa.Table:
        # Great Expectations takes seconds a dump; `_have_keys` looks at what matters here.
        return table_of("data_quality", [])

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a small dump needs Spark")

    def traced(error: BaseException, _: object) -> str:
        return "".join(traceback.format_exception(error))

    with (
        mock.patch("jobs.spark.session.spark_session", refuse),
        mock.patch("jobs.workspaces.replaying.spark_session", refuse),
        mock.patch("analytics.questions.data_quality.question.data_quality_of", unjudged),
        mock.patch("jobs.cli.main.keep_traceback", traced),
        mock.patch("jobs.cli.console.printable", str),
    ):
        yield


def write_corpus(folder: Path) -> None:
    """Write inputs to begin from: few, since all are tried before anything else."""
    for seed in range(12):
        (folder / f"made-{seed}").write_bytes(Random(seed).randbytes(400))


if __name__ == "__main__":
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    fuzz(look_at, write_corpus)
