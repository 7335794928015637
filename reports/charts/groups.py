"""Groups over time: members, who owned partitions, and where committed offsets were.

A line as small as a word: how something went on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from reports.charts.look import (
    BLUE,
    INK,
    ORANGE,
    SOFT,
    Row,
    a_row_each,
    colours,
    data,
    in_order,
    names,
    over_time,
    rows_high,
    shapes,
    svg_of,
    times,
    told_apart,
    utc,
)

_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [3, 1], [10, 2])


def _dashed(name: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the colours and dashes of lines by a column of names."""
    words = in_order(rows, name)
    dashes = alt.Scale(domain=words, range=[_DASHES[n % len(_DASHES)] for n in range(len(words))])
    return {
        "color": alt.Color(f"{name}:N", scale=colours(words)),
        "strokeDash": alt.StrokeDash(f"{name}:N", scale=dashes),
    }


# Of many groups: how many members there were, when they rebalanced, how even their partitions are.


def members_over_time(rows: Sequence[Row], anchor: str) -> str:
    """Return a step line a group.

    Args:
        rows: `group`, `at` (ISO 8601), `members`.
        anchor: Of the figure.
    """
    axis = alt.Axis(title="members", tickMinStep=1, format="d")
    return _steps(rows, alt.Y("members:Q", axis=axis), anchor)


def records_committed(rows: Sequence[Row], anchor: str) -> str:
    """Return a step line a group: how many records its commits have passed.

    Args:
        rows: `group`, `at` (ISO 8601), `records`.
        anchor: Of the figure.
    """
    axis = alt.Axis(title="records", tickCount=5, format="~s")
    return _steps(rows, alt.Y("records:Q", axis=axis), anchor)


def lags_over_time(rows: Sequence[Row], anchor: str) -> str:
    """Return a line for each partition of a group: how far behind it was where the end is known.

    Args:
        rows: `group` (and partition), `at` (ISO 8601), `lag`.
        anchor: Of the figure.
    """
    chart = (
        alt.Chart(data(rows))
        .mark_line(point=True, strokeWidth=2)
        .encode(
            x=over_time(rows),
            y=alt.Y("lag:Q", axis=alt.Axis(title="records", tickCount=5, format="~s")),
            **_dashed("group", rows),
        )
    )
    return svg_of(chart, anchor, height=170)


def _steps(rows: Sequence[Row], y: alt.Y, anchor: str) -> str:
    chart = (
        alt.Chart(data(rows))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(x=over_time(rows), y=y, **_dashed("group", rows))
    )
    return svg_of(chart, anchor, height=170)


def rebalances_over_time(rows: Sequence[Row], storms: Sequence[Row], anchor: str) -> str:
    """Return a tick for each rebalance, a row a group, and a band for each storm.

    Args:
        rows: `group`, `at` (ISO 8601).
        storms: `group`, `from`, `to` (ISO 8601).
        anchor: Of the figure.
    """
    y = alt.Y("group:N", sort=in_order(rows, "group"), axis=names())
    ticks = (
        alt.Chart(data(rows))
        .mark_tick(color=BLUE, thickness=2, height=13, opacity=0.8)
        .encode(x=over_time(rows), y=y)
    )
    bands = (
        alt.Chart(data(storms))
        .mark_bar(color=ORANGE, opacity=0.3, height=18)
        .encode(x=alt.X("from:T", scale=utc()), x2="to:T", y=y)
    )
    chart = bands + ticks if storms else alt.layer(ticks)
    return svg_of(chart, anchor, height=rows_high(rows, "group"))


def spread_of_partitions(rows: Sequence[Row], anchor: str) -> str:
    """Return a line from the fewest to the most partitions of a member, a row a group.

    Args:
        rows: `group`, `fewest`, `mean`, `most`, `verdict`.
        anchor: Of the figure.
    """
    words = in_order(rows, "verdict")
    base = alt.Chart(data(rows)).encode(y=a_row_each("group"))
    axis = alt.Axis(title="partitions of a member", tickMinStep=1, tickCount=6, format="d")
    lines = base.mark_rule(color=BLUE, strokeWidth=3, opacity=0.45).encode(
        x=alt.X("fewest:Q", axis=axis, scale=alt.Scale(domainMin=0)), x2="most:Q"
    )
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        x="mean:Q",
        **told_apart("verdict", words),
    )
    return svg_of(lines + points, anchor, height=rows_high(rows, "group"))


_BAND = 6


