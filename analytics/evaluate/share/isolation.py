"""Whether an open transaction keeps records from share groups that read committed ones only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.evaluate.share.open_transactions import TRANSACTIONS
from analytics.evaluate.share.places import places_in
from analytics.evaluate.share.settings import ISOLATION, READ_COMMITTED

if TYPE_CHECKING:
    from analytics.evaluate.share.settings import ShareSettings

NO_TRANSACTION_LOG: Final = (
    "whether an open transaction holds records back cannot be told: the dump has no transaction log"
)


def with_isolation(
    rows: pa.Table, settings: ShareSettings, transactions: pa.Table | None
) -> pa.Table:
    """Add isolation levels, and the open transactions that may keep records back.

    Args:
        rows: `group_id`, `topic`, `partition`, `reason`.
        settings: What groups go by.
        transactions: `TRANSACTIONS`; None where the dump has no transaction log.
    """
    levels, sources, _ = settings.columns(rows["group_id"], ISOLATION, pa.string())
    rows = rows.append_column("isolation_level", levels)
    rows = rows.append_column("isolation_level_source", sources)
    is_committed = pc.equal(levels, READ_COMMITTED)
    if transactions is None:
        why = pc.if_else(is_committed, NO_TRANSACTION_LOG, None)
        reason = pc.coalesce(rows["reason"], why)
        rows = rows.set_column(rows.column_names.index("reason"), "reason", reason)
        transactions = TRANSACTIONS.empty_table()
    place = places_in(transactions, rows, ["topic", "partition"])
    is_open = (place >= 0) & is_committed.to_numpy(zero_copy_only=False)
    index = pa.array(np.where(is_open, place, 0), mask=~is_open)
    for name in TRANSACTIONS.names[2:]:
        rows = rows.append_column(name, transactions[name].take(index))
    return rows
