"""Members of groups: how many there were, when they rebalanced, how even their partitions are."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from reports.charts.look import (
    BLUE,
    ORANGE,
    Row,
    colours,
    data,
    names,
    rows_high,
    shapes,
    svg_of,
    times,
    utc,
)

_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [3, 1])


def members_over_time(rows: Sequence[Row], anchor: str) -> str:
    """Return a step line a group.

    Args:
        rows: `group`, `at` (ISO 8601), `members`.
        anchor: Of the figure.
    """
    words = list(dict.fromkeys(row["group"] for row in rows))
    dashes = alt.Scale(domain=words, range=[_DASHES[n % len(_DASHES)] for n in range(len(words))])
    chart = (
        alt.Chart(data(rows))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=alt.X("at:T", scale=utc(), axis=times(row["at"] for row in rows)),
            y=alt.Y("members:Q", axis=alt.Axis(title="members", tickMinStep=1, format="d")),
            color=alt.Color("group:N", scale=colours(words)),
            strokeDash=alt.StrokeDash("group:N", scale=dashes),
        )
    )
    return svg_of(chart, anchor, height=170)


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
