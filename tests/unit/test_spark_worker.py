"""A worker of our own Spark loads no pandas for Arrow, and takes what it loaded for no garbage."""

from __future__ import annotations

import os
import subprocess
import sys

from analytics.spark_tasks import OWN

FIRST = """
import gc, sys
import pyarrow as pa
from analytics.spark_tasks import on_worker

@on_worker
def run(batches):
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"a": pa.array(batch.column(0).to_pylist())})

batch = pa.RecordBatch.from_arrays([pa.nulls(2)], ["a"])
"""


def worker(code: str, *, is_own: bool = True) -> str:
    """Run code in a process of its own: what is imported stays imported."""
    told = subprocess.run(
        [sys.executable, "-c", FIRST + code],
        env={**os.environ, **({OWN: "1"} if is_own else {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    return told.stdout


def test_arrow_does_without_pandas() -> None:
    assert worker("print(list(run(iter([batch])))[0].num_rows, 'pandas' in sys.modules)") == (
        "2 False\n"
    )


def test_whoever_comes_after_it_gets_pandas() -> None:
    assert worker("list(run(iter([batch]))); import pandas; print('pandas' in sys.modules)") == (
        "True\n"
    )
    assert worker(
        "list(run(iter([batch]))); print(type(pa.table({'a': [1]}).to_pandas()).__name__)"
    ) == ("DataFrame\n")


def test_what_the_first_task_loaded_is_never_looked_through_again() -> None:
    told = worker(
        "before = len(gc.get_objects()); list(run(iter([batch]))); first = gc.get_freeze_count()\n"
        "kept = [[] for _ in range(1000)]; list(run(iter([batch])))\n"
        "print(first >= before, gc.get_freeze_count() == first, len(gc.get_objects()) > 1000)"
    )
    assert told == "True True True\n"


def test_an_error_is_told_as_it_is() -> None:
    told = worker(
        "try: list(run(iter([1])))\n"
        "except AttributeError: import pandas; print('pandas' in sys.modules)"
    )
    assert told == "True\n"


def test_a_worker_that_others_use_again_knows_the_values_of_pandas() -> None:
    told = worker(
        "list(run(iter([batch]))); import pandas as pd\n"
        "print(pa.array(pd.Series([1.0, float('nan')])).null_count, gc.get_freeze_count())",
        is_own=False,
    )
    assert told == "1 0\n"
