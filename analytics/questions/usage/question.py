"""What fills the internal topics, and who writes it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow.compute as pc

from analytics.contracts import table_of
from analytics.decode.selection import Selection
from analytics.errors import CannotTellError, InputNotRecognizedError
from analytics.gaps.gap import Gap, gap
from analytics.questions.question import Answer, Question, check_choice
from analytics.questions.usage.bucket_answers import WantedGroups
from analytics.questions.usage.cleaner import LogSettings, milliseconds
from analytics.questions.usage.deletions import GROUPS_COLUMNS, OFFSETS_COLUMNS
from analytics.questions.usage.key_usage import EXPIRED
from analytics.questions.usage.sums import BY
from analytics.questions.usage.tables import KnownState, UsageAsked, usage_tables
from analytics.replay.dump.times import end_of
from analytics.replay.dump.times import milliseconds as milliseconds_of
from analytics.replayed.group_rows import StoredGroups
from analytics.tables.buckets import MOST_ROWS
from analytics.tables.parted_table import PartedTable, PartedTables
from analytics.workspace import Workspace
from schemas.manifest import cluster_ids
from schemas.usage_rules import usage_rules

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.questions.usage.tables import Usage
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.manifest import Manifest, PartitionEntry

# The table `usage_growth`: how internal partitions grew since an earlier dump.

DAY_MS: Final = 86_400_000
"""Options of decoding with which a manifest has some of a copy's logs only."""


@dataclass(frozen=True)
class DiskOutlook:
    """When the internal topics of a broker's copy take all the room they are given.

    Attributes:
        copy: The copy.
        file_bytes: What they take now.
        bytes_per_day: How much more a day.
        full_at_ms: When they take all of it; None where they do not grow.
        is_full: They take it all already.
    """

    copy: str
    file_bytes: int
    bytes_per_day: float
    full_at_ms: int | None
    is_full: bool


def usage_growth(earlier: Manifest, now: Manifest) -> pa.Table:
    """Return how every copy that both dumps have grew, the fastest first.

    A partition that the earlier dump lacks is new only where all its records are of later; of the
    others `not_in_both` tells. Where one of the two is of some partitions only (`is_limited`),
    nothing tells when its copies end: of what both have sizes are told, without times and rates.

    Args:
        earlier: The manifest of the earlier decode run.
        now: That of this one.
    """
    before, after = _copies(earlier), _copies(now)
    has_ends = not (is_limited(earlier) or is_limited(now))
    # Else the end of what both have is held against itself.
    common = None if has_ends else before.keys() & after.keys()
    starts, ends = _end(earlier, common), _end(now, common)
    found = []
    for key, row in after.items():
        copy, topic, partition = key
        start, end = starts.get(copy), ends.get(copy)
        if start is None or end is None or end < start or (has_ends and end == start):
            continue
        old = before.get(key)
        if old is None and (not has_ends or not _began_after(row, start)):
            continue
        days = (end - start) / DAY_MS if has_ends else None
        size, was = _size(row), _size(old) if old else 0
        ended = (old["end_offset"] or 0) if old else 0
        written = (row["end_offset"] or 0) - ended
        appended = written if written >= 0 else None
        found.append(
            {
                "topic": topic,
                "partition": partition,
                "copy": copy,
                "from_timestamp": start if has_ends else None,
                "to_timestamp": end if has_ends else None,
                "earlier_bytes": was,
                "file_bytes": size,
                "bytes_per_day": None if days is None else round((size - was) / days),
                "appended_records": appended,
                "appended_per_day": None
                if appended is None or days is None
                else round(appended / days),
            }
        )
    keys = [(name, "ascending") for name in ("topic", "partition", "copy")]
    return table_of("usage_growth", found).sort_by([("bytes_per_day", "descending"), *keys])


def not_in_both(earlier: Manifest, now: Manifest) -> list[str]:
    """Return the partitions of which nobody can tell how they grew, by their names.

    The earlier dump has their broker and lacks them, and they have records from before its end; or
    nothing tells when it ends.
    """
    before, ends = _copies(earlier), _end(earlier)
    has_end = not is_limited(earlier)
    return sorted(
        f"{topic}-{partition}"
        for key, row in _copies(now).items()
        for copy, topic, partition in [key]
        if key not in before and copy in ends and not (has_end and _began_after(row, ends[copy]))
    )


