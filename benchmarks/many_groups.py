"""`groupscope snapshot` of a real broker with many groups, and with four times as many.

A client commits three offsets for each group. `--no-check` describes the cluster and fetches its
logs; without it all groups are asked for, and the snapshot is held against the answers.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

from analytics.snapshot.cluster_connection import ClientSettings, ClusterConnection
from benchmarks.command import GROUPSCOPE, Run, run_command
from benchmarks.data import Data
from benchmarks.fetching import Server, free_ports
from benchmarks.kafka_tools import RELEASE, ToolsUnavailableError, fetch
from benchmarks.measure import Contestant, Times, interleaved, ratio
from benchmarks.report import Figure, Report

_TIMES: Final = 4
_BYTES_A_GROUP: Final = 1000
"""Of `--segment`: 100MB is 100,000 groups."""
_TOPIC: Final = "orders"
_PARTITIONS: Final = 3
_THREADS: Final = 16
_TRIES: Final = 100
_WAYS: Final = {"snapshot --no-check": ("--no-check",), "snapshot": ()}


def run(data: Data) -> list[Report]:
    """Measure."""
    groups = data.segment_bytes // _BYTES_A_GROUP
    report = Report(f"snapshot of a broker of {RELEASE} with {groups:,} groups, whole processes")
    try:
        jars = fetch(data.folder / "tools-of-groups")
    except ToolsUnavailableError as reason:
        report.details.append(f"    skipped: {reason}")
        return [report]
    server = Server(jars, data.folder / "broker-of-groups", *free_ports())
    server.format()
    runs: dict[str, list[Run]] = {name: [] for name in _WAYS}
    with server.running():
        _make_topic(server.bootstrap)
        _commit(server.bootstrap, range(groups // _TIMES))
        few = _measured(server.bootstrap, data, runs)
        _commit(server.bootstrap, range(groups // _TIMES, groups))
        many = _measured(server.bootstrap, data, runs)
    for name in _WAYS:
        times = ratio(many[name].wall, few[name].wall)
        report.figures.append(Figure(f"{name}, for four times the groups", times, at_most=4.4))
        peak = max(each.driver_peak for each in runs[name])
        report.figures.append(Figure(f"{name}, its highest memory", peak, unit="MB", at_most=1024))
    report.add_times({f"{name}, a quarter": few[name] for name in _WAYS}, cpu=False)
    report.add_times(many, cpu=False)
    return [report]


def _measured(bootstrap: str, data: Data, runs: dict[str, list[Run]]) -> dict[str, Times]:
    out = data.folder / "snapshot-of-groups"

    def contestant(name: str, options: tuple[str, ...]) -> Contestant:
        take: Callable[[], Run] = partial(_snapshot, bootstrap, out, *options)
        return Contestant(name, lambda: runs[name].append(take()), clean=lambda: shutil.rmtree(out))

    return interleaved([contestant(*each) for each in _WAYS.items()], data.rounds)


def _snapshot(bootstrap: str, out: Path, *options: str) -> Run:
    command = [str(GROUPSCOPE), "snapshot", "--bootstrap-server", bootstrap, "--out", str(out)]
    return run_command([*command, "--quiet", *options], watch_workers=True)


def _make_topic(bootstrap: str) -> None:
    from kafka.protocol.admin import CreateTopicsRequest  # noqa: PLC0415 - optional

    topic = CreateTopicsRequest.CreatableTopic(
        name=_TOPIC, num_partitions=_PARTITIONS, replication_factor=1, assignments=[], configs=[]
    )
    with ClusterConnection(bootstrap, ClientSettings(), 60) as cluster:
        cluster.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=False))


def _commit(bootstrap: str, numbers: range) -> None:
    """Commit offsets for groups without members, as `kafka-consumer-groups --reset-offsets` does.

    Raises:
        RuntimeError: One is refused.
    """
    with (
        ClusterConnection(bootstrap, ClientSettings(), 60) as cluster,
        ThreadPoolExecutor(_THREADS) as threads,
    ):
        for refused in threads.map(partial(_refused, cluster), numbers):
            if refused:
                raise RuntimeError(f"a commit was refused with error {refused}")


def _refused(cluster: ClusterConnection, number: int) -> int:
    """Commit for one group; return the code of the last error, 0 where there is none."""
    code = 0
    for _ in range(_TRIES):
        (topic,) = cluster.ask(_request(number), cluster.nodes[0]).topics
        code = max(each.error_code for each in topic.partitions)
        if not code:
            break
        # The topic is new, or its group's coordinator is.
        time.sleep(0.2)
    return code


def _request(number: int) -> Any:  # noqa: ANN401 - untyped library
    from kafka.protocol.consumer import OffsetCommitRequest  # noqa: PLC0415 - optional

    of_topic = OffsetCommitRequest.OffsetCommitRequestTopic
    partitions = [
        of_topic.OffsetCommitRequestPartition(
            partition_index=each,
            committed_offset=number,
            committed_leader_epoch=-1,
            committed_metadata="",
        )
        for each in range(_PARTITIONS)
    ]
    return OffsetCommitRequest(
        group_id=f"group-{number:07d}",
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[of_topic(name=_TOPIC, partitions=partitions)],
        # The last one that names topics by their names.
        max_version=9,
    )
