"""Replaying one internal partition of the bundled dump: few records, so making queries is the work.

With fewer messages between PySpark and the JVM, and with PySpark as it is.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from py4j.clientserver import JavaClient

from benchmarks.data import Data
from benchmarks.measure import Contestant, interleaved, ratio, tree_cpu
from benchmarks.report import Figure, Report
from benchmarks.warm_session import commands_in
from jobs.cli.console import Console
from jobs.runs.replay.run import replay_into
from jobs.spark.jvm_calls import FUNCTIONS, HELPERS, send_less
from jobs.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DUMP = Path(__file__).resolve().parents[1] / "examples" / "kafka-4.3.1-failover" / "broker-2"
PARTITION = "__consumer_offsets-9"
_OURS, _PLAIN = "with fewer messages", "PySpark as it is"


def run(data: Data) -> list[Report]:
    """Measure."""
    with spark_session(Console(quiet=True), master="local[2]", small=True) as spark:
        bench = _Bench(spark, data.folder / "small")
        runs = [
            Contestant(_OURS, bench.with_fewer, tree_cpu),
            Contestant(_PLAIN, bench.as_it_is, tree_cpu),
        ]
        interleaved(runs, min(1, data.rounds))
        times = interleaved(runs, data.rounds)
        counts = [_messages(each.run) for each in runs]
    report = Report(f"A replay of {PARTITION} of the bundled dump, the JVM warm; ratios")
    report.figures = [
        Figure(f"of the wall time of {_PLAIN}", ratio(times[_OURS].wall, times[_PLAIN].wall)),
        Figure("the same in processor time", ratio(times[_OURS].cpu, times[_PLAIN].cpu)),
        Figure(
            "the same in messages",
            counts[0] / counts[1],
            note=f"{counts[0]:,} of {counts[1]:,}, those that forget an object included",
        ),
    ]
    report.add_times(times)
    return [report]


class _Bench:
    def __init__(self, spark: SparkSession, out: Path) -> None:
        self.spark = spark
        self.out = out

    def with_fewer(self) -> None:
        send_less(self.spark)
        self._replay()

    def as_it_is(self) -> None:
        jvm: Any = self.spark._jvm  # noqa: SLF001 - what `send_less` put there is taken away
        for name in (*FUNCTIONS, *HELPERS):
            vars(jvm).pop(name, None)
        self._replay()

    def _replay(self) -> None:
        shutil.rmtree(self.out, ignore_errors=True)
        with commands_in(self.spark):
            replay_into(str(self.out), Console(quiet=True), inputs=[str(DUMP / PARTITION)])


def _messages(run: Callable[[], object]) -> int:
    """Return how many messages go to the JVM meanwhile, whoever sends them."""
    count = 0
    send = JavaClient.send_command

    def counted(self: JavaClient, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        nonlocal count
        count += 1
        return send(self, *arguments, **named)

    with patch.object(JavaClient, "send_command", counted):
        run()
    return count
