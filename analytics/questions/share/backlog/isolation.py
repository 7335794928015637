"""Whether an open transaction keeps records from share groups that read committed ones only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.questions.share.backlog.open_transactions import TRANSACTIONS
from analytics.questions.share.places import places_in
from analytics.questions.share.settings import ISOLATION, READ_COMMITTED

if TYPE_CHECKING:
    from analytics.questions.share.settings import ShareSettings

STABLE: Final = "last_stable_offset"
STABLE_ENDS: Final = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), (STABLE, pa.int64())]
)
"""Where logs end for who reads committed records only, as far as it is known."""
NO_TRANSACTION_LOG: Final = (
    "whether an open transaction holds records back cannot be told: the dump has no transaction "
    "log, and no log of the topic with its producer snapshots"
)


def with_isolation(
    rows: pa.Table,
    settings: ShareSettings,
    transactions: pa.Table | None,
    stable: pa.Table,
) -> pa.Table:
    """Add isolation levels, last stable offsets, and the open transactions.

    Args:
        rows: `group_id`, `topic`, `partition`, `reason`.
        settings: What groups go by.
        transactions: `TRANSACTIONS`; None where the dump has no transaction log.
        stable: `STABLE_ENDS`.
    """
    levels, sources, _ = settings.columns(rows["group_id"], ISOLATION, pa.string())
    rows = rows.append_column("isolation_level", levels)
    rows = rows.append_column("isolation_level_source", sources)
    is_committed = pc.equal(levels, READ_COMMITTED)
    known = stable.filter(pc.is_valid(stable[STABLE]))
    ends = _of_places(known, rows, is_committed)
    rows = rows.append_column(STABLE, known[STABLE].take(ends))
    if transactions is None:
        is_open_question = pc.and_(is_committed, pc.is_null(rows[STABLE]))
        why = pc.if_else(is_open_question, NO_TRANSACTION_LOG, None)
        reason = pc.coalesce(rows["reason"], why)
        rows = rows.set_column(rows.column_names.index("reason"), "reason", reason)
        transactions = TRANSACTIONS.empty_table()
    index = _of_places(transactions, rows, is_committed)
    for name in TRANSACTIONS.names[2:]:
        rows = rows.append_column(name, transactions[name].take(index))
    return rows


def _of_places(known: pa.Table, rows: pa.Table, is_committed: pa.ChunkedArray) -> pa.Array:
    """Return by row the index of what is known of its partition, for who reads committed ones."""
    place = places_in(known, rows, ["topic", "partition"])
    is_there = (place >= 0) & is_committed.to_numpy(zero_copy_only=False)
    return pa.array(np.where(is_there, place, 0), mask=~is_there)
