"""How charts look: one size, colours that the colour-blind tell apart, SVG that a page themes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import altair as alt
import vl_convert
from altair.utils.schemapi import disable_debug_mode

# Altair holds each part of a chart against the whole schema of Vega-Lite as soon as it is made: a
# second of an audit, to tell who writes a chart of a mistake in it. Here charts are written once
# and only their rows differ, so a test does it (`tests/unit/reports/test_charts.py`).
disable_debug_mode()

WIDTH: Final = 240
ROW: Final = 21
"""Height of a row of a chart that has a row a name."""

INK: Final = "#1b1f24"
SOFT: Final = "#57606a"
LINE: Final = "#d5d9de"
BLUE: Final = "#0b64b8"
ORANGE: Final = "#c2570c"
GREEN: Final = "#1a7f5a"
PINK: Final = "#b0447f"
YELLOW: Final = "#8a6d00"
GREY: Final = "#7a828c"
SERIES: Final = (BLUE, ORANGE, GREEN, PINK, YELLOW, GREY)
"""Apart in lightness too; the page's stylesheet has a lighter one for each where it is dark."""

SHAPES: Final = ("circle", "triangle-up", "square", "diamond", "cross", "triangle-down")
LONGEST_LABEL: Final = 24
"""Names are given to a chart no longer than this, and told apart."""
_NO_LIMIT: Final = 0
"""Of the pixels of a label: names are cut already (`LONGEST_LABEL`), and Vega cuts characters
beyond U+FFFF in two, which its own measuring of text then refuses."""
_FORMS: Final = (
    (3 * 86_400, "%d %b"),
    (86_400, "%d %b %H:%M"),
    (600, "%H:%M"),
    (10, "%H:%M:%S"),
    (0, "%H:%M:%S.%L"),
)
"""How times are written where they span at least so many seconds."""
_ENLARGED: Final = 1.2
"""Where there is room a chart is larger than it was drawn, by no more than this."""
_SIZE: Final = re.compile(r'<svg [^>]*?width="([\d.]+)"')
_IDS: Final = re.compile(r'\bid="([^"]+)"|url\(#([^)]+)\)')
_ARIA: Final = re.compile(r' (?:aria-[a-z]+|role)="[^"]*"')

Row = Mapping[str, Any]


def data(rows: Sequence[Row]) -> alt.Data:
    """Return rows as a chart takes them."""
    return alt.Data(values=list(rows))  # type: ignore[no-untyped-call]


def svg_of(
    chart: alt.Chart | alt.LayerChart | alt.FacetChart,
    anchor: str,
    *,
    height: int,
    width: int = WIDTH,
    legend_columns: int = 2,
    enlarged: float = _ENLARGED,
) -> str:
    """Return a chart as an SVG that stands alone in a page.

    Args:
        chart: Without a size.
        anchor: Makes its ids differ from those of other charts.
        height: Of what is drawn, in pixels.
        width: Likewise.
        legend_columns: How many words of a legend stand side by side.
        enlarged: So many times as large as it was drawn it is at most, where there is room.
    """
    sized = chart.properties(width=width, height=height, background="transparent")
    drawn = sized.configure(
        font="system-ui, sans-serif",
        # The reader's font may be wider than the one that labels were measured in.
        padding={"left": 26, "right": 22, "top": 4, "bottom": 4},
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            domainColor=LINE,
            gridColor=LINE,
            tickColor=LINE,
            labelColor=SOFT,
            titleColor=SOFT,
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            labelLimit=_NO_LIMIT,
        ),
        legend=alt.LegendConfig(
            orient="top",
            direction="horizontal",
            title=None,
            labelColor=INK,
            labelFontSize=12,
            symbolSize=70,
            labelLimit=_NO_LIMIT,
            columns=legend_columns,
            columnPadding=26,
        ),
        text=alt.MarkConfig(color=INK, fontSize=12),
    )
    svg: str = vl_convert.vegalite_to_svg(drawn.to_dict(validate=False))
    return _alone(svg, anchor, enlarged)


def _alone(svg: str, anchor: str, enlarged: float) -> str:
    """Return an SVG with ids of its own; what it shows is said beside it."""
    names: dict[str, str] = {}

    def renamed(match: re.Match[str]) -> str:
        old = match[1] or match[2]
        new = names.setdefault(old, f"{anchor}-{len(names)}")
        return f'id="{new}"' if match[1] else f"url(#{new})"

    plain = _IDS.sub(renamed, _ARIA.sub("", svg))
    size = _SIZE.search(plain)
    most = round(float(size[1]) * enlarged) if size else WIDTH
    begins = f'<svg aria-hidden="true" focusable="false" style="max-width:{most}px" '
    return plain.replace("<svg ", begins, 1)


def times(moments: Iterable[str]) -> alt.Axis:
    """Return an axis of times in UTC, as exact as their span needs.

    Args:
        moments: What is drawn, ISO 8601.
    """
    known = sorted(map(datetime.fromisoformat, moments))
    span = (known[-1] - known[0]).total_seconds() if known else 0
    form = next(form for least, form in _FORMS if span >= least)
    days = dict.fromkeys(each.date().isoformat() for each in (*known[:1], *known[-1:]))
    return alt.Axis(
        title=None if span >= _FORMS[0][0] else " to ".join(days),
        format=form,
        tickCount=4,
        labelOverlap=True,
        labelSeparation=10,
        grid=True,
    )


def utc() -> alt.Scale:
    """Return the scale of times."""
    return alt.Scale(type="utc")


def over_time(rows: Sequence[Row]) -> alt.X:
    """Return where rows lie by their time, `at` (ISO 8601)."""
    return alt.X("at:T", scale=utc(), axis=times(row["at"] for row in rows))


def names(title: str | None = None) -> alt.Axis:
    """Return an axis of names, a row each."""
    return alt.Axis(title=title, grid=False, ticks=False, domain=False, labelPadding=10)


def a_row_each(name: str) -> alt.Y:
    """Return where rows lie by a name: a row each, in the order in which they come."""
    return alt.Y(f"{name}:N", sort=None, axis=names())


def in_order(rows: Sequence[Row], name: str) -> list[str]:
    """Return the different values of a column, in the order in which they come."""
    return list(dict.fromkeys(row[name] for row in rows))


def told_apart(name: str, words: Sequence[str], palette: Sequence[str] = SERIES) -> dict[str, Any]:
    """Return the colours and shapes of marks by a column of words."""
    return {
        "color": alt.Color(f"{name}:N", scale=colours(words, palette)),
        "shape": alt.Shape(f"{name}:N", scale=shapes(words)),
    }


def colours(words: Sequence[str], palette: Sequence[str] = SERIES) -> alt.Scale:
    """Return the colours of words, in their order."""
    return alt.Scale(
        domain=list(words), range=[palette[n % len(palette)] for n in range(len(words))]
    )


def shapes(words: Sequence[str]) -> alt.Scale:
    """Return the shapes of words, in their order: colour is never the only sign."""
    return alt.Scale(domain=list(words), range=[SHAPES[n % len(SHAPES)] for n in range(len(words))])


def rows_high(rows: Sequence[Row], name: str) -> int:
    """Return the height of a chart that has a row for each different value."""
    return ROW * max(2, len({row[name] for row in rows}))
