"""What is printed: figures beside their targets, ratios first."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.measure import Times


@dataclass(frozen=True)
class Figure:
    """One figure beside its target.

    Attributes:
        what: What was compared.
        value: The figure.
        unit: Printed after it: "x", "%", "MB".
        at_least: The target, where more is better.
        at_most: The target, where less is better.
        aim: What is hoped for beyond the target.
        note: Anything a reader must know.
    """

    what: str
    value: float
    unit: str = "x"
    at_least: float | None = None
    at_most: float | None = None
    aim: float | None = None
    note: str = ""

    @property
    def is_met(self) -> bool:
        """Whether the figure reaches its target; one without a target always does."""
        if self.at_least is not None and self.value < self.at_least:
            return False
        return self.at_most is None or self.value <= self.at_most

    def line(self) -> str:
        """Return the figure as a line of the table."""
        value = f"{self.value:.2f}" if self.value < 100 else f"{self.value:,.0f}"
        return f"  {self.what:<58}{value + ' ' + self.unit:>12}  {self._target()}"

    def _target(self) -> str:
        if self.at_least is None and self.at_most is None:
            return self.note
        word, limit = (
            ("at least", self.at_least) if self.at_most is None else ("at most", self.at_most)
        )
        aim = "" if self.aim is None else f", aim {self.aim:g}"
        verdict = "met" if self.is_met else "MISSED"
        return f"{word} {limit:g}{aim}: {verdict}" + (f"; {self.note}" if self.note else "")


@dataclass
class Report:
    """What one benchmark found."""

    title: str
    figures: list[Figure] = field(default_factory=list)
    details: list[str] = field(default_factory=list)

    def add_times(
        self, times: Mapping[str, Times], records: int = 0, size: int = 0, *, cpu: bool = True
    ) -> None:
        """Add a line for each contestant: its medians, and its rate where one is known.

        ``cpu`` is false where a command leaves processes behind whose time nobody collects.
        """
        for name, each in times.items():
            wall = statistics.median(each.wall)
            took = f"wall {wall:8.3f} s"
            took += f"  cpu {statistics.median(each.cpu):8.3f} s" if cpu else ""
            rate = f"  {records / wall / 1000:10,.0f} krec/s" if records else ""
            rate += f"  {size / wall / 1e6:8,.0f} MB/s" if size else ""
            self.details.append(f"    {name:<44} {took}{rate}  (n={len(each.wall)})")

    def show(self) -> str:
        """Return the report as text."""
        return "\n".join([self.title, *(each.line() for each in self.figures), *self.details, ""])
