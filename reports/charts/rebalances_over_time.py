"""When groups rebalanced, with storms marked."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from reports.charts.look import BLUE, ORANGE, Row, data, names, rows_high, svg_of, times, utc


def rebalances_over_time(rows: Sequence[Row], storms: Sequence[Row], anchor: str) -> str:
    """Return a tick for each rebalance, a row a group, and a band for each storm.

    Args:
        rows: `group`, `at` (ISO 8601).
        storms: `group`, `from`, `to` (ISO 8601).
        anchor: Of the figure.
    """
    y = alt.Y("group:N", sort=list(dict.fromkeys(row["group"] for row in rows)), axis=names())
    ticks = (
        alt.Chart(data(rows))
        .mark_tick(color=BLUE, thickness=2, height=13, opacity=0.8)
        .encode(x=alt.X("at:T", scale=utc(), axis=times(row["at"] for row in rows)), y=y)
    )
    bands = (
        alt.Chart(data(storms))
        .mark_bar(color=ORANGE, opacity=0.3, height=18)
        .encode(x=alt.X("from:T", scale=utc()), x2="to:T", y=y)
    )
    chart = bands + ticks if storms else alt.layer(ticks)
    return svg_of(chart, anchor, height=rows_high(rows, "group"))
