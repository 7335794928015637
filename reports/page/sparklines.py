"""A line as small as a word: how something went on."""

from __future__ import annotations

from collections.abc import Sequence

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
