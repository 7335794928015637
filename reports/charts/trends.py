"""How numbers of audits changed from run to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import altair as alt

from reports.charts.look import (
    LINE,
    SERIES,
    Row,
    colours,
    data,
    in_order,
    over_time,
    shapes,
    svg_of,
)

_HEIGHT: Final = 150
_WIDTH: Final = 330
_NOT_EXACT: Final = "is_bound"


def run_by_run(rows: Sequence[Row], anchor: str) -> str:
    """Return a line for each series, with a point for each run; a hollow one is only a bound.

    Args:
        rows: `at` (ISO 8601), `value`, `series`, `is_bound`.
        anchor: Of the figure.
    """
    words = in_order(rows, "series")
    axis = alt.Axis(title=None, tickCount=4, format="~s", gridColor=LINE)
    legend = None if len(words) == 1 else alt.Undefined
    color = alt.Color("series:N", scale=colours(words), legend=legend)
    base = alt.Chart(data(rows)).encode(
        x=over_time(rows), y=alt.Y("value:Q", axis=axis, scale=alt.Scale(domainMin=0))
    )
    lines = base.mark_line(strokeWidth=2).encode(color=color)
    shape = alt.Shape("series:N", scale=shapes(words), legend=legend)
    layers: list[alt.Chart] = [lines]
    for is_bound, filled in ((False, True), (True, False)):
        some = [row for row in rows if row[_NOT_EXACT] is is_bound]
        if some:
            points = base.properties(data=data(some)).mark_point(
                filled=filled, size=60, opacity=1, strokeWidth=2
            )
            layers.append(points.encode(color=color, shape=shape))
    return svg_of(alt.layer(*layers), anchor, height=_HEIGHT, width=_WIDTH)


MOST_SERIES: Final = len(SERIES)
"""So many series are told apart."""
