"""Measure groupscope against plain loops, other parsers, and Spark's own copy of the same rows.

    python -m benchmarks                   everything but Kafka's own tools
    python -m benchmarks wire spark        some of it
    python -m benchmarks --peers           Kafka's own tools (needs Maven)
    python -m benchmarks --quick           does it all still run? the figures mean nothing

Contestants run in turn, round after round; a figure is the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.data import Data, room_for
from benchmarks.generate import parse_size
from benchmarks.report import Report

BENCHMARKS = (
    *("wire", "spark", "memory", "inspection", "archived_rows"),
    *(
        "group_fold",
        "offsets_replay",
        "share_replay",
        "usage",
        "asking",
        "assignors",
        "lag_history",
        "whole_audit",
        "whole_commands",
        "at_scale",
        "one_core",
        "many_commits",
        "sizing",
        "audit_sizing",
    ),
)
PEERS = ("peers", "fetching", "many_groups")
_QUICK = {
    "segment_bytes": 400_000,
    "whole_bytes": 200_000,
    "large_bytes": 3_200_000,
    "rounds": 1,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; returns the exit code."""
    given = _parser().parse_args(arguments)
    names = given.names or (PEERS if given.peers else BENCHMARKS)
    sizes = dict(_QUICK) if given.quick else {}
    for option in ("segment_bytes", "large_bytes", "rounds"):
        if getattr(given, option) is not None:
            sizes[option] = getattr(given, option)
    large = sizes.get("large_bytes", Data.large_bytes)
    _say_machine()
    reports: list[Report] = []
    with tempfile.TemporaryDirectory(prefix="groupscope-bench-", dir=room_for(large)) as folder:
        data = Data(Path(folder), **sizes)
        for name in names:
            run: Callable[[Data], list[Report]] = import_module(f"benchmarks.{name}").run
            for report in run(data):
                print(report.show(), flush=True)
                reports.append(report)
    figures = [figure for report in reports for figure in report.figures]
    missed = [figure.what for figure in figures if not figure.is_met]
    print(f"{len(figures) - len(missed)} of {len(figures)} figures reach their targets.")
    return 0


def _parser() -> argparse.ArgumentParser:
    lines = (__doc__ or "").splitlines()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=lines[0])
    parser.add_argument(
        "names",
        nargs="*",
        choices=[*BENCHMARKS, *PEERS, []],
        metavar="NAME",
        help=f"of {', '.join((*BENCHMARKS, *PEERS))}; default all but {', '.join(PEERS)}",
    )
    parser.add_argument("--peers", action="store_true", help="time Kafka's own tools")
    parser.add_argument("--quick", action="store_true", help="tiny data, one round")
    parser.add_argument("--rounds", type=int, help="of each contestant; default 5")
    parser.add_argument(
        "--segment",
        type=parse_size,
        dest="segment_bytes",
        metavar="SIZE",
        help="of a generated segment; default 100MB",
    )
    parser.add_argument(
        "--large",
        type=parse_size,
        dest="large_bytes",
        metavar="SIZE",
        help="of the large dump; default 4GB",
    )
    return parser


def _say_machine() -> None:
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    python = platform.python_version()
    print(f"{os.cpu_count()} cores, {platform.machine()}, Python {python}; load {load}\n")


if __name__ == "__main__":
    sys.exit(main())
