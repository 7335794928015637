"""How often records of share partitions were delivered."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from reports.charts.look import INK, Row, colours, data, names, rows_high, shapes, svg_of
from reports.charts.share_window import COLOURS


def delivery_counts(rows: Sequence[Row], anchor: str) -> str:
    """Return how many records were delivered how often, a row a share partition.

    Args:
        rows: `place`, `deliveries`, `records`, `label` (the records in words), `state`.
        anchor: Of the figure.
    """
    there = {row["state"] for row in rows}
    words = [*(each for each in COLOURS if each in there), *sorted(there - set(COLOURS))]
    palette = [COLOURS.get(each, INK) for each in words]
    axis = alt.Axis(title="times delivered", tickMinStep=1, format="d", grid=False, labelAngle=0)
    base = alt.Chart(data(rows)).encode(
        x=alt.X("deliveries:O", axis=axis),
        xOffset=alt.XOffset("state:N", sort=words),
        y=alt.Y("place:N", sort=None, axis=names()),
    )
    marks = base.mark_point(filled=True, size=45, opacity=0.9).encode(
        color=alt.Color("state:N", scale=colours(words, palette)),
        shape=alt.Shape("state:N", scale=shapes(words)),
    )
    labels = base.mark_text(align="left", dx=6, color=INK, fontSize=11).encode(text="label:N")
    return svg_of(marks + labels, anchor, height=rows_high(rows, "place"))
