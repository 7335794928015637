"""Ours over a table of many commits, in turns with Spark merely counting the same one by group."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import Contestant, Times, interleaved, sunk, tree_cpu
from benchmarks.report import Figure
from jobs.cli.console import Console
from jobs.spark.session import spark_session

COUNTING = "Spark counts by group"
_MOST_MB = 1500


def beside_counting(ours: Contestant, table: Path, group: str, rounds: int) -> dict[str, Times]:
    """Return the times of ours and of `COUNTING`, by name, after a round that does not count.

    Args:
        ours: What is measured.
        table: The table's folder.
        group: Its column that Spark counts by; the result ends in a sink.
        rounds: How often each runs.
    """
    with spark_session(Console(quiet=True), master="local[2]") as spark:
        counting = Contestant(
            COUNTING,
            sunk(lambda: spark.read.parquet(str(table)).groupBy(group).count()),
            tree_cpu,
        )
        interleaved([ours, counting], 1)
        return interleaved([ours, counting], rounds)


def highest_memory(module: str, folders: Sequence[Path]) -> list[Figure]:
    """Return the highest memory of processes that run a module with a folder and nothing else.

    Args:
        module: Run with a folder it prints its highest memory in MB.
        folders: With a quarter of the commits, and with all of them.
    """
    found = []
    for folder, name in zip(folders, ("a quarter of the commits", "all of them"), strict=True):
        command = [sys.executable, "-m", module, str(folder)]
        peak = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        found.append(Figure(f"highest memory, {name}", float(peak), "MB", at_most=_MOST_MB))
    return found
