"""The table `lag_growth`: how far lags came since an earlier dump."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from datetime import datetime

_KEY: Final = ["group_id", "topic", "partition"]
_HOUR_S: Final = 3600.0
_TIME: Final = pa.timestamp("us", "UTC")
GROWTH = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("from_timestamp", _TIME),
        ("to_timestamp", _TIME),
        ("earlier_lag", pa.int64()),
        ("lag", pa.int64()),
        ("grown", pa.int64()),
        ("grown_per_hour", pa.float64()),
        ("appended", pa.int64()),
        ("committed", pa.int64()),
    ]
)


def lag_growth(earlier: pa.Table, now: pa.Table, begun: datetime, ended: datetime) -> pa.Table:
    """Return how lags grew, the fastest first.

    Args:
        earlier: The table `lag` of an earlier instant.
        now: That of this one.
        begun: The earlier instant.
        ended: This one.

    Returns:
        `GROWTH`: a row for each partition of a group whose lag is known at both; a log that ends
        before where it ended then is another one, and is left out.
    """
    names = ["lag", "log_end_offset", "committed_offset"]
    then = earlier.select([*_KEY, *names]).rename_columns(
        [*_KEY, *(f"earlier_{name}" for name in names)]
    )
    both = now.select([*_KEY, *names]).join(then, _KEY, join_type="inner")
    appended = pc.subtract(both["log_end_offset"], both["earlier_log_end_offset"])
    grown = pc.subtract(both["lag"], both["earlier_lag"])
    is_told = pc.and_(pc.is_valid(grown), pc.fill_null(pc.greater_equal(appended, 0), False))  # noqa: FBT003
    hours = (ended - begun).total_seconds() / _HOUR_S
    columns = {
        **{name: both[name] for name in (*_KEY, "earlier_lag", "lag")},
        "from_timestamp": pa.repeat(pa.scalar(begun, _TIME), both.num_rows),
        "to_timestamp": pa.repeat(pa.scalar(ended, _TIME), both.num_rows),
        "grown": grown,
        "grown_per_hour": pc.divide(pc.cast(grown, pa.float64(), safe=False), hours),
        "appended": appended,
        "committed": pc.subtract(both["committed_offset"], both["earlier_committed_offset"]),
    }
    rows = pa.table([columns[name] for name in GROWTH.names], schema=GROWTH).filter(is_told)
    order = [("grown", "descending"), *((name, "ascending") for name in _KEY)]
    return rows.sort_by(order)
