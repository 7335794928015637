"""`groupscope snapshot` against Kafka's console consumer, on the same partitions of a real broker.

The broker gets generated segments of `__consumer_offsets` into its log directory while it is
stopped. Both read all of them, over loopback: the consumer prints its records' values to nowhere,
the snapshot writes the batches into a folder. Neither is asked for anything else.
"""

from __future__ import annotations

import os
import shutil
import socket
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from benchmarks.command import GROUPSCOPE, Run, run_command
from benchmarks.data import Data, segments_in, size_of
from benchmarks.generate import Options, write_dump
from benchmarks.kafka_tools import RELEASE, ToolsUnavailableError, fetch
from benchmarks.measure import Contestant, interleaved, ratio
from benchmarks.report import Figure, Report

_PARTITIONS: Final = 4
_TOPIC: Final = "__consumer_offsets"
_CLUSTER: Final = "groupscope-bench-0000A"
_JAVA: Final = ("java", "-Xmx2G", "-XX:+UseG1GC")
_CLIENT: Final = ("java", "-Xmx512M", "-server", "-XX:+UseG1GC")
"""What Kafka's scripts give a console consumer."""
_SECONDS: Final = 180
_GROUPS: Final = 200
"""Numbers that names begin with. A snapshot asks for groups, and a consumer does not."""
_OURS, _OUR_START = "groupscope snapshot", "groupscope snapshot of nothing (start)"
_PEER, _PEER_START = "kafka-console-consumer", "kafka-console-consumer, one record (start)"


