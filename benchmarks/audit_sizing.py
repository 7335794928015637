"""How time and memory of `audit` grow with a dump: `benchmarks.sizing`, which takes an hour of it.

python -m benchmarks audit_sizing --large 11860MB    100 million commits, and parts of it
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
