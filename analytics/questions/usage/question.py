"""What fills the internal topics, and who writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow.compute as pc

from analytics.decode.selection import Selection
from analytics.errors import CannotTellError, InputNotRecognizedError
from analytics.gaps.gap import Gap, gap
from analytics.questions.answer import Answer
from analytics.questions.question import Question
from analytics.questions.usage.bucket_answers import WantedGroups
from analytics.questions.usage.deletions import GROUPS_COLUMNS, OFFSETS_COLUMNS
from analytics.questions.usage.growth import (
    DiskOutlook,
    is_limited,
    not_in_both,
    outlooks,
    usage_growth,
)
from analytics.questions.usage.key_usage import EXPIRED
from analytics.questions.usage.log_settings import LogSettings
from analytics.questions.usage.tables import KnownState, UsageAsked, usage_tables
from analytics.replayed.whole_groups import frame_of
from analytics.tables.buckets import MOST_ROWS
from analytics.tables.parted_table import PartedTable, PartedTables
from analytics.workspace import EVALUATIONS, Workspace
from schemas.usage_rules import usage_rules

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.questions.usage.tables import Usage
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

RECORD_TYPE: Final = "record-type"
SUMS, IDENTITY, PLACED, DISKS, NEAR = "sums", "identity", "placed", "disks", "near_limits"
AT_ONCE: Final = MOST_ROWS
"""About so many records are looked at in one go."""
_EXPIRATION: Final = "offset_expiration"
NOT_THEN: Final = (
    "what the internal topics' files held before the end of the dump it does not say: compaction "
    "has taken records out of them since"
)


@dataclass(frozen=True)
class UsageSettings:
    """What of usage is asked.

    Attributes:
        by: What records and bytes are added up by: record-type, group, partition or topic.
        commit_interval: Seconds between commits to compare with; None is the rules'.
        since: The workspace of an earlier dump of the same brokers: answer with `usage_growth`.
        disk: Bytes that internal topics may take on a broker.
        groups: Only these groups: names, globs or regular expressions; empty is all.
        exclude_groups: Likewise, but not these.
    """

    by: str = RECORD_TYPE
    commit_interval: float | None = None
    since: str | None = None
    disk: int | None = None
    groups: tuple[str, ...] = ()
    exclude_groups: tuple[str, ...] = ()


def usage(state: ReplayedWorkspace, asked: UsageSettings) -> Answer:
    """Return what the internal topics' files hold, and who writes it.

    All of it is of the end of the dump. Its figures are `sums`, `topic_usage` added up; `identity`,
    whether bytes come out even; `placed`, how groups lie on partitions; `disks`, when brokers'
    room is taken; and `near_limits`, the rows of `size_limits` that are near.

    Raises:
        CannotTellError: The state is of an instant before the end of the dump.
        InputNotRecognizedError: The earlier dump has no broker of this one, or is not earlier.
        WorkspaceError: A table cannot be read, or `since` is no workspace.
    """
    if not state.is_end:
        raise CannotTellError(
            f"{state.tables.workspace.location} is as of {state.instant}, and {NOT_THEN}; "
            "--as-of end asks of the whole dump"
        )
    found = _found(state, asked)
    growth, disks, unknown = _growth(asked, state.manifest)
    tables = {name: found.tables.parted(name) for name in found.tables}
    if growth is not None:
        tables["usage_growth"] = PartedTable.held(growth)
    # Bytes come out even of all groups only: rows are chosen when all is known.
    chosen = {name: _of_groups(rows, found.wanted_groups) for name, rows in tables.items()}
    return Answer(
        PartedTables(chosen),
        doubts=(*found.gaps, *unknown),
        summary={
            "file_bytes": found.even.file_bytes,
            "comes_out_even": found.even.holds,
            "offsets_partitions": found.placed.partitions,
            "offsets_partitions_that_fit": found.placed.fits,
            "cleaner_verdicts": dict(usage_rules().cleaner_verdicts),
            **({} if asked.disk is None else {"disk": [asdict(each) for each in disks]}),
        },
        figures={
            SUMS: found.sums,
            IDENTITY: found.even,
            PLACED: found.placed,
            DISKS: disks,
            NEAR: chosen["size_limits"].where(pl.col("is_near")),
        },
        stored_tables=PartedTables(tables),
    )


def _found(state: ReplayedWorkspace, asked: UsageSettings) -> Usage:
    tables = state.tables
    known = KnownState(
        tables.read("partition_leaders"),
        tables.read("topics"),
        map(frame_of, tables.pieces("groups", GROUPS_COLUMNS)),
        map(frame_of, tables.pieces("committed_offsets", OFFSETS_COLUMNS)),
        _expiration(state),
    )
    interval = asked.commit_interval
    return usage_tables(
        state.source,
        state.manifest,
        _settings(state),
        known,
        UsageAsked(
            None if interval is None else round(interval * 1000),
            asked.by,
            Selection(asked.groups, asked.exclude_groups),
            AT_ONCE,
        ),
        runner=state.runner,
    )


def _expiration(state: ReplayedWorkspace) -> Iterable[pl.DataFrame] | None:
    """Return which offsets have expired, where that was evaluated of the same instant."""
    kept = state.manifest.get(EVALUATIONS, {}).get(_EXPIRATION)
    if kept is None or kept["as_of"] != state.as_of or not state.tables.has(_EXPIRATION):
        return None
    columns = ["group_id", "coordinator_partition", "status"]
    is_expired = pc.field("status").isin(list(EXPIRED))
    return map(frame_of, state.tables.pieces(_EXPIRATION, columns, is_expired))


def _settings(state: ReplayedWorkspace) -> LogSettings:
    given = state.settings.from_file
    return LogSettings.of(
        usage_rules(given.thresholds("usage")),
        state.tables.read("configs").to_pylist(),
        {each.node: each.values for each in state.settings.brokers},
        given.values,
    )


def _growth(
    asked: UsageSettings, manifest: Mapping[str, Any]
) -> tuple[pa.Table | None, list[DiskOutlook], list[Gap]]:
    """Return how partitions grew since an earlier dump, and when they take all their room.

    The last are what cannot be told of that.

    Raises:
        InputNotRecognizedError: The earlier dump has no broker of this one, or is not earlier.
        WorkspaceError: It is no workspace.
    """
    if asked.since is None:
        return None, [], []
    earlier = Workspace(asked.since).manifest()
    clusters = [
        {each["cluster_id"] for each in one["copies"] if each["cluster_id"]}
        for one in (earlier, manifest)
    ]
    if all(clusters) and not clusters[0] & clusters[1]:
        raise InputNotRecognizedError(f"--since {asked.since} is of another cluster")
    growth = usage_growth(earlier, manifest)
    if not growth.num_rows:
        names = ", ".join(str(each["name"]) for each in earlier["copies"])
        raise InputNotRecognizedError(
            f"--since {asked.since} has no copy by a name of this dump's that ends earlier "
            f"(it has {names or 'none'}); NAME=PATH names a copy"
        )
    lacking = not_in_both(earlier, manifest)
    unknown = []
    if lacking:
        unknown = [gap("growth_unknown", partitions=tuple(lacking), earlier=asked.since)]
    limited = [
        name
        for name, each in ((f"--since {asked.since}", earlier), ("this workspace", manifest))
        if is_limited(each)
    ]
    if limited:
        unknown += [gap("daily_growth_unknown", workspace=each) for each in limited]
        return growth, [], unknown
    return growth, [] if asked.disk is None else outlooks(growth, asked.disk), unknown


def _of_groups(rows: PartedTable, selection: WantedGroups) -> PartedTable:
    """Return a table with the groups that are wanted, where it is about groups."""
    if selection.is_all or "group_id" not in rows.column_names:
        return rows
    return rows.where(selection.condition)


USAGE: Final = Question(
    name="usage",
    needs=("groups", "configs", "partition_leaders", "topics", "committed_offsets"),
    tables=(
        *("topic_usage", "partition_usage", "log_cleaning", "committers", "size_limits"),
        *("record_growth", "clock_differences", "one_shot_groups", "group_deletions"),
        *("offset_deletions", "coordinator_load", "usage_growth"),
    ),
    settings=UsageSettings,
    answer=usage,
    of_all_groups=True,
)
