"""In which order tables are shown: that of the key of their contract, or the worst first.

A table that was answered in parts is kept in files that are in order each, and not together.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from analytics.questions.balance.balance_tables import ORDERS as OF_BALANCE
from analytics.questions.expiration.group_endings import WORST_FIRST as OF_ENDINGS
from analytics.questions.expiration.tables import ENDINGS
from analytics.questions.findings import audited_groups, found
from analytics.questions.lag.question import BY_PARTITION, FASTEST_FIRST, GROWTH
from analytics.questions.lag.table import WORST_FIRST, worst_first
from analytics.questions.rebalances.rebalance_tables import ORDERS as OF_REBALANCES
from analytics.questions.restore.plan import PLAN_ORDER
from analytics.questions.share.question import ORDERS as OF_SHARE
from analytics.questions.timeline import verdicts
from analytics.questions.usage.bucket_answers import ORDERS as OF_USAGE
from analytics.tables.parted_table import BY_GROUP, Order, by_key
from schemas.evaluation_rules import lag_rules

_ORDERS: Final[Mapping[str, Order]] = {
    **OF_BALANCE,
    **OF_REBALANCES,
    **OF_SHARE,
    **OF_USAGE,
    "commit_requests": BY_GROUP,
    ENDINGS: OF_ENDINGS,
    "lag": Order(WORST_FIRST, partial(worst_first, rules=lag_rules())),
    GROWTH: FASTEST_FIRST,
    "status_history": BY_PARTITION,
    "offset_moves": BY_PARTITION,
    "audited_groups": audited_groups.WORST_FIRST,
    "findings": found.WORST_FIRST,
    "restore_plan": PLAN_ORDER,
    "offset_verdicts": verdicts.WORST_FIRST,
}
"""Those that are not in the order of their key."""


def order_of(name: str) -> Order:
    """Return the order of a table.

    Raises:
        KeyError: There is no such table.
    """
    return _ORDERS[name] if name in _ORDERS else by_key(name)
