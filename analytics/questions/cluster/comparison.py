"""Fields of a snapshot's state laid beside what its cluster answered: what differs.

Where one side lacks a whole thing, one row says so, and none of its fields: a group that only one
side has is one difference, and so are a member and an offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import polars as pl

from analytics.questions.cluster.state_fields import KEY

GROUP, MEMBER, ASSIGNMENT, OFFSET, SHARE_PARTITION, LOOK = (
    *("group", "member", "assignment", "offset", "share_partition"),
    "look",
)
LISTED, DESCRIPTION, OFFSETS = "listed", "description", "offsets"
_QUESTIONS: Final = (DESCRIPTION, OFFSETS)
ANSWERED_BY: Final = {
    GROUP: DESCRIPTION,
    MEMBER: DESCRIPTION,
    ASSIGNMENT: DESCRIPTION,
    OFFSET: OFFSETS,
    SHARE_PARTITION: OFFSETS,
}
"""By kind the field that says that a group's question was answered."""
_PRESENCE: Final = {MEMBER: "member_id", OFFSET: "committed_offset"}
"""By kind the field without which a side does not have the thing at all."""
_PLACE: Final = KEY[:-1]


class Compared:
    """Both sides of one snapshot, kind by kind.

    Args:
        groups: `group_fields` of the state.
        answers: Rows of `cluster_answers` of the first look.
    """

    def __init__(self, groups: pl.DataFrame, answers: pl.DataFrame) -> None:
        self._answers = answers
        self._of_groups = groups
        of_groups = answers.filter(pl.col("kind") == GROUP)
        asked = of_groups.filter(pl.col("field").is_in([LISTED, *_QUESTIONS]))
        ours = groups.filter(pl.col("field") == LISTED)
        both = _beside(ours, asked.filter(pl.col("field") == LISTED))
        self.listed = both.filter(_differs())
        """Groups that one side lacks, or has as another type."""
        self._common = both.filter(~_differs()).select("group_id")
        refused = asked.filter(pl.col("error").is_not_null() & (pl.col("field") != LISTED))
        self.unanswered = refused.join(self._common, "group_id", "semi")
        """Questions to groups that both have which were not answered, with why."""

    def differences(self, kind: str, ours: pl.DataFrame) -> pl.DataFrame:
        """Return what differs of one kind, of groups that both sides have and that were answered.

        Args:
            kind: What is compared.
            ours: Fields of the state.

        Returns:
            `KEY`, `value`, `missing`, `answer`, `error`.
        """
        question = ANSWERED_BY[kind]
        refused = self.unanswered.filter(pl.col("field") == question)
        groups = self._common.join(refused, "group_id", "anti")
        ours = ours.filter(pl.col("field") != LISTED).join(groups, "group_id", "semi")
        asked = [LISTED, *_QUESTIONS]
        theirs = self._answers.filter(
            (pl.col("kind") == kind) & ~pl.col("field").is_in(asked)
        ).join(groups, "group_id", "semi")
        both = _beside(ours, theirs)
        found = both.filter(_differs())
        presence = _PRESENCE.get(kind)
        if presence is None:
            return found
        absent = found.filter(
            (pl.col("field") == presence) & (pl.col("value").is_null() | pl.col("answer").is_null())
        )
        others = found.join(absent, [*_PLACE], "anti", nulls_equal=True)
        return pl.concat([absent, others])


def without(differences: pl.DataFrame, absent: pl.DataFrame) -> pl.DataFrame:
    """Leave out what members have of whom one side knows nothing.

    Args:
        differences: Differences of assignments.
        absent: Differences of members.
    """
    gone = absent.filter(pl.col("field") == "member_id").select("group_id", "member_id")
    return differences.join(gone, ["group_id", "member_id"], "anti")


def of_kinds(parts: Iterable[tuple[str, pl.DataFrame]]) -> pl.DataFrame:
    """Return differences of all kinds, each with its `kind`."""
    return pl.concat(_with_kinds(parts))


def _with_kinds(parts: Iterable[tuple[str, pl.DataFrame]]) -> Iterator[pl.DataFrame]:
    for kind, rows in parts:
        yield rows.select(pl.lit(kind).alias("kind"), *KEY, "value", "missing", "answer", "error")


def _beside(ours: pl.DataFrame, theirs: pl.DataFrame) -> pl.DataFrame:
    answered = theirs.select(*KEY, pl.col("value").alias("answer"), "error")
    return ours.join(answered, list(KEY), "full", coalesce=True, nulls_equal=True)


def _differs() -> pl.Expr:
    return ~pl.col("value").eq_missing(pl.col("answer"))
