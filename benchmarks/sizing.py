"""How time and memory grow with a dump, and a model of it: `decode` and `replay`.

    python -m benchmarks sizing --large 11860MB    100 million commits, and parts of it

A million groups; one of fifty partitions has two fifths of the records. Each command runs once on
each size. Spark's event log says when its tasks ran. From it come three figures of a run:

- rest: seconds in which no task ran;
- work: seconds of all tasks;
- longest: of each stage the longest task, together.

Each is taken to grow along a straight line, fitted on the three smaller sizes. With so many cores a
run takes at most rest + work / cores + longest x (1 - 1 / cores): a stage ends once all its work is
done, and before that all cores are busy until what is left is one task (R. L. Graham, "Bounds on
multiprocessing timing anomalies", 1969). The model is checked on the largest dump, and on one
executor and on two of one core each, of the smallest.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.at_scale import run_groupscope
from benchmarks.command import Run
from benchmarks.data import Data, size_of
from benchmarks.generate import Options, write_skewed_dump
from benchmarks.report import Figure, Report

COMMANDS = ("decode", "replay")
_FITTED = (1 / 8, 1 / 4, 1 / 2)
_CHECKED = 1.0
_PARTITIONS = 50
_LARGEST_SHARE = 0.4
_NUMBERS = 7407
"""Of names of groups; with the words behind them a million."""
_GROUP_SHARE = 0.0035
_CORES = 2
_EXECUTORS = (1, 2)
_MOST_DRIVER_MB = 1024
_MOST_WORKER_MB = 1536
_MOST_GROWTH = 2.2
_TERABYTES, _CLUSTER_CORES = 2, 100


@dataclass(frozen=True)
class Tasks:
    """What Spark's event log says of a run.

    Attributes:
        count: How many tasks ran.
        work: Seconds of all of them.
        longest: Seconds of the longest of each stage, together.
        longest_one: Seconds of the longest of all.
        covered: Seconds in which one ran at least.
    """

    count: int
    work: float
    longest: float
    longest_one: float
    covered: float


@dataclass(frozen=True)
class Point:
    """A command on a dump.

    Attributes:
        size: Bytes of the dump.
        run: Its time and memory.
        tasks: Its tasks.
    """

    size: int
    run: Run
    tasks: Tasks

    @property
    def rest(self) -> float:
        """Seconds in which no task ran."""
        return self.run.wall - self.tasks.covered


@dataclass(frozen=True)
class Line:
    """A straight line: seconds at no bytes, and for each."""

    start: float
    slope: float

    @classmethod
    def through(cls, sizes: Iterable[int], seconds: Iterable[float]) -> Line:
        """Fit by least squares; what does not grow has no slope, and nothing begins below zero."""
        slope, start = np.polyfit(list(sizes), list(seconds), 1)
        return cls(max(float(start), 0.0), max(float(slope), 0.0))

    def at(self, size: float) -> float:
        """Return the seconds of a dump of some bytes."""
        return self.start + self.slope * size


@dataclass(frozen=True)
class Model:
    """How long a command takes."""

    rest: Line
    work: Line
    longest: Line

    @classmethod
    def of(cls, points: Iterable[Point]) -> Model:
        """Fit the lines."""
        there = list(points)
        sizes = [each.size for each in there]
        return cls(
            Line.through(sizes, (each.rest for each in there)),
            Line.through(sizes, (each.tasks.work for each in there)),
            Line.through(sizes, (each.tasks.longest for each in there)),
        )

    def seconds(self, size: float, cores: int) -> float:
        """Return the seconds of a dump of some bytes, at most."""
        tail = self.longest.at(size) * (1 - 1 / cores)
        return self.rest.at(size) + self.work.at(size) / cores + tail


def run(data: Data) -> list[Report]:
    """Measure, once whatever the rounds: a run takes minutes."""
    return measure(data, COMMANDS)


def measure(data: Data, commands: Collection[str]) -> list[Report]:
    """Measure some commands."""
    points = {share: _measured(data, share, commands) for share in (*_FITTED, _CHECKED)}
    models = {name: Model.of(points[each][name] for each in _FITTED) for name in commands}
    return [
        _grown(points),
        _checked(models, points),
        _on_executors(data, models),
        _predicted(models),
    ]


def _grown(points: Mapping[float, Mapping[str, Point]]) -> Report:
    largest = max(each.size for each in points[_CHECKED].values())
    report = Report(f"A dump of {largest / 1e6:,.0f} MB, a million groups, and parts of it")
    for name in points[_CHECKED]:
        for smaller, larger in ((1 / 8, 1 / 4), (1 / 4, 1 / 2), (1 / 2, 1.0)):
            growth = points[larger][name].run.wall / points[smaller][name].run.wall
            what = f"{name}, {larger:g} of the dump, of the time of {smaller:g}"
            report.figures.append(Figure(what, growth, at_most=_MOST_GROWTH))
        every = [each[name] for each in points.values()]
        driver = max(each.run.driver_peak for each in every)
        workers = max(max(each.run.worker_peaks.values(), default=0.0) for each in every)
        report.figures += [
            Figure(f"{name}, memory of the driver", driver, "MB", at_most=_MOST_DRIVER_MB),
            Figure(f"{name}, memory of a worker", workers, "MB", at_most=_MOST_WORKER_MB),
        ]
        report.details += [_line(name, each) for each in every]
    return report


def _line(name: str, point: Point) -> str:
    tasks, run = point.tasks, point.run
    worker = max(run.worker_peaks.values(), default=0.0)
    return (
        f"    {name:<8}{point.size / 1e6:8,.0f} MB  wall {run.wall:7.1f} s  rest {point.rest:6.1f}"
        f"  work {tasks.work:7.1f}  longest {tasks.longest:6.1f} ({tasks.longest_one:.1f})"
        f"  tasks {tasks.count:5,}  driver {run.driver_peak:5,.0f} MB  worker {worker:5,.0f} MB"
    )


def _checked(models: Mapping[str, Model], points: Mapping[float, Mapping[str, Point]]) -> Report:
    report = Report("The model, fitted on the three smaller dumps, of the time of the largest")
    for name, model in models.items():
        point = points[_CHECKED][name]
        said = model.seconds(point.size, _CORES) / point.run.wall
        report.figures.append(Figure(f"{name}, model of measured", said))
        report.details.append(
            f"    {name:<8} rest {_formula(model.rest)}; work {_formula(model.work)}; "
            f"longest {_formula(model.longest)}"
        )
    return report


def _formula(line: Line) -> str:
    return f"{line.start:.1f} s + {line.slope * 1e9:.2f} s/GB"


def _on_executors(data: Data, models: Mapping[str, Model]) -> Report:
    report = Report("The same dump, the smallest, on executors of one core each")
    with _dump(data, _FITTED[0]) as dump:
        size = size_of(dump)
        for name in models:
            for executors in _EXECUTORS:
                master = f"local-cluster[{executors},1,1024]"
                point = _ran(data, dump, name, "--master", master)
                said = models[name].seconds(size, executors) / point.run.wall
                what = f"{name}, {executors} executors, model of measured"
                report.figures.append(Figure(what, said, note=f"{point.run.wall:.1f} s"))
    return report


def _predicted(models: Mapping[str, Model]) -> Report:
    report = Report(f"What {_TERABYTES} TB would take on {_CLUSTER_CORES} cores, by the model")
    for name, model in models.items():
        size = _TERABYTES * 1e12
        seconds = model.seconds(size, _CLUSTER_CORES)
        report.details.append(
            f"    {name:<8}{seconds / 3600:6.1f} h: rest {model.rest.at(size) / 3600:.1f} h, work "
            f"{model.work.at(size) / 3600:.0f} core hours, longest "
            f"{model.longest.at(size) / 60:.1f} min"
        )
    return report


def _measured(data: Data, share: float, commands: Iterable[str]) -> dict[str, Point]:
    with _dump(data, share) as dump:
        return {name: _ran(data, dump, name) for name in commands}


@contextmanager
def _dump(data: Data, share: float) -> Iterator[Path]:
    """Make a dump of a share of the largest, for as long as it is needed."""
    dump = data.folder / "sized"
    size = int(data.large_bytes * share)
    options = Options(size=size, groups=_NUMBERS, group_share=_GROUP_SHARE)
    for _ in write_skewed_dump(dump, options, _PARTITIONS, _LARGEST_SHARE):
        pass
    try:
        yield dump
    finally:
        shutil.rmtree(dump)


def _ran(data: Data, dump: Path, name: str, *options: str) -> Point:
    """Run a command, which is to make a workspace; that is removed."""
    out = data.folder / name
    with TemporaryDirectory(dir=data.folder) as events:
        settings = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": Path(events).as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
        }
        given = [f"--conf={key}={value}" for key, value in settings.items()]
        ran = run_groupscope(name, str(dump), "--out", str(out), *given, *options)
        tasks = tasks_of(Path(events))
    shutil.rmtree(out)
    return Point(size_of(dump), ran, tasks)


def tasks_of(events: Path) -> Tasks:
    """Return what the event logs in a folder say of tasks."""
    stages: dict[tuple[str, int], list[float]] = defaultdict(list)
    spans: list[tuple[float, float]] = []
    for log in events.iterdir():
        for event in map(json.loads, log.read_text(encoding="utf-8").splitlines()):
            if event["Event"] == "SparkListenerTaskEnd":
                info: dict[str, Any] = event["Task Info"]
                began, ended = info["Launch Time"] / 1000, info["Finish Time"] / 1000
                stages[log.name, event["Stage ID"]].append(ended - began)
                spans.append((began, ended))
    longest = [max(each) for each in stages.values()]
    return Tasks(
        len(spans),
        sum(map(sum, stages.values())),
        sum(longest),
        max(longest, default=0.0),
        _covered(spans),
    )


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    covered, until = 0.0, 0.0
    for began, ended in sorted(spans):
        covered += max(ended - max(began, until), 0.0)
        until = max(until, ended)
    return covered
