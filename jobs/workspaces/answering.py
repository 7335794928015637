"""Where a question is answered: in this process, or in tasks on Spark where there is much to do."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from analytics.decode.run.workload import is_small_workspace
from analytics.engine.part_runs import PartRunner, in_threads
from analytics.spark_tasks import run_tasks
from jobs.spark.java import java_problem
from jobs.spark.session import is_local, one_session, spark_session

if TYPE_CHECKING:
    from analytics.workspace import Workspace
    from jobs.cli.console import Console

_FOLDER: Final = ".answers-"


@contextmanager
def part_runner(
    console: Console, space: Workspace, manifest: Mapping[str, Any], options: Mapping[str, Any]
) -> Iterator[PartRunner]:
    """Hand over what makes answers to questions about a workspace.

    Spark is started by the first question that takes several parts.

    Args:
        console: Where its start is told.
        space: The workspace; on a cluster it is seen by all machines, and holds what they make.
        manifest: Of the workspace.
        options: `master` and `conf`, as `spark_options` declares them.
    """
    if is_small_workspace(manifest):
        yield PartRunner()
        return
    master, conf = options.get("master"), options.get("conf")
    with one_session(), _folder(space, is_here=is_local(master)) as folder:

        def on_spark(count: int, run: Callable[[int], Any]) -> Sequence[Any]:
            if not master and not conf and (problem := java_problem()) is not None:
                # Nobody asked for Spark, and what was replayed elsewhere is answered without.
                console.detail(f"answered without Spark: {problem}")
                return in_threads(count, run)
            from jobs.spark.progress import progress  # noqa: PLC0415 - heavy, as Spark is

            with (
                spark_session(console, master=master, conf=conf, small=True) as spark,
                progress(spark, console, "answering"),
            ):
                return run_tasks(spark, count, run)

        yield PartRunner(folder, on_spark)


@contextmanager
def _folder(space: Workspace, *, is_here: bool) -> Iterator[str]:
    """Hand over a folder that is removed at the end."""
    if is_here:
        with tempfile.TemporaryDirectory(prefix="groupscope-") as folder:
            yield folder
        return
    name = f"{_FOLDER}{uuid.uuid4().hex}"
    try:
        yield space.table(name)
    finally:
        space.remove(name)
