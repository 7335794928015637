"""How time and memory of `audit` grow with a dump: see `benchmarks.sizing`.

``python -m benchmarks audit_sizing --large 11860MB`` takes more than an hour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.sizing import measure

if TYPE_CHECKING:
    from benchmarks.data import Data
    from benchmarks.report import Report


def run(data: Data) -> list[Report]:
    """Measure, once whatever the rounds."""
    return measure(data, ["audit"])
