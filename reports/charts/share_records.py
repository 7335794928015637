"""Records of share partitions: their delivery states, and how often they were delivered."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from reports.charts.look import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    Row,
    colours,
    data,
    names,
    rows_high,
    shapes,
    svg_of,
)

COLOURS = {"AVAILABLE": ORANGE, "ACQUIRED": BLUE, "ACKNOWLEDGED": GREEN, "ARCHIVED": GREY}
"""Of delivery states, in the order of a record's life."""
_HEIGHTS = {"AVAILABLE": 14, "ACQUIRED": 14, "ACKNOWLEDGED": 7, "ARCHIVED": 3}
"""What is still to be dealt with is thick, what is done with is thin."""
_NO_ZERO = alt.Scale(zero=False)


def share_window(rows: Sequence[Row], starts: Sequence[Row], anchor: str) -> str:
    """Return a bar for each range of offsets in one state, and where the start offset is.

    Args:
        rows: `place`, `first`, `beyond` (the last offset and one), `state`.
        starts: `place`, `start`.
        anchor: Of the figure.
    """
    words = [each for each in COLOURS if each in {row["state"] for row in rows}]
    words += sorted({row["state"] for row in rows} - set(words))
    domain, palette = words, [COLOURS.get(each, INK) for each in words]
    sized = [{**row, "height": _HEIGHTS.get(row["state"], 10)} for row in rows]
    order = list(dict.fromkeys(row["place"] for row in [*starts, *rows]))
    y = alt.Y("place:N", sort=order, axis=names())
    bars = [
        alt.Chart(data([row for row in sized if row["height"] == high]))
        .mark_bar(height=high)
        .encode(
            x=alt.X("first:Q", axis=alt.Axis(title="offset", tickCount=4), scale=_NO_ZERO),
            x2="beyond:Q",
            y=y,
            color=alt.Color("state:N", scale=alt.Scale(domain=domain, range=palette)),
        )
        for high in sorted({row["height"] for row in sized})
    ]
    marks = (
        alt.Chart(data(starts))
        .mark_tick(color=INK, thickness=2, height=18)
        .encode(x=alt.X("start:Q", scale=_NO_ZERO), y=y)
    )
    return svg_of(alt.layer(*bars, marks), anchor, height=rows_high(starts, "place"))


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
