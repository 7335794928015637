"""What each retention would cost each group: a matrix."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from reports.charts.look import Row, colours, data, names, rows_high, shapes, svg_of

_FINE = ("not lost in period", "safe")


def retention_matrix(rows: Sequence[Row], anchor: str) -> str:
    """Return a mark for each group and retention.

    Args:
        rows: `group`, `retention` (in words), `verdict`; in the order of retentions.
        anchor: Of the figure.
    """
    words = sorted({row["verdict"] for row in rows}, key=lambda each: (each not in _FINE, each))
    axis = alt.Axis(title=None, orient="top", labelAngle=0, grid=False, ticks=False, domain=False)
    chart = (
        alt.Chart(data(rows))
        .mark_point(filled=True, size=110, opacity=0.9)
        .encode(
            x=alt.X("retention:N", sort=None, axis=axis),
            y=alt.Y("group:N", sort=None, axis=names()),
            color=alt.Color("verdict:N", scale=colours(words)),
            shape=alt.Shape("verdict:N", scale=shapes(words)),
        )
    )
    return svg_of(chart, anchor, height=rows_high(rows, "group"))