def run(data: Data) -> list[Report]:
    """Measure."""
    report = Report(f"snapshot against kafka-console-consumer {RELEASE}; ratios within rounds")
    try:
        jars = fetch(data.folder / "client-tools")
    except ToolsUnavailableError as reason:
        report.details.append(f"    skipped: {reason}")
        return [report]
    source = data.folder / "fetched"
    options = Options(size=data.segment_bytes // 2, groups=_GROUPS)
    written = write_dump(source, options, _PARTITIONS)
    records, size = sum(each.records for each in written), sum(each.size for each in written)
    report.title += f"; {_PARTITIONS} partitions, {size / 1e6:,.0f} MB, {records:,} records"
    with _broker(jars, data.folder / "broker", source) as bootstrap:
        out = data.folder / "snapshot"
        _check(bootstrap, out, source)
        runs: list[Run] = []
        contestants = [
            Contestant(_PEER, lambda: _consume(jars, bootstrap, records)),
            Contestant(_PEER_START, lambda: _consume(jars, bootstrap, 1)),
            Contestant(
                _OURS,
                lambda: runs.append(_snapshot(bootstrap, out)),
                clean=lambda: shutil.rmtree(out),
            ),
            Contestant(
                _OUR_START,
                lambda: _snapshot(bootstrap, out, "--max-bytes", "1"),
                clean=lambda: shutil.rmtree(out),
            ),
        ]
        times = interleaved([replace(each, cpu=ended_cpu) for each in contestants], data.rounds)
    walls = {name: each.wall for name, each in times.items()}
    cpus = {name: each.cpu for name, each in times.items()}
    peak = max(each.driver_peak for each in runs)
    report.figures = [
        Figure("times its rate, the whole process", ratio(walls[_PEER], walls[_OURS]), at_least=1),
        Figure("times its rate, the reading itself", _of_reading(walls), at_least=1),
        Figure("the same by processor time", ratio(cpus[_PEER], cpus[_OURS]), at_least=1),
        Figure("the same, the reading itself", _of_reading(cpus), at_least=1),
        Figure("highest memory of snapshot", peak, unit="MB", at_most=500),
    ]
    report.add_times(times, records, size)
    return [report]


def ended_cpu() -> float:
    """Return processor seconds of commands that ended; the broker still runs."""
    times = os.times()
    return times.children_user + times.children_system


def _of_reading(seconds: Mapping[str, Sequence[float]]) -> float:
    """Return how many times as fast the snapshot reads, the starts of both left out."""
    peer, peer_start, ours, our_start = (
        seconds[each] for each in (_PEER, _PEER_START, _OURS, _OUR_START)
    )
    return statistics.median(
        (one - one_start) / max(other - other_start, 1e-9)
        for one, one_start, other, other_start in zip(
            peer, peer_start, ours, our_start, strict=True
        )
    )


def _consume(jars: Path, bootstrap: str, records: int) -> Run:
    main = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    arguments = ["--bootstrap-server", bootstrap, "--topic", _TOPIC, "--from-beginning"]
    limits = ["--max-messages", str(records), "--timeout-ms", "60000"]
    return run_command([*_CLIENT, "-cp", f"{jars}/*", main, *arguments, *limits])


def _snapshot(bootstrap: str, out: Path, *options: str) -> Run:
    command = [str(GROUPSCOPE), "snapshot", "--bootstrap-server", bootstrap, "--out", str(out)]
    return run_command(
        [*command, "--no-check", "--quiet", *options], watch_workers=True, codes=(0, 3)
    )


def _check(bootstrap: str, out: Path, source: Path) -> None:
    """Check that a snapshot has the broker's batches, byte for byte."""
    _snapshot(bootstrap, out)
    for segment in segments_in(source):
        content = segment.read_bytes()
        fetched = (out / segment.parent.name / segment.name).read_bytes()
        assert fetched[: len(content)] == content, segment
    assert size_of(out) >= size_of(source)
    shutil.rmtree(out)


@dataclass(frozen=True)
class Server:
    """A broker that is its own controller."""

    jars: Path
    folder: Path
    port: int
    controller: int

    @property
    def bootstrap(self) -> str:
        """Where it is asked."""
        return f"127.0.0.1:{self.port}"

    @property
    def log_dir(self) -> Path:
        """Where its logs are."""
        return self.folder / "log"

    def format(self) -> None:
        """Make the log directory of a new cluster."""
        self.folder.mkdir(parents=True)
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{self.controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller}",
            "log.dirs": str(self.log_dir),
            "log.cleaner.enable": "false",
            "offsets.topic.num.partitions": str(_PARTITIONS),
            "offsets.topic.replication.factor": "1",
            "offsets.retention.minutes": "1000000000",
            "group.initial.rebalance.delay.ms": "0",
        }
        properties = self.folder / "server.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        command = self._java("kafka.tools.StorageTool", "format", "-t", _CLUSTER)
        subprocess.run(
            [*command, "-c", str(properties)], check=True, capture_output=True, timeout=_SECONDS
        )

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run it until its coordinators answer for all groups; at the end it stops in order."""
        command = self._java("kafka.Kafka", str(self.folder / "server.properties"))
        with (self.folder / "said.txt").open("ab") as said:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            self._wait_for_groups(process)
            yield
        finally:
            process.terminate()
            try:
                process.wait(_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _wait_for_groups(self, process: subprocess.Popen[bytes]) -> None:
        tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
        server = ("--bootstrap-server", self.bootstrap)
        until = time.monotonic() + _SECONDS
        while process.poll() is None and time.monotonic() < until:
            # Asked for a group a broker makes the topic; a list is whole once all is loaded.
            asked = [
                self._ran(tool, *server, "--describe", "--group", "nobody"),
                self._ran(tool, *server, "--list"),
            ]
            if asked[1] and len(list(self.log_dir.glob(f"{_TOPIC}-*"))) == _PARTITIONS:
                return
            time.sleep(0.5)
        words = (self.folder / "said.txt").read_text(errors="replace")[-2000:]
        raise RuntimeError(f"the broker does not answer:\n{words}")

    def _ran(self, *arguments: str) -> bool:
        ran = subprocess.run(
            self._java(*arguments), capture_output=True, timeout=_SECONDS, check=False
        )
        return ran.returncode == 0 and b"Error" not in ran.stdout

    def _java(self, *arguments: str) -> list[str]:
        return [*_JAVA, "-cp", f"{self.jars}/*", *arguments]


@contextmanager
def _broker(jars: Path, folder: Path, source: Path) -> Iterator[str]:
    """Run a broker that has the segments of a log directory."""
    server = Server(jars, folder, *free_ports())
    server.format()
    with server.running():
        pass
    for segment in segments_in(source):
        target = server.log_dir / segment.parent.name
        for each in target.iterdir():
            if each.suffix in {".log", ".index", ".timeindex", ".snapshot"}:
                each.unlink()
        shutil.copyfile(segment, target / segment.name)
    with server.running():
        yield server.bootstrap


def free_ports() -> tuple[int, int]:
    """Return two ports that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("", 0)) as other:
        return one.getsockname()[1], other.getsockname()[1]
