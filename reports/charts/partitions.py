"""What partitions hold: records that nobody has read, and bytes that a cleaner could free."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from reports.charts.look import BLUE, GREY, ORANGE, Row, data, names, rows_high, svg_of

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
        y=alt.Y("place:N", sort=None, axis=names()),
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
            y=alt.Y("place:N", sort=None, axis=names()),
            color=alt.Color("part:N", scale=alt.Scale(domain=parts, range=[*_PARTS.values()])),
            order=alt.Order("order:Q"),
        )
    )
    return svg_of(chart, anchor, height=rows_high(rows, "place"))
