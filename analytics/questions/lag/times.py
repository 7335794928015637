"""Times as numbers, in arrays that have no nulls."""

from __future__ import annotations

from typing import Final

END_OF_TIME: Final = (1 << 63) - 1
"""A time after every other."""
