"""When committed offsets were removed, and by what."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from reports.charts.look import Row, colours, data, names, rows_high, shapes, svg_of, times, utc


def removals_timeline(rows: Sequence[Row], anchor: str) -> str:
    """Return a mark for each removal, a row a cause.

    Args:
        rows: `at` (ISO 8601), `cause`, `verdict`.
        anchor: Of the figure.
    """
    words = list(dict.fromkeys(row["verdict"] for row in rows))
    chart = (
        alt.Chart(data(rows))
        .mark_point(filled=True, size=55, opacity=0.75)
        .encode(
            x=alt.X("at:T", scale=utc(), axis=times(row["at"] for row in rows)),
            y=alt.Y("cause:N", sort=None, axis=names()),
            color=alt.Color("verdict:N", scale=colours(words)),
            shape=alt.Shape("verdict:N", scale=shapes(words)),
        )
    )
    return svg_of(chart, anchor, height=max(80, 2 * rows_high(rows, "cause")))
