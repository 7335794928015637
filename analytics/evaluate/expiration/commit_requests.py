"""The table `commit_requests`: KIP-211's table of OffsetCommit versions, applied to commits.

No record says which version of the request a commit came with. What is stored may rule some out: a
commit with an expire time of its own was asked for so, or is of a release before 2.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.evaluate.contract_table import table_of
from schemas.expiration_rules import ELSEWHERE, EXPIRE_TIME, NO_EXPIRE_TIME, OF_BROKER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from schemas.expiration_rules import CommitRequest, ExpirationRules

    Numbers = NDArray[np.int64]
    Truths = NDArray[np.bool_]

NONE = -1


def commit_requests(
    committed: pa.Table, era: ExpirationRules, retention_ms: int, *, is_assumed: bool
) -> pa.Table:
    """Return the table: a row for each group and version of the request.

    Args:
        committed: The state table `committed_offsets`: `group_id`, `commit_timestamp`,
            `expire_timestamp`.
        era: Whose table it is.
        retention_ms: The broker's retention, in milliseconds.
        is_assumed: Whether that is only assumed.
    """
    groups = committed["group_id"].combine_chunks().dictionary_encode()
    whose = groups.indices.to_numpy().astype(np.int64)
    names = groups.dictionary.to_pylist()
    commit, expire = (_ms(committed[f"{each}_timestamp"]) for each in ("commit", "expire"))
    rows: list[dict[str, Any]] = []
    for asked in era.requests:
        fits = _fits(asked, commit, expire, retention_ms)
        is_known = not (asked.retention == OF_BROKER and is_assumed)
        told = _given(asked, commit, expire, fits, retention_ms)
        rows += _of_groups(asked, names, whose, fits if is_known else None, told, commit)
    order = {name: place for place, name in enumerate(names)}
    rows.sort(key=lambda row: order[row["group_id"]])
    return table_of("commit_requests", [{**row, "rules": era.name} for row in rows])


def _ms(times: pa.ChunkedArray) -> Numbers:
    micros = times.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    found = pc.fill_null(micros, NONE).to_numpy()
    return np.where(found == NONE, NONE, found // 1000)


def _fits(asked: CommitRequest, commit: Numbers, expire: Numbers, retention_ms: int) -> Truths:
    """Return which commits are stored as such a request would have them."""
    has_own: Truths = expire != NONE
    found = has_own
    if asked.stores == ELSEWHERE:
        found = np.zeros(expire.size, np.bool_)
    elif asked.stores == NO_EXPIRE_TIME:
        found = ~has_own
    elif asked.retention == OF_BROKER:
        found = has_own & (expire == commit + retention_ms)
    return found


def _given(
    asked: CommitRequest, commit: Numbers, expire: Numbers, fits: Truths, retention_ms: int
) -> Numbers:
    """Return the expire time that each commit would have been given; `NONE` where not known."""
    if asked.stores != EXPIRE_TIME:
        return np.full(commit.size, NONE)
    if asked.retention == OF_BROKER:
        return np.where(commit == NONE, NONE, commit + retention_ms)
    # What the request said only what is stored can tell.
    return np.where(fits, expire, NONE)


def _of_groups(
    asked: CommitRequest,
    names: list[str],
    whose: Numbers,
    fits: Truths | None,
    told: Numbers,
    commit: Numbers,
) -> Iterator[dict[str, Any]]:
    count = len(names)
    offsets = np.bincount(whose, minlength=count)
    known = told != NONE
    first = np.full(count, np.iinfo(np.int64).max)
    last, longest = np.full(count, NONE), np.full(count, NONE)
    np.minimum.at(first, whose[known], told[known])
    np.maximum.at(last, whose[known], told[known])
    timed = known & (commit != NONE)
    np.maximum.at(longest, whose[timed], (told - commit)[timed])
    fitting = None if fits is None else np.bincount(whose[fits], minlength=count)
    for place, name in enumerate(names):
        yield {
            "group_id": name,
            "request": asked.request,
            "stores": asked.stores,
            "offsets": int(offsets[place]),
            "may_be": None if fitting is None else int(fitting[place]),
            "first_expires_at": int(first[place]) if last[place] != NONE else None,
            "last_expires_at": int(last[place]) if last[place] != NONE else None,
            "longest_retention_ms": int(longest[place]) if longest[place] != NONE else None,
            "about": asked.about,
        }
