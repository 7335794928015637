"""Where a snapshot says something else than its cluster answered, as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from analytics.dump.files.cluster_answers import ANSWER_FILES, answers_in_file
from analytics.questions.cluster.question import CLUSTER, ClusterSettings, answer_of
from analytics.questions.question import Answer
from analytics.replay.dump.coverage import last_snapshot
from groupscope import open_dump

Row = dict[str, Any]
Judged = Callable[[Path], list[Row]]


def differences(dump: Path) -> list[Row]:
    """Return what differs in a dump or workspace, which is replayed for it."""
    with open_dump(str(dump)) as opened:
        state = opened.replay(tables=[*CLUSTER.needs])
        return _rows(CLUSTER.ask(state.replayed, ClusterSettings()))


@contextmanager
def replayed_once(taken: Path) -> Iterator[Judged]:
    """Hand over what returns the differences of snapshots that have the same logs as this one.

    They are replayed once: only the answers are those of each.
    """
    with open_dump(str(taken)) as opened:
        state = opened.replay(tables=[*CLUSTER.needs]).replayed
        snapshot = last_snapshot(state.manifest)
        assert snapshot is not None
        copy = pl.lit(snapshot["copy"])

        def of(dump: Path) -> list[Row]:
            looks = [
                answers_in_file(str(dump / name), look)
                for look, name in enumerate(ANSWER_FILES, 1)
                if (dump / name).exists()
            ]
            answers = pl.DataFrame(pl.from_arrow(pa.concat_tables(looks)))
            return _rows(answer_of(state, answers.with_columns(copy=copy)))

        yield of


def _rows(answer: Answer) -> list[Row]:
    rows: list[Row] = answer.tables["cluster_differences"].to_pylist()
    return rows
