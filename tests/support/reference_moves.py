"""How a group moves, slow and simple: each commit of a partition with all that were before it."""

from __future__ import annotations

from dataclasses import dataclass, field

MOST = (1 << 63) - 1
"""The largest offset, and the largest sum."""


@dataclass(frozen=True)
class Committed:
    """A commit that took effect: its time, offset, and whose it was."""

    at: int
    offset: int
    epoch: int | None
    member: str | None


@dataclass
class ReferenceMoves:
    """One partition of one group.

    Attributes:
        times: A jump is at least so many times as long as the mean step forward before it,
        records: and so many records,
        after: and has at least so many steps forward before it.
    """

    times: int
    records: int
    after: int
    commits: list[Committed] = field(default_factory=list)
    moves: list[tuple[str, int, int, Committed]] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)

    def commit(self, now: Committed) -> None:
        """Take a commit."""
        if self.commits:
            before = self.commits[-1]
            step = now.offset - before.offset
            forward = [each for each in self.steps if each > 0]
            if step < 0:
                self.moves.append(("rewind", now.at, step, before))
            elif (
                len(forward) >= self.after
                and step >= self.records
                # Whole records, as the fold counts: shares of one tell nothing.
                and step // self.times >= min(sum(forward), MOST) // len(forward)
            ):
                self.moves.append(("jump", now.at, step, before))
            self.steps.append(step)
        self.commits.append(now)

    def offset_at(self, since: int) -> int | None:
        """Return the offset in force at a time, or by the first commit after it."""
        until = [each for each in self.commits if each.at <= since]
        return (until[-1] if until else self.commits[0]).offset if self.commits else None

    def counts(self) -> dict[str, int | None]:
        """Return what is counted."""
        forward = [each for each in self.steps if each > 0]
        advanced = [
            each.at for each, step in zip(self.commits[1:], self.steps, strict=True) if step > 0
        ]
        return {
            "commits": len(self.commits),
            "unchanged_commits": self.steps.count(0),
            "rewinds": sum(each < 0 for each in self.steps),
            "jumps": sum(kind == "jump" for kind, *_ in self.moves),
            "advanced": min(sum(forward), MOST),
            "first_commit_at": min(each.at for each in self.commits),
            "last_commit_at": max(each.at for each in self.commits),
            "last_advance_at": max(advanced, default=None),
        }
