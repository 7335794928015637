"""Who owned how much of a group, and when: a band a partition, in the row of its member."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from reports.charts.look import BLUE, Row, data, names, svg_of, times, utc

_BAND = 6


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
