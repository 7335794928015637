"""How many partitions members have: the fewest, the mean, the most."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from reports.charts.look import BLUE, Row, colours, data, names, rows_high, shapes, svg_of


def spread_of_partitions(rows: Sequence[Row], anchor: str) -> str:
    """Return a line from the fewest to the most partitions of a member, a row a group.

    Args:
        rows: `group`, `fewest`, `mean`, `most`, `verdict`.
        anchor: Of the figure.
    """
    words = list(dict.fromkeys(row["verdict"] for row in rows))
    base = alt.Chart(data(rows)).encode(y=alt.Y("group:N", sort=None, axis=names()))
    axis = alt.Axis(title="partitions of a member", tickMinStep=1, tickCount=6, format="d")
    lines = base.mark_rule(color=BLUE, strokeWidth=3, opacity=0.45).encode(
        x=alt.X("fewest:Q", axis=axis, scale=alt.Scale(domainMin=0)), x2="most:Q"
    )
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        x="mean:Q",
        color=alt.Color("verdict:N", scale=colours(words)),
        shape=alt.Shape("verdict:N", scale=shapes(words)),
    )
    return svg_of(lines + points, anchor, height=rows_high(rows, "group"))
