"""One group over time: who owned its partitions, and where its committed offsets were."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from reports.charts.look import (
    BLUE,
    INK,
    SOFT,
    Row,
    colours,
    data,
    names,
    shapes,
    svg_of,
    times,
    utc,
)

_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [3, 1], [10, 2])

_BAND = 6


def committed_offsets(
    rows: Sequence[Row], marks: Sequence[Row], elections: Sequence[Row], anchor: str
) -> str:
    """Return a step line a partition, marks on it, and a line down for each election.

    Args:
        rows: `place`, `at` (ISO 8601), `offset`.
        marks: `at`, `offset`, `what`.
        elections: `at`.
        anchor: Of the figure.
    """
    words = list(dict.fromkeys(row["place"] for row in rows))
    dashes = alt.Scale(domain=words, range=[_DASHES[n % len(_DASHES)] for n in range(len(words))])
    x = alt.X("at:T", scale=utc(), axis=times(row["at"] for row in rows))
    y = alt.Y(
        "offset:Q",
        axis=alt.Axis(title="committed offset", tickCount=5, format="~s"),
        scale=alt.Scale(zero=False),
    )
    lines = (
        alt.Chart(data(rows))
        .mark_line(interpolate="step-after", strokeWidth=1.8)
        .encode(
            x=x,
            y=y,
            color=alt.Color("place:N", scale=colours(words)),
            strokeDash=alt.StrokeDash("place:N", scale=dashes),
        )
    )
    layers: list[alt.Chart] = []
    if elections:
        layers.append(
            alt.Chart(data(elections)).mark_rule(color=SOFT, strokeDash=[4, 4]).encode(x=x)
        )
    layers.append(lines)
    if marks:
        kinds = list(dict.fromkeys(row["what"] for row in marks))
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


def ownership(rows: Sequence[Row], anchor: str) -> str:
    """Return a band for each partition while a member had it, a row a member.

    Args:
        rows: `member`, `partition` (its name), `from`, `to` (ISO 8601).
        anchor: Of the figure.
    """
    y = alt.Y("member:N", sort=None, axis=names())
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
