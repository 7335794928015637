"""Picking the smallest and the largest of a topic's subscribers, in the broker's order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


class LoadLadder:
    """Subscribers by size, taken in turn from both ends (Kafka's MemberAssignmentBalancer).

    The smallest ones form a group at one level: each of them is taken once, then the level rises
    by one and the group takes in the members it has reached. The largest ones likewise, downwards.
    """

    def __init__(self, sizes: NDArray[np.int64], members: NDArray[np.int64]) -> None:
        """Line the members up.

        Args:
            sizes: Size of every member of the group; looked at again as groups grow.
            members: Numbers of the members to line up, ascending and at least one.
        """
        self._sizes = sizes
        self._line: list[int] = members[np.argsort(sizes[members], kind="stable")].tolist()
        self._low_level = int(sizes[self._line[0]]) - 1
        self._low_end = 0
        self._low_next = 0
        self._high_level = int(sizes[self._line[-1]]) + 1
        self._high_start = self._high_end = len(self._line)
        self._high_next = len(self._line) - 1

    def is_level(self) -> bool:
        """Whether the two groups are at most one apart."""
        return self._high_level - self._low_level <= 1

    def next_least(self) -> int:
        """Return the next member to be given a partition."""
        line = self._line
        if self._low_next >= self._low_end:
            self._low_level += 1
            while self._low_end < len(line) and self._sizes[line[self._low_end]] == self._low_level:
                self._low_end += 1
            self._low_next = 0
        member = line[self._low_next]
        self._low_next += 1
        return member

    def next_most(self, can_give: Callable[[int], bool]) -> int | None:
        """Return the next member to give a partition up; None when nobody can.

        A member that cannot changes places with the end of its group and drops out.
        """
        line = self._line
        while (place := self._high_place()) is not None:
            member = line[place]
            if can_give(member):
                return member
            self._high_end -= 1
            line[place], line[self._high_end] = line[self._high_end], member
        return None

    def _high_place(self) -> int | None:
        if self._high_next < self._high_start:
            self._lower_high_group()
        if self._high_next < 0:
            return None
        self._high_next -= 1
        return self._high_next + 1

    def _lower_high_group(self) -> None:
        line, start = self._line, self._high_start
        if self._high_end <= start and start > 0:
            # Everybody has dropped out: go on at the level of the next one, wherever that is.
            self._high_level = int(self._sizes[line[start - 1]])
        else:
            self._high_level -= 1
        while start > 0 and self._sizes[line[start - 1]] == self._high_level:
            start -= 1
        self._high_start = start
        self._high_next = self._high_end - 1
