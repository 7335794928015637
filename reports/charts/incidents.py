"""An incident on one time axis: copies of brokers, elections, and what befell each group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import altair as alt

from reports.charts.look import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PINK,
    ROW,
    SOFT,
    Row,
    data,
    names,
    shapes,
    svg_of,
    times,
    utc,
)

WIDTH: Final = 560
MARKS: Final = {
    "election": INK,
    "last commit that was lost": BLUE,
    "lost": ORANGE,
    "something else happened": PINK,
    "cannot tell": GREY,
    "commits are back where they were": GREEN,
}
"""Colours of what is marked, in the order of the legend."""


def incident_over_time(
    lanes: Sequence[str],
    logs: Sequence[Row],
    marks: Sequence[Row],
    span: tuple[str, str],
    anchor: str,
) -> str:
    """Return a row a copy and a group: bars of what logs hold, and marks of what happened.

    Args:
        lanes: Names of the rows, in order.
        logs: `lane`, `from`, `to` (ISO 8601): the first and the last record of a stretch.
        marks: `lane`, `at` (ISO 8601), `what` (of `MARKS`).
        span: From when to when the axis goes (ISO 8601).
        anchor: Of the figure.
    """
    y = alt.Y("lane:N", sort=None, scale=alt.Scale(domain=list(lanes)), axis=names())
    scale = utc()
    scale.domain = list(span)
    x = alt.X("at:T", scale=scale, axis=times(span))
    kinds = [each for each in MARKS if each in {row["what"] for row in marks}]
    colours = alt.Scale(domain=kinds, range=[MARKS[each] for each in kinds])
    layers: list[alt.Chart] = []
    if logs:
        bars = alt.Chart(data(logs)).mark_bar(color=BLUE, opacity=0.35, height=10, clip=True)
        layers.append(bars.encode(x=alt.X("from:T", scale=scale, axis=times(span)), x2="to:T", y=y))
        # A log of one record is a point: no bar is there to be seen.
        ends = [{"lane": row["lane"], "at": row[end]} for row in logs for end in ("from", "to")]
        points = alt.Chart(data(ends)).mark_tick(color=BLUE, thickness=2, height=14, clip=True)
        layers.append(points.encode(x=x, y=y))
    elections = [row for row in marks if row["what"] == "election"]
    if elections:
        rules = alt.Chart(data(elections)).mark_rule(color=SOFT, strokeDash=[4, 4], clip=True)
        layers.append(rules.encode(x=x))
    shown = alt.Chart(data(marks)).mark_point(filled=True, size=70, opacity=0.9, clip=True)
    layers.append(
        shown.encode(
            x=x,
            y=y,
            color=alt.Color("what:N", scale=colours),
            shape=alt.Shape("what:N", scale=shapes(kinds)),
        )
    )
    chart = alt.layer(*layers)
    return svg_of(chart, anchor, height=ROW * max(2, len(lanes)), width=WIDTH)
