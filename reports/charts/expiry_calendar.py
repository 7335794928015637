"""When committed offsets expire, a row a group."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from reports.charts.look import Row, colours, data, names, rows_high, shapes, svg_of, times, utc


def expiry_calendar(rows: Sequence[Row], anchor: str) -> str:
    """Return a mark for each time at which offsets expire.

    Args:
        rows: `group`, `at` (ISO 8601), `status`.
        anchor: Of the figure.
    """
    words = list(dict.fromkeys(row["status"] for row in rows))
    chart = (
        alt.Chart(data(rows))
        .mark_point(filled=True, size=60, opacity=0.9)
        .encode(
            x=alt.X("at:T", scale=utc(), axis=times(row["at"] for row in rows)),
            y=alt.Y("group:N", sort=None, axis=names()),
            color=alt.Color("status:N", scale=colours(words)),
            shape=alt.Shape("status:N", scale=shapes(words)),
        )
    )
    return svg_of(chart, anchor, height=rows_high(rows, "group"))
