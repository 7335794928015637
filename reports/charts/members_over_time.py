"""How many members groups had."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from reports.charts.look import Row, colours, data, svg_of, times, utc

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
