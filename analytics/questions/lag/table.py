"""The table `lag`: how far behind every partition is that a group reads, and whether it moves."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.lag.burrow.status import COMMITS, StatusFold, status_history
from analytics.questions.lag.burrow.window import NAMES, NOT_EVALUABLE
from analytics.questions.lag.commits.commit_keys import KEY, CommitKeys
from analytics.questions.lag.commits.progress import COLUMNS, ProgressFold
from analytics.questions.lag.first_commits import with_first_commits
from analytics.questions.lag.loss import losses
from analytics.questions.lag.lost_unread import WHOSE, with_lost_unread
from analytics.questions.lag.partition_lag import FROM_START, REMOVED, partition_lag
from analytics.questions.lag.read_partitions import GroupTables, read_partitions, with_owners
from analytics.questions.lag.stable_lag import STABLE, held_back, stable_lags
from analytics.questions.lag.time_lag import time_lags
from analytics.questions.lag.trend import trends
from analytics.questions.lag.verdicts import NO_LOG_START, loss_is_unknown, verdicts
from analytics.questions.marks import marked
from analytics.replayed.end_offset_samples import EndOffsetSamples
from schemas import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from analytics.questions.lag.loss import LogFiles, TopicRetention
    from analytics.replay.log.log_clocks import LogClock
    from schemas.evaluation_rules import LagRules

NO_COMMIT: Final = "no commit is in force"
NO_SAMPLES: Final = "Burrow's rules need end offsets at the times of the commits (--end-offsets)"
UNBELIEVED: Final = "cannot tell Burrow's status: the time of a commit is not believed"
FORGOTTEN: Final = "Burrow forgets a group without a commit for {} s"
MAY_BE_FORGOTTEN: Final = (
    "cannot tell Burrow's status: it forgets a group without a commit for {} s, and the time of "
    "another commit of the group is not believed"
)
SEVERAL_OWNERS: Final = "members own it"
HISTORY: Final = tuple(dict.fromkeys([*COMMITS, *COLUMNS]))
"""The columns of `offset_history` that are read."""

_HISTORY: Final = "status_history"
_NOT_EVALUABLE: Final = NAMES[NOT_EVALUABLE]


@dataclass(frozen=True)
class LagQuestion:
    """What lag is evaluated from.

    Attributes:
        tables: State tables at the instant.
        ends: `topic`, `partition`, `log_start_offset`, `log_end_offset` at the instant.
        samples: Where logs ended, and when.
        as_of: The instant.
        rules: How lag is judged.
        written: When records were written, by whatever clock.
        files: Of the data topics' logs, by topic and partition.
        retention: How long topics keep their records.
        is_end: The instant is the end of the dump.
        stable: Where logs end for readers of committed records (`STABLE`).
        lacking: Groups whose earlier commits may be missing (`WHOSE`).
        clocks: By partition of `__consumer_offsets`, where its clocks were set or wrong.
    """

    tables: GroupTables
    ends: pa.Table
    samples: EndOffsetSamples
    as_of: datetime
    rules: LagRules
    written: EndOffsetSamples = field(default_factory=EndOffsetSamples.none)
    files: Mapping[tuple[str, int], LogFiles] = field(default_factory=dict)
    retention: Mapping[str, TopicRetention] = field(default_factory=dict)
    is_end: bool = True
    stable: pa.Table = field(default_factory=STABLE.empty_table)
    lacking: pa.Table = field(default_factory=WHOSE.empty_table)
    clocks: Mapping[int, LogClock] = field(default_factory=dict)


@dataclass(frozen=True)
class Lag:
    """What was found.

    Attributes:
        rows: The table `lag`, worst verdict first.
        statuses: The table `status_history`.
        moves: The table `offset_moves`.
    """

    rows: pa.Table
    statuses: pa.Table
    moves: pa.Table


def evaluate_lag(asked: LagQuestion, commits: Iterable[pa.Table]) -> Lag:
    """Return how far behind groups are at the instant, and how their status came about.

    Args:
        asked: The question.
        commits: Rows of `offset_history` up to the instant, in the order of the log.
    """
    as_of_ms = round(asked.as_of.timestamp() * 1000)
    keys = CommitKeys()
    fold = StatusFold(asked.rules.burrow, asked.samples, keys, as_of_ms)
    since_ms = as_of_ms - round(asked.rules.trend.minutes * 60_000)
    moved = ProgressFold(keys, asked.rules.jump, asked.samples, since_ms, asked.clocks)
    changes = []
    for each in commits:
        numbers = keys.numbers_of(each)
        moved.add(each, numbers)
        changes.append(fold.add(each, numbers))
    changes.append(fold.finish(as_of_ms))
    statuses = status_history(changes, fold)
    rows, owners = read_partitions(asked.tables)
    rows = partition_lag(rows, asked.ends, asked.tables.topics)
    progress = moved.progress()
    rows = rows.join(progress, list(KEY)).join(_last(statuses), list(KEY))
    rows = _judged(with_owners(rows, owners), asked)
    rows = with_first_commits(rows, progress, asked.lacking)
    rows = with_lost_unread(rows, asked.lacking)
    for found in (
        stable_lags(rows, asked.stable),
        time_lags(rows, asked.samples, asked.written, as_of_ms),
        trends(rows, asked.samples, as_of_ms, asked.rules),
        losses(rows, asked.files, asked.retention, as_of_ms, is_end=asked.is_end),
    ):
        for name, column in _columns(found):
            rows = rows.append_column(name, column)
    place = rows.column_names.index("reason")
    unknown = pc.if_else(loss_is_unknown(rows), NO_LOG_START, pa.scalar(None, pa.string()))
    reason = pc.coalesce(rows["reason"], unknown, held_back(rows))
    rows = rows.set_column(place, "reason", reason)
    rows = rows.append_column("verdict", verdicts(rows, asked.rules, asked.as_of))
    rows = _worst_first(rows, asked.rules)
    # Whether an offset is in force is what its status rests on.
    statuses = marked(statuses, rows, KEY).select([each.name for each in table(_HISTORY).columns])
    return Lag(rows.select([each.name for each in table("lag").columns]), statuses, moved.moves())


def _several_owners(rows: pa.Table) -> pa.ChunkedArray:
    """Say of a partition that several members own how many: none of them is `member_id`."""
    count = pc.list_value_length(rows["owners"])
    text = pc.binary_join_element_wise(pc.cast(count, pa.string()), SEVERAL_OWNERS, " ")
    return pc.if_else(pc.greater(count, 1), text, pa.scalar(None, pa.string()))


def _columns(rows: pa.Table) -> Iterable[tuple[str, pa.ChunkedArray]]:
    return zip(rows.column_names, rows.columns, strict=True)


def _last(statuses: pa.Table) -> pa.Table:
    """Return the status that each partition still has: `status`, `status_since`."""
    still = statuses.filter(pc.is_null(statuses["to_timestamp"]))
    return still.select([*KEY, "status", "from_timestamp"]).rename_columns(
        [*KEY, "status", "status_since"]
    )


def _judged(rows: pa.Table, asked: LagQuestion) -> pa.Table:
    """Say why Burrow's status cannot be told where it cannot; Burrow asks only for commits."""
    is_committed = pc.and_not(pc.is_valid(rows["committed_offset"]), rows["is_other_log"])
    expire = asked.rules.burrow.expire_group
    instant = pa.scalar(asked.as_of, rows["last_commit_at"].type)
    is_unbelieved = pc.fill_null(pc.greater(rows["last_commit_at"], instant), fill_value=False)
    last, has_unbelieved = _newest_of_groups(rows, is_unbelieved)
    oldest = pa.scalar(asked.as_of - timedelta(seconds=expire), last.type)
    is_older = pc.less(last, oldest)
    is_forgotten = pc.and_not(pc.fill_null(is_older, fill_value=False), has_unbelieved)
    # A commit whose time is not believed may have been a short while ago.
    may_be = pc.and_(pc.fill_null(is_older, fill_value=True), has_unbelieved)
    status = pc.if_else(
        pc.and_not(pc.and_not(is_committed, is_forgotten), may_be),
        pc.fill_null(rows["status"], _NOT_EVALUABLE),
        _NOT_EVALUABLE,
    )
    is_untold = pc.equal(status, _NOT_EVALUABLE)
    why = pc.case_when(
        pc.make_struct(pc.invert(is_committed), is_forgotten, is_unbelieved, may_be, is_untold),
        NO_COMMIT,
        FORGOTTEN.format(expire),
        UNBELIEVED,
        MAY_BE_FORGOTTEN.format(expire),
        NO_SAMPLES,
        pa.scalar(None, pa.string()),
    )
    # What the first sample showed may have been so before.
    first = pc.cast(asked.samples.first_times(rows), rows["status_since"].type)
    is_from_first = pc.fill_null(pc.less_equal(rows["status_since"], first), fill_value=True)
    since = pc.if_else(pc.or_(is_untold, is_from_first), None, rows["status_since"])
    for name, column in (
        ("status", status),
        ("status_since", since),
        ("reason", _told_of_removed(pc.coalesce(rows["reason"], _several_owners(rows), why), rows)),
    ):
        rows = rows.set_column(rows.column_names.index(name), name, column)
    return rows


