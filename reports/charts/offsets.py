"""Offsets of partitions: those that expire, went, are unread or shared, and what they take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from reports.charts.look import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PINK,
    Row,
    a_row_each,
    data,
    in_order,
    names,
    over_time,
    rows_high,
    svg_of,
    told_apart,
)

# Records of share partitions: their delivery states, and how often they were delivered.

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
    order = in_order([*starts, *rows], "place")
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
        y=a_row_each("place"),
    )
    marks = base.mark_point(filled=True, size=45, opacity=0.9).encode(
        **told_apart("state", words, palette)
    )
    labels = base.mark_text(align="left", dx=6, color=INK, fontSize=11).encode(text="label:N")
    return svg_of(marks + labels, anchor, height=rows_high(rows, "place"))


# What partitions hold: records that nobody has read, and bytes that a cleaner could free.

_PARTS = {"clean": BLUE, "cleanable": ORANGE, "active segment": GREY}


def largest_lags(rows: Sequence[Row], anchor: str) -> str:
    """Return a bar for each partition, with its number.

    Args:
        rows: `place`, `lag`, `label` (the lag in words).
        anchor: Of the figure.
    """
    scale = alt.Scale(padding=0, domainMin=0)
    base = alt.Chart(data(rows)).encode(
        x=alt.X("lag:Q", scale=scale, axis=None),
        y=a_row_each("place"),
    )
    bars = base.mark_bar(color=BLUE, height=11)
    labels = base.mark_text(align="left", dx=4).encode(text="label:N")
    return svg_of(bars + labels, anchor, height=rows_high(rows, "place"), width=190)


def log_bytes(rows: Sequence[Row], anchor: str) -> str:
    """Return a bar a partition, of parts.

    Args:
        rows: `place`, `part` (of `_PARTS`), `bytes`.
        anchor: Of the figure.
    """
    parts = list(_PARTS)
    numbered = [{**row, "order": parts.index(row["part"])} for row in rows]
    chart = (
        alt.Chart(data(numbered))
        .mark_bar(height=12)
        .encode(
            x=alt.X(
                "bytes:Q", stack="zero", axis=alt.Axis(title="bytes", tickCount=4, format="~s")
            ),
            y=a_row_each("place"),
            color=alt.Color("part:N", scale=alt.Scale(domain=parts, range=[*_PARTS.values()])),
            order=alt.Order("order:Q"),
        )
    )
    return svg_of(chart, anchor, height=rows_high(rows, "place"))


RETENTIONS = {
    "would lose now": (PINK, "triangle-up"),
    "would have lost": (ORANGE, "diamond"),
    "cannot tell": (GREY, "cross"),
    "not lost in period": (BLUE, "circle"),
    "safe": (GREEN, "square"),
}
"""Colour and shape of what a retention does: the same on every page, and a loss is never green."""


def expiry_calendar(rows: Sequence[Row], anchor: str) -> str:
    """Return a mark for each time at which offsets expire.

    Args:
        rows: `group`, `at` (ISO 8601), `status`.
        anchor: Of the figure.
    """
    how = told_apart("status", in_order(rows, "status"))
    chart = _marks(rows, size=60).encode(x=over_time(rows), y=a_row_each("group"), **how)
    return svg_of(chart, anchor, height=rows_high(rows, "group"))


def retention_matrix(rows: Sequence[Row], anchor: str) -> str:
    """Return a mark for each group and retention.

    Args:
        rows: `group`, `retention` (in words), `verdict` (of `RETENTIONS`); in the order of
            retentions.
        anchor: Of the figure.
    """
    there = {row["verdict"] for row in rows}
    words = [each for each in RETENTIONS if each in there]
    colours_of, shapes_of = zip(*(RETENTIONS[each] for each in words), strict=True)
    axis = alt.Axis(title=None, orient="top", labelAngle=0, grid=False, ticks=False, domain=False)
    x = alt.X("retention:N", sort=None, axis=axis)
    how: dict[str, Any] = {
        "color": alt.Color("verdict:N", scale=alt.Scale(domain=words, range=list(colours_of))),
        "shape": alt.Shape("verdict:N", scale=alt.Scale(domain=words, range=list(shapes_of))),
    }
    chart = _marks(rows, size=110).encode(x=x, y=a_row_each("group"), **how)
    return svg_of(chart, anchor, height=rows_high(rows, "group"))


def removals_timeline(rows: Sequence[Row], anchor: str) -> str:
    """Return a mark for each removal, a row a cause.

    Args:
        rows: `at` (ISO 8601), `cause`, `verdict`.
        anchor: Of the figure.
    """
    how = told_apart("verdict", in_order(rows, "verdict"))
    chart = _marks(rows, size=55, opacity=0.75).encode(
        x=over_time(rows), y=a_row_each("cause"), **how
    )
    return svg_of(chart, anchor, height=max(80, 2 * rows_high(rows, "cause")))


def _marks(rows: Sequence[Row], size: int, opacity: float = 0.9) -> alt.Chart:
    marks: alt.Chart = alt.Chart(data(rows)).mark_point(filled=True, size=size, opacity=opacity)
    return marks
