"""The history of offsets, and the verdicts on its changes.

Changes are in the order in which they took effect, place by place.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import polars as pl

from analytics.questions.timeline.words import (
    BELOW_ZERO,
    CANNOT_TELL,
    HIGH,
    OF_CAUSE,
    PLACE,
    RECREATED,
    REWOUND,
    TOPIC_DELETED,
    record_at,
    verdicts_on,
)

TRANSACTION_COMMIT = "transaction_commit"
COMMITS = ("commit", TRANSACTION_COMMIT)
ABORT, DELETE = "transaction_abort", "delete"

NEEDED = (
    *(*PLACE, "event", "topic_id", "committed_offset", "stored_offset", "previous_offset"),
    *("advance", "commit_timestamp", "effective_offset", "effective_timestamp", "epoch"),
    *("member_id", "cause", "confidence", "group_members", "complete", "missing"),
    *("coordinator_partition", "record_offset"),
)
"""What is read of the table `offset_history`."""
IS_COMMIT = pl.col("event").is_in(COMMITS)


class OffsetHistory:
    """Changes of committed offsets, those of one place in the order in which they took effect.

    Attributes:
        rows: `NEEDED`, with `index` (of the row) and `place` (a number for each place), sorted.
    """

    def __init__(self, rows: pl.DataFrame) -> None:
        """Sort the changes.

        Args:
            rows: `NEEDED` of whole groups. Aborted transactions changed nothing, and are left out.
        """
        order = [*PLACE, "effective_offset"]
        effective = rows.filter(pl.col("event") != ABORT).sort(order, maintain_order=True)
        is_first = pl.any_horizontal(pl.col(name) != pl.col(name).shift() for name in PLACE)
        place = is_first.fill_null(value=True).cum_sum().alias("place")
        self.rows = effective.with_columns(place).with_row_index("index")

    @cached_property
    def first_changes(self) -> pl.DataFrame:
        """The first change of each place."""
        return self.rows.filter(pl.col("place").ne_missing(pl.col("place").shift()))

    @cached_property
    def last_changes(self) -> pl.DataFrame:
        """The last change of each place."""
        return self.rows.filter(pl.col("place").ne_missing(pl.col("place").shift(-1)))

    @cached_property
    def in_force(self) -> pl.DataFrame:
        """The commit in force at the end of each place that has one."""
        return self.last_changes.filter(pl.col("event") != DELETE)

    @cached_property
    def incomplete(self) -> pl.DataFrame:
        """The last change of each place before which records are lost."""
        gaps = self.rows.filter(~pl.col("complete"))
        return gaps.filter(pl.col("place").ne_missing(pl.col("place").shift(-1)))

    @cached_property
    def places(self) -> pl.DataFrame:
        """`PLACE` of each place, with its number `place`."""
        return self.first_changes.select(*PLACE, "place")


def of_next_commit(name: str) -> pl.Expr:
    """Return a column as the next commit of the same place has it; null where there is none."""
    index = pl.when(IS_COMMIT).then("index").shift(-1).backward_fill()
    is_same = pl.col("place").gather(index) == pl.col("place")
    return pl.when(is_same).then(pl.col(name).gather(index))


def of_last_before(name: str) -> pl.Expr:
    """Return a column as the last change has it that took effect by an earlier record.

    Null where the place has none. One marker puts several commits in force.
    """
    is_new = pl.any_horizontal(
        pl.col(each).ne_missing(pl.col(each).shift()) for each in ("place", "effective_offset")
    )
    index = pl.when(is_new).then(pl.col("index")).forward_fill().cast(pl.Int64) - 1
    known = pl.when(index >= 0).then(index)
    is_same = pl.col("place").gather(known) == pl.col("place")
    return pl.when(is_same).then(pl.col(name).gather(known))


# What took an offset away or back, or put it under another topic, by the log that survived.

LOST_BY_ELECTION, REWOUND_BY_MEMBER = "lost_by_election", "rewound_by_member"
FEWEST_STEPS = 2
"""So many steps back to the same offset, with progress between them, tell two writers."""

WHOSE_OF = "which of the {} members committed it stands in no record"
TWO_WRITERS = (
    "two writers: {} steps back to exactly {} while other commits went on; who committed stands in "
    "no record"
)
_OTHER_RECORDS = (TOPIC_DELETED, RECREATED)
"""After these the same offset is another record: nothing is read again."""
_IS_DELETION = pl.col("event") == DELETE
_VERDICT = pl.col("cause").replace_strict(OF_CAUSE, default=CANNOT_TELL, return_dtype=pl.String)


def happenings(history: OffsetHistory) -> pl.DataFrame:
    """Return a verdict for each deletion, step back, commit below 0, and for a topic born again."""
    return pl.concat(
        [_deletions(history), _steps_back(history), _below_zero(history), _born_again(history)]
    )


def _below_zero(history: OffsetHistory) -> pl.DataFrame:
    """Say of commits of an offset below 0 that since then there is none."""
    rows = history.rows.filter(IS_COMMIT & pl.col("committed_offset").is_null())
    return _happened(
        rows,
        BELOW_ZERO,
        "below_zero",
        confidence=HIGH,
        reason=pl.format(
            "{} is no offset to Kafka's clients and tools: a consumer goes where "
            "auto.offset.reset says",
            "stored_offset",
        ),
    )


def _deletions(history: OffsetHistory) -> pl.DataFrame:
    was, first = pl.col("previous_offset"), pl.col("next_offset")
    # What it removed is shown by the change before it, where that is the one it names.
    is_shown = of_last_before("committed_offset").eq_missing(was)
    shown_at = pl.when(is_shown).then(of_last_before("effective_timestamp"))
    rows = history.rows.with_columns(
        of_next_commit("committed_offset").alias("next_offset"), shown_at.alias("shown_at")
    )
    rows = rows.filter(_IS_DELETION).with_columns(_VERDICT.alias("verdict"))
    is_read_again = (first < was) & ~pl.col("verdict").is_in(_OTHER_RECORDS)
    untold = pl.when(pl.col("verdict") == CANNOT_TELL).then(
        pl.lit("it was deleted, and the dump does not show by what")
    )
    reasons = [untold, pl.format("then {} was committed", first)]
    return _happened(
        rows,
        pl.col("verdict"),
        "deletion",
        committed_at=pl.col("shown_at"),
        cost=pl.when(is_read_again).then(was - first),
        reason=joined(*reasons),
    )


def joined(*reasons: pl.Expr) -> pl.Expr:
    """Return sentences as one; null where all are."""
    text = pl.concat_str(*reasons, separator="; ", ignore_nulls=True)
    return pl.when(text != "").then(text)


def frozen_offsets(rows: pl.DataFrame) -> pl.DataFrame:
    """Return steps back to one and the same offset, while other commits go on, and how many.

    A member whose position stands still commits it again and again; others go on from theirs.

    Args:
        rows: Of the history: those that went back.

    Returns:
        `index` of the rows, and `steps`.
    """
    of_one = ["place", "committed_offset"]
    perhaps = (pl.col("cause") == REWOUND_BY_MEMBER) & (pl.col("group_members") != 1)
    steps = rows.filter(perhaps)
    was = pl.col("previous_offset")
    has_grown = was.max().over(of_one) > was.min().over(of_one)
    steps = steps.filter((pl.len().over(of_one) >= FEWEST_STEPS) & has_grown)
    return steps.select("index", pl.len().over(of_one).alias("steps"))


def _steps_back(history: OffsetHistory) -> pl.DataFrame:
    rows = history.rows.filter(~_IS_DELETION & (pl.col("advance") < 0))
    rows = rows.join(frozen_offsets(rows), "index", "left", maintain_order="left")
    rows = rows.with_columns(_VERDICT.alias("verdict"))
    verdict, members = pl.col("verdict"), pl.col("group_members")
    reason = (
        pl.when(pl.col("cause") == LOST_BY_ELECTION)
        .then(pl.lit("an unclean election of the topic's partition may have cost it these records"))
        .when(pl.col("steps").is_not_null())
        .then(pl.format(TWO_WRITERS, "steps", "committed_offset"))
        .when((verdict == REWOUND) & (members != 1))
        .then(pl.format(WHOSE_OF, members))
        .when(verdict == CANNOT_TELL)
        .then(pl.lit("it went back, and the dump does not show who committed it"))
    )
    return _happened(
        rows,
        verdict,
        "step_back",
        became=pl.col("committed_offset"),
        cost=pl.when(~verdict.is_in(_OTHER_RECORDS)).then(-pl.col("advance")),
        reason=reason,
    )


def _born_again(history: OffsetHistory) -> pl.DataFrame:
    """Return commits that did not go back, but name another id of the topic than the one before."""
    # What is known to go on from a commit has that commit before it: it is of the same place.
    before = pl.col("topic_id").shift()
    is_another = (pl.col("advance") >= 0) & (pl.col("topic_id") != before)
    rows = history.rows.with_columns(before.alias("former_id")).filter(is_another)
    return _happened(
        rows,
        RECREATED,
        "topic_id",
        became=pl.col("committed_offset"),
        reason=pl.format("id {} became {}", "former_id", "topic_id"),
        confidence=HIGH,
    )


def _happened(
    changes: pl.DataFrame,
    verdict: str | pl.Expr,
    rung: str,
    **columns: Any,  # noqa: ANN401 - values of columns
) -> pl.DataFrame:
    given = {
        "at": pl.col("effective_timestamp"),
        "was": pl.col("previous_offset"),
        "record": record_at("effective_offset"),
        "confidence": pl.col("confidence"),
    }
    return verdicts_on(changes, verdict, rung, **(given | columns))
