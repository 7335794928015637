"""When committed offsets expire, what another retention would cost, and what was removed how."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from reports.charts.look import Row, colours, data, names, rows_high, shapes, svg_of, times, utc

_FINE = ("not lost in period", "safe")


def expiry_calendar(rows: Sequence[Row], anchor: str) -> str:
    """Return a mark for each time at which offsets expire.

    Args:
        rows: `group`, `at` (ISO 8601), `status`.
        anchor: Of the figure.
    """
    words = list(dict.fromkeys(row["status"] for row in rows))
    chart = (
        alt.Chart(data(rows))
        .mark_point(filled=True, size=60, opacity=0.9)
        .encode(
            x=alt.X("at:T", scale=utc(), axis=times(row["at"] for row in rows)),
            y=alt.Y("group:N", sort=None, axis=names()),
            color=alt.Color("status:N", scale=colours(words)),
            shape=alt.Shape("status:N", scale=shapes(words)),
        )
    )
    return svg_of(chart, anchor, height=rows_high(rows, "group"))


def retention_matrix(rows: Sequence[Row], anchor: str) -> str:
    """Return a mark for each group and retention.

    Args:
        rows: `group`, `retention` (in words), `verdict`; in the order of retentions.
        anchor: Of the figure.
    """
    words = sorted({row["verdict"] for row in rows}, key=lambda each: (each not in _FINE, each))
    axis = alt.Axis(title=None, orient="top", labelAngle=0, grid=False, ticks=False, domain=False)
    chart = (
        alt.Chart(data(rows))
        .mark_point(filled=True, size=110, opacity=0.9)
        .encode(
            x=alt.X("retention:N", sort=None, axis=axis),
            y=alt.Y("group:N", sort=None, axis=names()),
            color=alt.Color("verdict:N", scale=colours(words)),
            shape=alt.Shape("verdict:N", scale=shapes(words)),
        )
    )
    return svg_of(chart, anchor, height=rows_high(rows, "group"))


def removals_timeline(rows: Sequence[Row], anchor: str) -> str:
    """Return a mark for each removal, a row a cause.

    Args:
        rows: `at` (ISO 8601), `cause`, `verdict`.
        anchor: Of the figure.
    """
    words = list(dict.fromkeys(row["verdict"] for row in rows))
    chart = (
        alt.Chart(data(rows))
        .mark_point(filled=True, size=55, opacity=0.75)
        .encode(
            x=alt.X("at:T", scale=utc(), axis=times(row["at"] for row in rows)),
            y=alt.Y("cause:N", sort=None, axis=names()),
            color=alt.Color("verdict:N", scale=colours(words)),
            shape=alt.Shape("verdict:N", scale=shapes(words)),
        )
    )
    return svg_of(chart, anchor, height=max(80, 2 * rows_high(rows, "cause")))