def is_limited(manifest: Manifest) -> bool:
    """Return whether a decode run was told to read some internal partitions only."""
    options = manifest["options"]
    return bool(options.get("topics") or options.get("partitions"))


def outlooks(growth: pa.Table, room_bytes: int) -> list[DiskOutlook]:
    """Return when each copy takes all the room, at the rate at which it grew.

    Args:
        growth: The table `usage_growth`, with rates.
        room_bytes: What the internal topics may take on a broker.
    """
    rows = growth.to_pylist()
    found = []
    for copy in sorted({row["copy"] for row in rows}):
        here = [row for row in rows if row["copy"] == copy]
        size = sum(row["file_bytes"] for row in here)
        rate = float(sum(row["bytes_per_day"] for row in here))
        end = round(here[0]["to_timestamp"].timestamp() * 1000)
        left = room_bytes - size
        full = end + round(left / rate * DAY_MS) if left > 0 and rate > 0 else None
        found.append(DiskOutlook(copy, size, rate, full, left <= 0))
    return found


def _copies(manifest: Manifest) -> dict[tuple[str, str, int], PartitionEntry]:
    return {
        (each["copy"], each["topic"], each["partition"]): each
        for each in manifest["partitions"]
        if each["copy"] is not None
    }


def _began_after(row: PartitionEntry, time_ms: int) -> bool:
    """Return whether a log is whole from its start and has no record from before a time."""
    first = milliseconds(row.get("first_timestamp"))
    is_whole = not row.get("complete_from") and not row.get("log_start_offset")
    return is_whole and (row["end_offset"] == 0 or (first is not None and first > time_ms))


def _size(row: PartitionEntry) -> int:
    return sum(each["size"] for each in row["files"])


def _end(manifest: Manifest, of: Collection[tuple[str, str, int]] | None = None) -> dict[str, int]:
    """Return the time of the last record of each copy, of those that are believed.

    Args:
        manifest: Of a decode run.
        of: Of these logs alone; None is all of them.
    """
    believed = end_of(manifest).time
    ends: dict[str, int] = {}
    for key, each in _copies(manifest).items():
        if believed is None or (of is not None and key not in of):
            continue
        stretches = each.get("stretches") or ()
        times = [milliseconds(each["last_timestamp"]), *(one["last_ms"] for one in stretches)]
        latest = milliseconds_of(believed)
        last = max((at for at in times if at is not None and at <= latest), default=None)
        if last is not None:
            ends[key[0]] = max(last, ends.get(key[0], last))
    return ends


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

    def __post_init__(self) -> None:
        """Refuse what nothing is added up by.

        Raises:
            SettingRefusedError: `by` is no such word.
        """
        check_choice("by", self.by, BY)


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
        statements=tuple(_statements(state.manifest)),
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


def _statements(manifest: Manifest) -> Iterator[str]:
    for each in manifest.get("snapshots", ()):
        if since := each.get("resumed_from"):
            yield (
                f"snapshot {each['copy']} goes on from that of {since}: its files have what the "
                "cleaner has removed from the brokers' logs since"
            )


def _found(state: ReplayedWorkspace, asked: UsageSettings) -> Usage:
    tables = state.tables
    known = KnownState(
        tables.read("partition_leaders"),
        tables.read("topics"),
        StoredGroups(tables, "groups", GROUPS_COLUMNS),
        StoredGroups(tables, "committed_offsets", OFFSETS_COLUMNS),
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


def _expiration(state: ReplayedWorkspace) -> StoredGroups | None:
    """Return which offsets have expired, where that was evaluated of the same instant."""
    kept = state.manifest.get("evaluations", {}).get(_EXPIRATION)
    if kept is None or kept["as_of"] != state.as_of or not state.tables.has(_EXPIRATION):
        return None
    columns = ["group_id", "coordinator_partition", "status"]
    is_expired = pc.field("status").isin(list(EXPIRED))
    return StoredGroups(state.tables, _EXPIRATION, columns, is_expired)


def _settings(state: ReplayedWorkspace) -> LogSettings:
    given = state.settings.from_file
    return LogSettings.of(
        usage_rules(given.thresholds("usage")),
        state.tables.read("configs").to_pylist(),
        {each.node: each.values for each in state.settings.brokers},
        given.values,
    )


def _growth(
    asked: UsageSettings, manifest: Manifest
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
    before, now = (set(cluster_ids(one["copies"])) for one in (earlier, manifest))
    if before and now and not before & now:
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
