"""In which order tables are shown: that of the key of their contract, or the worst first.

A table that was answered in parts is kept in files that are in order each, and not together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from analytics.questions.findings import audited_groups
from analytics.questions.lag.table import WORST_FIRST, worst_first
from analytics.tables.parted_table import Order, by_key
from schemas.evaluation_rules import lag_rules

_ORDERS: Final[Mapping[str, Callable[[], Order]]] = {
    "lag": lambda: Order(WORST_FIRST, partial(worst_first, rules=lag_rules())),
    "audited_groups": lambda: audited_groups.WORST_FIRST,
}
"""Those that are not in the order of their key."""


def order_of(name: str) -> Order:
    """Return the order of a table.

    Raises:
        KeyError: There is no such table.
    """
    return _ORDERS[name]() if name in _ORDERS else by_key(name)
