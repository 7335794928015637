"""The table `commit_requests`: KIP-211's table of OffsetCommit versions, applied to commits.

No record says which version of the request a commit came with. What is stored may rule some out: a
commit with an expire time of its own was asked for so, or is of a release before 2.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from analytics.contracts import ARROW_TYPES, arrow_rows, polars_rows
from analytics.engine.part_runs import PartAnswer
from analytics.questions.expiration.retention_settings import ASSUMED
from analytics.replay.log.losses import MARKS, with_marks_of
from analytics.replayed.whole_groups import stored_parts
from analytics.tables.parted_table import BY_GROUP, PartedTable, by_group
from schemas import table
from schemas.expiration_rules import ELSEWHERE, EXPIRE_TIME, NO_EXPIRE_TIME, OF_BROKER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.questions.expiration.retention_settings import Retention
    from analytics.replayed.replayed_workspace import ReplayedWorkspace
    from schemas.expiration_rules import CommitRequest, ExpirationRules

    Numbers = NDArray[np.int64]
    Truths = NDArray[np.bool_]

NONE = -1
_TABLE: Final = "commit_requests"


def commit_requests(
    committed: pa.Table, era: ExpirationRules, retention_ms: int, *, is_assumed: bool
) -> pa.Table:
    """Return the table without marks: a row for each group and version of the request.

    Args:
        committed: The state table `committed_offsets`: `group_id`, `commit_timestamp`,
            `expire_timestamp`.
        era: Whose table it is.
        retention_ms: The broker's retention, in milliseconds.
        is_assumed: Whether that is only assumed.
    """
    groups = committed["group_id"].combine_chunks().dictionary_encode()
    whose = groups.indices.to_numpy().astype(np.int64)
    commit, expire = (_ms(committed[f"{each}_timestamp"]) for each in ("commit", "expire"))
    of_requests = []
    for asked in era.requests:
        fits = _fits(asked, commit, expire, retention_ms)
        is_known = not (asked.retention == OF_BROKER and is_assumed)
        told = _expire_times(asked, commit, expire, fits, retention_ms)
        of_requests.append(
            _of_groups(asked, groups.dictionary, whose, fits if is_known else None, told, commit)
        )
    own = [each for each in table(_TABLE).columns if each.name not in MARKS]
    types = pa.schema([(each.name, ARROW_TYPES[each.type]) for each in own])
    if not of_requests:
        return types.empty_table()
    # A group's requests stand together, the groups in the order in which they were committed for.
    order = np.arange(len(of_requests) * len(groups.dictionary))
    order = order.reshape(len(of_requests), -1).T.ravel()
    found = pa.concat_tables(of_requests).take(pa.array(order))
    rules = pa.repeat(era.name, found.num_rows)
    return found.append_column("rules", rules).select(types.names).cast(types)


def _ms(times: pa.ChunkedArray) -> Numbers:
    micros = times.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    found = pc.fill_null(micros, NONE).to_numpy()
    return np.where(found == NONE, NONE, found // 1000)


def _fits(request: CommitRequest, commit: Numbers, expire: Numbers, retention_ms: int) -> Truths:
    """Return which commits are stored as such a request would have them."""
    has_own: Truths = expire != NONE
    found = has_own
    if request.stores == ELSEWHERE:
        found = np.zeros(expire.size, np.bool_)
    elif request.stores == NO_EXPIRE_TIME:
        found = ~has_own
    elif request.retention == OF_BROKER:
        found = has_own & (expire == commit + retention_ms)
    return found


def _expire_times(
    request: CommitRequest, commit: Numbers, expire: Numbers, fits: Truths, retention_ms: int
) -> Numbers:
    """Return the expire time that each commit would have been given; `NONE` where not known."""
    if request.stores != EXPIRE_TIME:
        return np.full(commit.size, NONE)
    if request.retention == OF_BROKER:
        return np.where(commit == NONE, NONE, commit + retention_ms)
    # What the request said only what is stored can tell.
    return np.where(fits, expire, NONE)


def _of_groups(
    request: CommitRequest,
    names: pa.Array,
    whose: Numbers,
    fits: Truths | None,
    expire_times: Numbers,
    commit: Numbers,
) -> pa.Table:
    count = len(names)
    known = expire_times != NONE
    first = np.full(count, np.iinfo(np.int64).max)
    last, longest = np.full(count, NONE), np.full(count, NONE)
    np.minimum.at(first, whose[known], expire_times[known])
    np.maximum.at(last, whose[known], expire_times[known])
    timed = known & (commit != NONE)
    np.maximum.at(longest, whose[timed], (expire_times - commit)[timed])
    if fits is None:
        fitting = pa.nulls(count, pa.int64())
    else:
        fitting = pa.array(np.bincount(whose[fits], minlength=count))
    return pa.table(
        {
            "group_id": names,
            "request": pa.repeat(request.request, count),
            "stores": pa.repeat(request.stores, count),
            "offsets": pa.array(np.bincount(whose, minlength=count)),
            "may_be": fitting,
            "first_expires_at": _times(first, last),
            "last_expires_at": _times(last, last),
            "longest_retention_ms": pa.array(longest, mask=longest == NONE),
            "about": pa.repeat(request.about, count),
        }
    )


def _times(milliseconds: Numbers, last: Numbers) -> pa.Array:
    """Return times, null where a group has none."""
    has_none = last == NONE
    micros = np.where(has_none, 0, milliseconds) * 1000
    return pa.array(micros, mask=has_none).view(ARROW_TYPES["timestamp"])


_OF_REQUESTS = ("group_id", "commit_timestamp", "expire_timestamp")
_NEEDED: Final = {
    "committed_offsets": (*_OF_REQUESTS, "missing"),
    "groups": ("group_id", "missing"),
}
"""What is read of each group."""
REQUESTS: Final = "commit_requests"
AT_ONCE: Final = 1_000_000
"""So many rows of whole groups are looked at together, about."""


def requests_of_groups(
    state: ReplayedWorkspace, era: ExpirationRules, retention: Retention
) -> Mapping[str, PartedTable]:
    """Return `commit_requests` of all groups, by its name."""
    is_assumed = retention.otherwise.source == ASSUMED
    work = partial(requests_of_part, era, retention.otherwise.retention_ms, is_assumed)
    runner = state.runner
    with stored_parts(state.tables, _NEEDED, AT_ONCE, runner.folder) as parts:
        return runner.run(work, parts, {REQUESTS: BY_GROUP}).tables


def requests_of_part(
    era: ExpirationRules,
    retention_ms: int,
    is_assumed: bool,  # noqa: FBT001 - sent to tasks
    rows: Mapping[str, pl.DataFrame],
) -> PartAnswer:
    """Return `commit_requests` of some whole groups.

    Args:
        era: Whose table it is.
        retention_ms: The broker's retention, in milliseconds.
        is_assumed: Whether that is only assumed.
        rows: `_NEEDED` of theirs.
    """
    committed = arrow_rows(rows["committed_offsets"].select(_OF_REQUESTS))
    requests = commit_requests(committed, era, retention_ms, is_assumed=is_assumed)
    of_groups = pl.concat(each.select("group_id", "missing") for each in rows.values())
    found = with_marks_of(polars_rows(requests), of_groups, ["group_id"])
    return PartAnswer({REQUESTS: by_group(found)})
