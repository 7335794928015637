"""Looks at a cluster's groups once its logs are read, to hold a snapshot against the living.

The first look asks for all groups, the second for those that differ; after each the logs are read
on, so that what was written in between is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import polars as pl

from analytics.dump.files.cluster_answers import ANSWER_FILES, answers_in_file
from analytics.errors import WorkspaceError
from analytics.snapshot.answer_file import answer_writer
from analytics.snapshot.cluster_connection import ClusterConnection
from analytics.snapshot.cluster_description import listed_groups
from analytics.snapshot.group_answers import (
    ANSWERED,
    LISTED,
    AskedGroup,
    asked_groups,
    write_group_answers,
)
from analytics.snapshot.log_reading import LogReader
from analytics.snapshot.records_since import write_records_since
from schemas.names import CONSUMER_OFFSETS
from schemas.snapshot import Log, Snapshot

Clock = Callable[[], datetime]
LOOK: Final = "look"
"""The kind of rows that say what a whole look lacks, or that it lacks nothing."""


def first_look(
    cluster: ClusterConnection, reader: LogReader, logs: Iterable[Log], folder: Path, clock: Clock
) -> None:
    """Ask for all groups there are, and write what is answered beside the logs."""
    groups, unlisted = listed_groups(cluster)
    with answer_writer(folder / ANSWER_FILES[0], clock, 1) as writer:
        rows = writer.rows()
        for each in unlisted:
            rows.add(LOOK, None, LISTED, None, error=f"{each.what}: {each.reason}")
        if not unlisted:
            # Where there is no group, and no log of any, this alone says that it was asked for.
            rows.add(LOOK, None, LISTED, ANSWERED)
        writer.write(rows)
        # A group that moves meanwhile may be listed twice.
        once = {each.group_id: each for each in asked_groups(groups)}
        write_group_answers(cluster, once.values(), writer)
        write_records_since(cluster, reader, logs, writer)


def second_look(
    cluster: ClusterConnection,
    reader: LogReader,
    snapshot: Snapshot,
    groups: Mapping[str, tuple[str, int | None]],
    out: Path,
    clock: Clock,
) -> None:
    """Ask again for some groups, and write what is answered into a snapshot that is whole.

    Args:
        cluster: Reached already.
        reader: Of logs.
        snapshot: Its document.
        groups: Type and partition of `__consumer_offsets` by name, null where that is not known.
        out: Where the snapshot is.
        clock: The time now.

    Raises:
        WorkspaceError: It cannot be written.
    """
    listed, _ = listed_groups(cluster)
    there = {each.group_id: each for each in asked_groups(listed) if each.group_id in groups}
    leaders = {
        each.partition: each.leader
        for topic in snapshot.topics
        if topic.topic == CONSUMER_OFFSETS
        for each in topic.partitions
    }
    path = out / ANSWER_FILES[1]
    unfinished = out / f".{ANSWER_FILES[1]}.unfinished"
    try:
        with answer_writer(unfinished, clock, 2) as writer:
            for name, (group_type, partition) in groups.items():
                leader = None if partition is None else leaders.get(partition)
                if name not in there and leader is not None:
                    there[name] = AskedGroup(name, group_type, leader, is_listed=False)
            write_group_answers(cluster, there.values(), writer)
            write_records_since(cluster, reader, snapshot.logs, writer)
        unfinished.rename(path)
    except OSError as error:
        raise WorkspaceError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(FileNotFoundError):
            unfinished.unlink()


def with_second_look(answers: pl.DataFrame, out: Path) -> pl.DataFrame:
    """Return rows of `cluster_answers` with those of the second look at the same snapshot.

    Args:
        answers: Of the first look.
        out: The snapshot.
    """
    later = pl.DataFrame(pl.from_arrow(answers_in_file(str(out / ANSWER_FILES[1]), 2)))
    later = later.with_columns(pl.lit(answers["copy"].first(), pl.String).alias("copy"))
    return pl.concat([answers, later.select(answers.columns).cast(answers.schema)])