def committed_offsets(
    rows: Sequence[Row],
    marks: Sequence[Row],
    elections: Sequence[Row],
    lost: Sequence[Row],
    anchor: str,
) -> str:
    """Return a step line a partition, marks on it, and a line down for each election.

    What a line of the log that did not survive had is dashed, beside the one that did; a partition
    of which one value is known is a point.

    Args:
        rows: `place`, `at` (ISO 8601), `offset`.
        marks: `at`, `offset`, `what`.
        elections: `at`.
        lost: `offset`, `from` and `to` (ISO 8601), in force on a line that was lost.
        anchor: Of the figure.
    """
    ends = [{"at": row[end], "offset": row["offset"]} for row in lost for end in ("from", "to")]
    x = over_time([*rows, *ends])
    y = alt.Y(
        "offset:Q",
        axis=alt.Axis(title="committed offset", tickCount=5, format="~s"),
        scale=alt.Scale(zero=False),
    )
    dashed = _dashed("place", rows)
    lines = (
        alt.Chart(data(rows))
        .mark_line(interpolate="step-after", strokeWidth=1.8)
        .encode(x=x, y=y, **dashed)
    )
    layers: list[alt.Chart] = []
    if elections:
        layers.append(
            alt.Chart(data(elections)).mark_rule(color=SOFT, strokeDash=[4, 4]).encode(x=x)
        )
    if lost:
        was = alt.Chart(data(lost)).mark_rule(color=ORANGE, strokeDash=[2, 3], strokeWidth=2)
        from_ = alt.X("from:T", scale=utc(), axis=times(row["at"] for row in [*rows, *ends]))
        layers.append(was.encode(x=from_, x2="to:T", y=y))
    layers.append(lines)
    if single := _single(rows):
        points = alt.Chart(data(single)).mark_point(filled=True, size=40, opacity=1)
        layers.append(points.encode(x=x, y=y, color=dashed["color"]))
    marks = [
        *marks,
        *({"at": row["from"], "offset": row["offset"], "what": "on the lost line"} for row in lost),
    ]
    if marks:
        kinds = in_order(marks, "what")
        layers.append(
            alt.Chart(data(marks))
            .mark_point(filled=True, size=80, color=INK, opacity=1)
            .encode(
                x=x,
                y=y,
                shape=alt.Shape("what:N", scale=shapes(kinds), legend=alt.Legend(orient="bottom")),
            )
        )
    return svg_of(alt.layer(*layers), anchor, height=190)


def _single(rows: Sequence[Row]) -> list[Row]:
    """Return the first row of each place that has one value: a level line shows no commit."""
    values: dict[str, set[int]] = {}
    for row in rows:
        values.setdefault(row["place"], set()).add(row["offset"])
    first = {row["place"]: row for row in reversed(rows)}
    return [row for name, row in first.items() if len(values[name]) == 1]


def ownership(rows: Sequence[Row], anchor: str) -> str:
    """Return a band for each partition while a member had it, a row a member.

    Args:
        rows: `member`, `partition` (its name), `from`, `to` (ISO 8601).
        anchor: Of the figure.
    """
    y = a_row_each("member")
    bands = (
        alt.Chart(data(rows))
        .mark_bar(color=BLUE, opacity=0.75)
        .encode(
            x=alt.X(
                "from:T",
                scale=utc(),
                axis=times(row[end] for row in rows for end in ("from", "to")),
            ),
            x2="to:T",
            y=y,
            yOffset=alt.YOffset("partition:N", sort=None),
        )
    )
    members = len({row["member"] for row in rows})
    partitions = len({row["partition"] for row in rows})
    height = min(420, members * max(22, _BAND * partitions))
    return svg_of(bands, anchor, height=height)


WIDTH, HEIGHT, _PAD, _MOST_POINTS_OF_LINE = 96, 20, 2, 48


def sparkline(points: Sequence[tuple[int, int]]) -> str:
    """Return a step line through points, as an SVG without a text.

    Args:
        points: Times and values, in the order of times.
    """
    few = _points_of(points)
    left, right = few[0][0], few[-1][0]
    low, high = min(y for _, y in few), max(y for _, y in few)
    path = ""
    for number, (x, y) in enumerate(few):
        across = round(_PAD + _share(x, left, right) * (WIDTH - 2 * _PAD), 1)
        down = round(HEIGHT - _PAD - _share(y, low, high) * (HEIGHT - 2 * _PAD), 1)
        path += f"M{across:g} {down:g}" if not number else f"H{across:g}V{down:g}"
    return (
        f'<svg class="spark" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'aria-hidden="true" focusable="false"><path d="{path}"/></svg>'
    )


def _share(value: int, low: int, high: int) -> float:
    return (value - low) / (high - low) if high > low else 0.5


def _points_of(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return at most `_MOST_POINTS_OF_LINE`: the first, last, lowest and highest among them."""
    if len(points) <= _MOST_POINTS_OF_LINE:
        return list(points)
    step = (len(points) - 1) / (_MOST_POINTS_OF_LINE - 1)
    places = {round(n * step) for n in range(_MOST_POINTS_OF_LINE)}
    values = [y for _, y in points]
    places |= {values.index(min(values)), values.index(max(values))}
    return [points[n] for n in sorted(places)]
