"""What a partition of an internal topic holds: clean, cleanable, and in the active segment."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from reports.charts.look import BLUE, GREY, ORANGE, Row, data, names, rows_high, svg_of

PARTS = {"clean": BLUE, "cleanable": ORANGE, "active segment": GREY}


def log_bytes(rows: Sequence[Row], anchor: str) -> str:
    """Return a bar a partition, of parts.

    Args:
        rows: `place`, `part` (of `PARTS`), `bytes`.
        anchor: Of the figure.
    """
    parts = list(PARTS)
    numbered = [{**row, "order": parts.index(row["part"])} for row in rows]
    chart = (
        alt.Chart(data(numbered))
        .mark_bar(height=12)
        .encode(
            x=alt.X(
                "bytes:Q", stack="zero", axis=alt.Axis(title="bytes", tickCount=4, format="~s")
            ),
            y=alt.Y("place:N", sort=None, axis=names()),
            color=alt.Color("part:N", scale=alt.Scale(domain=parts, range=[*PARTS.values()])),
            order=alt.Order("order:Q"),
        )
    )
    return svg_of(chart, anchor, height=rows_high(rows, "place"))
