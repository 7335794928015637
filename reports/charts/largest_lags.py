"""The partitions that are furthest behind."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from reports.charts.look import BLUE, Row, data, names, rows_high, svg_of


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