def _newest_of_groups(rows: pa.Table, is_unbelieved: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """Return by row when its group committed last, as far as times are believed, and if all are."""
    at = pc.if_else(is_unbelieved, None, rows["last_commit_at"])
    told = pa.table({"group_id": rows["group_id"], "at": at, "is_unbelieved": is_unbelieved})
    newest = told.group_by("group_id").aggregate([("at", "max"), ("is_unbelieved", "any")])
    place = pc.index_in(rows["group_id"], newest["group_id"].combine_chunks()).combine_chunks()
    of_group = newest.select(["at_max", "is_unbelieved_any"]).combine_chunks().take(place)
    found, has_unbelieved = (each.combine_chunks() for each in of_group.columns)
    return found, pc.fill_null(has_unbelieved, fill_value=False)


def _told_of_removed(reason: pa.ChunkedArray, rows: pa.Table) -> pa.ChunkedArray:
    """Say of partitions whose commits are there and no longer in force that they were removed."""
    was_committed = pc.fill_null(pc.greater(rows["commits"], 0), fill_value=False)
    is_removed = pc.and_(
        pc.fill_null(pc.equal(reason, FROM_START), fill_value=False), was_committed
    )
    return pc.if_else(is_removed, REMOVED, reason)


def _worst_first(rows: pa.Table, rules: LagRules) -> pa.Table:
    rank = pc.index_in(rows["verdict"], pa.array(list(rules.verdicts)))
    order = [("rank", "ascending"), ("lag", "descending")]
    rows = rows.append_column("rank", rank)
    return rows.sort_by([*order, *((name, "ascending") for name in KEY)]).drop_columns(["rank"])
