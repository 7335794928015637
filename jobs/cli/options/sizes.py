"""Sizes as people write them: 500MB, 1.5TB, 2GiB."""

from __future__ import annotations

import re
from typing import Any

import click

_UNITS = {
    **{name: 1000**power for power, name in enumerate(("", "k", "m", "g", "t"))},
    **{f"{name}i": 1024**power for power, name in enumerate(("", "k", "m", "g", "t")) if name},
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]i?|)b?", re.IGNORECASE | re.ASCII)


class Size(click.ParamType[int]):
    """A number of bytes."""

    name = "size"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click has it
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int:
        """Return the bytes; thousands, or with an i 1024 of them, make the next unit."""
        if isinstance(value, int):
            return value
        match = _SIZE.fullmatch(value.strip())
        size = round(float(match[1]) * _UNITS[match[2].lower()]) if match else 0
        if size <= 0:
            self.fail(f"{value!r} is no size: write 500GB or 2TiB", param, ctx)
        return size
