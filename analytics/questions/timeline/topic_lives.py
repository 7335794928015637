"""Whether the topic that an offset was committed for is still there, or another of its name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import polars as pl

from analytics.questions.timeline.words import HIGH, MEDIUM, RECREATED, TOPIC_DELETED, VERDICTS
from analytics.replay.topics import SNAPSHOT

METADATA_LOG, DIRECTORY, RECORD = "metadata_log", "partition_metadata", "record"
_AT_END: Final = {DIRECTORY: "its directories have", SNAPSHOT: "the cluster has"}
"""Sources, best first, that tell which topic of a name there is at the end of the dump."""
_NOT_IN_THE_LOG = (
    "which the metadata log does not have: the topic was deleted before that log begins, or made "
    "after it ends"
)

Row = Mapping[str, Any]
Finding = dict[str, Any]
_TIME: Final = VERDICTS["at"]
_FOUND: Final = ("verdict", "at", "confidence", "reason")
FOUND: Final = pl.Schema({f"topic_{name}": VERDICTS[name] for name in _FOUND})
"""What became of the topic of a commit, as columns: see `TopicLives.since`."""
_NAMED: Final = pl.Schema({"topic": pl.String(), "topic_id": pl.String()})


@dataclass(frozen=True)
class TopicLives:
    """What is known of topics.

    Attributes:
        rows: Of the table `topics`, by name.
        is_end: Whether all of this is said of the end of the dump, as its data directories are.
        commits: When commits named an id, first and last, by topic and id.
    """

    rows: Mapping[str, Iterable[Row]] = field(default_factory=dict)
    is_end: bool = True
    commits: Mapping[tuple[str, str], tuple[datetime, datetime]] = field(default_factory=dict)

    def since(self, commit: Row) -> Finding | None:
        """Return what became of the topic since a commit that is in force.

        Returns:
            `verdict`, `at`, `confidence` and `reason`; `reason` alone where another id is known
            and nothing tells which is the later one; None where the topic is the same, as far as
            is known.
        """
        lives = [row for row in self.rows.get(commit["topic"], ()) if row["topic_id"] is not None]
        told = [row for row in lives if row["source"] == METADATA_LOG]
        if told:
            there = [row for row in told if row["deleted_at"] is None]
            return _by_id(commit, told, there) if commit["topic_id"] else _by_time(commit, told)
        if commit["topic_id"] is None:
            return None
        others = sorted({row["topic_id"] for row in lives} - {commit["topic_id"]})
        for source, whose in _AT_END.items():
            present = {row["topic_id"] for row in lives if row["source"] == source}
            if self.is_end and present:
                if commit["topic_id"] in present:
                    return None
                now = " or ".join(sorted(present))
                return _recreated(None, MEDIUM, f"{_was(commit)}, and {whose} {now}")
        found = self._by_commits(commit, others)
        is_only_named = bool(lives) and all(row["source"] == RECORD for row in lives)
        if is_only_named and self._has_metadata_log and "verdict" not in (found or {}):
            return {"reason": f"cannot tell whether it is there: {_was(commit)}, {_NOT_IN_THE_LOG}"}
        return found

    def with_found(self, committed: pl.DataFrame) -> pl.DataFrame:
        """Add `FOUND`: what became of the topics of commits that are in force.

        What is the same for all times between two of a topic is looked for once.

        Args:
            committed: Has `topic`, `topic_id` and `commit_timestamp`.
        """
        named = list(_NAMED)
        rows = committed.with_row_index("commit")
        judged = rows.select("commit", *named, "commit_timestamp")
        judged = judged.join(self._judged_topics, "topic", "semi")
        judged = judged.join(self._settled, named, "anti", nulls_equal=True)
        judged = judged.sort("commit_timestamp").join_asof(
            self._turns,
            left_on="commit_timestamp",
            right_on="turn",
            by="topic",
            check_sortedness=False,
        )
        between = [
            *(pl.col(name) for name in (*named, "turn")),
            (pl.col("commit_timestamp") == pl.col("turn")).alias("is_turn"),
            pl.col("commit_timestamp").is_null().alias("is_timeless"),
        ]
        alike = judged.group_by(between, maintain_order=True).agg(
            "commit", pl.col("commit_timestamp").min()
        )
        found = [
            (each["commit"], *(told.get(name) for name in _FOUND))
            for each in alike.iter_rows(named=True)
            if (told := self.since(each)) is not None
        ]
        columns = {"commit": pl.List(pl.UInt32), **FOUND}
        of_commits = pl.DataFrame(found, columns, orient="row").explode("commit")
        return rows.join(of_commits, "commit", "left", maintain_order="left").drop("commit")

    def not_known(self, topic: pl.Expr) -> pl.Expr:
        """Return why it cannot be told whether topics were deleted or re-created, else null."""
        if self._tells_of_topics:
            return pl.lit(None, pl.String)
        return pl.format(
            "cannot tell whether topic {} was deleted or re-created: the dump has no "
            "metadata log and no data directories",
            topic,
        )

    @cached_property
    def _judged_topics(self) -> pl.DataFrame:
        """The topics of which an id is known: of others nothing is found."""
        named = [
            topic
            for topic, lives in self.rows.items()
            if any(row["topic_id"] is not None for row in lives)
        ]
        return pl.DataFrame({"topic": pl.Series(named, dtype=pl.String)})

    @cached_property
    def _settled(self) -> pl.DataFrame:
        """Topics, and ids that commits name (null: none), that are the same whenever it was."""
        return pl.DataFrame(
            [
                (topic, topic_id)
                for topic, lives in self.rows.items()
                for topic_id in self._settled_ids(lives)
            ],
            _NAMED,
            orient="row",
        )

    def _settled_ids(self, rows: Iterable[Row]) -> set[str | None]:
        lives = [row for row in rows if row["topic_id"] is not None]
        told = [row for row in lives if row["source"] == METADATA_LOG]
        if told:
            there = {row["topic_id"] for row in told if row["deleted_at"] is None}
            return there if len(there) < len(told) else {*there, None}
        present = {row["topic_id"] for row in lives if row["source"] in _AT_END}
        return {None, *present} if self.is_end else {None}

    @cached_property
    def _turns(self) -> pl.DataFrame:
        """Times of topics, `turn`: what is found of a commit depends on which it is after."""
        return (
            pl.DataFrame(list(self._times()), {"topic": pl.String(), "turn": _TIME}, orient="row")
            .drop_nulls()
            .unique()
            .sort("turn")
        )

    def _times(self) -> Iterator[tuple[str, datetime | None]]:
        for topic, lives in self.rows.items():
            for row in lives:
                yield from ((topic, row[name]) for name in ("created_at", "deleted_at"))
        for (topic, _), spans in self.commits.items():
            yield from ((topic, each) for each in spans)

    @cached_property
    def _has_metadata_log(self) -> bool:
        return any(row["source"] == METADATA_LOG for rows in self.rows.values() for row in rows)

    @cached_property
    def _tells_of_topics(self) -> bool:
        """Whether there is a metadata log, or a source for topics that are not internal."""
        return self._has_metadata_log or any(
            row["source"] in _AT_END and not name.startswith("__")
            for name, rows in self.rows.items()
            for row in rows
        )

    def _by_commits(self, commit: Row, others: Iterable[str]) -> Finding | None:
        """Judge by when commits of whichever group named which id."""
        place, at = (commit["topic"], commit["topic_id"]), commit["commit_timestamp"]
        first, last = self.commits.get(place, (at, at))
        untold = None
        for other in others:
            begins, ends = self.commits.get((commit["topic"], other), (None, None))
            if begins is not None and begins > last:
                return _recreated(None, MEDIUM, f"{_was(commit)}, and later commits name {other}")
            if ends is None or ends >= first:
                reason = f"{_was(commit)}; cannot tell whether id {other} is a later one"
                untold = untold or {"reason": reason}
        return untold


def _by_id(commit: Row, lives: list[Row], there: list[Row]) -> Finding | None:
    own = [row for row in lives if row["topic_id"] == commit["topic_id"]]
    if any(row["deleted_at"] is None for row in own):
        return None
    if own and not there:
        return {"verdict": TOPIC_DELETED, "at": own[0]["deleted_at"], "confidence": HIGH}
    for row in there:
        reason = f"{_was(commit)}, and is {row['topic_id']}"
        if own or _is_after(row["created_at"], commit["commit_timestamp"]):
            return _recreated(row["created_at"], HIGH, reason)
        # The metadata log may end before the commit, or begin behind the topic's removal.
        return {"reason": f"cannot tell which is the later: {reason} in the metadata log"}
    return None


def _by_time(commit: Row, lives: list[Row]) -> Finding | None:
    """Judge a commit that names no id, by the life of the topic that ended since."""
    at = commit["commit_timestamp"]
    ended = [row for row in lives if _is_after(row["deleted_at"], at)]
    begun = [row for row in ended if not _is_after(row["created_at"], at)]
    if not begun:
        return None
    for row in lives:
        if row["deleted_at"] is None:
            reason = f"it was deleted, and is {row['topic_id']}; the commit names no id"
            return _recreated(row["created_at"], MEDIUM, reason)
    return {"verdict": TOPIC_DELETED, "at": begun[0]["deleted_at"], "confidence": MEDIUM}


def _is_after(time: datetime | None, at: datetime | None) -> bool:
    return time is not None and at is not None and time > at


def _was(commit: Row) -> str:
    return f"committed for id {commit['topic_id']}"


def _recreated(at: datetime | None, confidence: str, reason: str) -> Finding:
    return {"verdict": RECREATED, "at": at, "confidence": confidence, "reason": reason}
