"""Decode a dump on a cluster, a task a slice, without the look at executors before it.

`python decode_unprobed.py MASTER INPUT OUT` writes parts below OUT and prints the paths of those
that count, as JSON: by table.
"""

from __future__ import annotations

import json
import sys

from analytics.decode.tasks import Settings, decode_on_spark
from analytics.dump.copies.plan import plan
from analytics.errors import GroupscopeError
from jobs.cli.console import Console
from jobs.spark.session import spark_session


def main(master: str, source: str, out: str) -> None:
    """Decode."""
    conf = {"spark.executor.memory": "512m", "spark.ui.enabled": "false"}
    with spark_session(Console(), master=master, conf=conf) as spark:
        slices = plan([source]).slices
        reports = decode_on_spark(spark, slices, Settings(out), task_bytes=1)
    parts: dict[str, list[str]] = {}
    for report in reports:
        for part in report.parts:
            parts.setdefault(part.table, []).append(part.path)
    print(json.dumps(parts))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except GroupscopeError as error:
        sys.exit(f"{type(error).__name__}: {error}")
