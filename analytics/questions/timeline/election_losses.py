"""Offsets that went back, vanished or came back because another broker's log was elected.

`was` is what the lost line had last. `became` is the first commit after the election where that is
before `was`: there the group has resumed. Else it is what the surviving line had in force when the
election made it the truth. `cost` is `was` less `became`: so many records, at least, were read
again, or skipped where it is negative. It is 0 where a member kept its position, and null where
nothing tells from where the group read on. What is equal on both lines is no loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import polars as pl

from analytics.questions.timeline.history import (
    DELETE,
    IS_COMMIT,
    OffsetHistory,
    of_last_before,
    of_next_commit,
)
from analytics.questions.timeline.lost_commits import LAST, OTHER_TYPES, LostLine
from analytics.questions.timeline.words import (
    BELOW_ZERO,
    CANNOT_TELL,
    HIGH,
    LOST,
    LOST_WITH_TOPIC,
    LOW,
    OF_CAUSE,
    PLACE,
    RECREATED,
    REWOUND,
    TOPIC_DELETED,
    VERDICTS,
    record_at,
    verdicts_on,
)
from schemas import CONSUMER_OFFSETS

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


_UNANSWERED = "nothing shows that this commit was ever acknowledged"
_TIME: Final = VERDICTS["at"]
_LINE: Final = pl.Schema(
    {
        "line": pl.Int32(),
        "copy": pl.String(),
        "home": pl.Int32(),
        "diverges_at": pl.Int64(),
        "leader_epoch": pl.Int32(),
        "elected_at": _TIME,
        "elected_after": _TIME,
        "committed_below": pl.Int64(),
        "lacks": pl.String(),
        "other_topic": pl.String(),
        "uncompacted_from": pl.Int64(),
    }
)
_WAS, _BASE, _FIRST = (
    pl.col(name) for name in ("committed_offset", "before_offset", "after_offset")
)


def election_losses(
    lines: Iterable[LostLine], history: OffsetHistory, uncompacted_from: Mapping[int, int]
) -> pl.DataFrame:
    """Return a verdict for each place that a lost line had changed last.

    Args:
        lines: Of lines that did not survive.
        history: Of the line that did.
        uncompacted_from: By internal partition, the offset before which compaction took records.
    """
    changes = lost_changes([each for each in lines if each.last.height], uncompacted_from)
    if changes.is_empty():
        return VERDICTS.to_frame()
    lost = _with_survivor(changes, history)
    lost = lost.filter(_WAS.ne_missing(_BASE))
    became = _became()
    return verdicts_on(
        lost,
        pl.when(pl.col("other_topic").is_null())
        .then(pl.lit(LOST))
        .otherwise(pl.lit(LOST_WITH_TOPIC)),
        "lost_line",
        at=pl.col("elected_at"),
        not_before=pl.col("elected_after"),
        was=_WAS,
        committed_at=pl.when(_WAS.is_not_null()).then("timestamp"),
        became=became.offset,
        cost=pl.when(pl.col("lacks").is_null()).then(became.cost),
        confidence=pl.when(pl.col("lacks").is_null() & _is_committed())
        .then(pl.lit(HIGH))
        .otherwise(pl.lit(LOW)),
        record=record_at("record_offset", "home"),
        reason=pl.concat_str(became.why, *_remarks(), separator="; ", ignore_nulls=True),
    )


def lost_changes(lines: list[LostLine], uncompacted_from: Mapping[int, int]) -> pl.DataFrame:
    """Return the last change of each place; of copies that lost the same line, the longer one's."""
    if not lines:
        return LAST.to_frame()
    told = pl.DataFrame(
        [
            (
                *(number, each.copy, each.partition, each.diverges_at, each.leader_epoch),
                *(each.elected_at, each.elected_after, each.committed_below, each.lacks or None),
                *(each.other_topic, uncompacted_from.get(each.partition, 0)),
            )
            for number, each in enumerate(lines)
        ],
        _LINE,
        orient="row",
    )
    on_lines = _with_lines(LAST, [each.last for each in lines])
    types = _with_lines(OTHER_TYPES, [each.types for each in lines])
    lost = on_lines.join(told, "line", maintain_order="left")
    lost = lost.join(types, ["group_id", "line"], "left", maintain_order="left")
    same = [*PLACE, "home", "leader_epoch"]
    lost = lost.with_row_index("number").with_columns(pl.col("number").min().over(same))
    longest = lost.sort("record_offset", descending=True, maintain_order=True)
    longest = longest.unique(same, keep="first", maintain_order=True).sort("number").drop("number")
    # Whether what came after a line is on a line that was lost later, too.
    epoch = pl.col("leader_epoch").fill_null(0)
    return longest.with_columns((epoch.max().over(*PLACE, "home") > epoch).alias("is_followed"))


def _with_lines(schema: pl.Schema, tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the tables of lines as one, with the number of the `line`."""
    numbered = [
        each.select(schema.names()).with_columns(pl.lit(number, pl.Int32).alias("line"))
        for number, each in enumerate(tables)
    ]
    nothing = schema.to_frame().with_columns(pl.lit(None, pl.Int32).alias("line"))
    return pl.concat([nothing, *numbered])


def _with_survivor(lost: pl.DataFrame, history: OffsetHistory) -> pl.DataFrame:
    """Add what the surviving line has before and after it parts: `before_…`, `after_…`.

    `has_before` and `has_after` say whether that is a commit; else there is none in force.
    """
    lost = lost.with_row_index("number")
    changes = history.rows.join(lost.select(*PLACE, "number", "diverges_at"), PLACE)
    changes = changes.sort("number", "index")
    is_before = pl.col("effective_offset") < pl.col("diverges_at")
    last, first = (
        changes.filter(is_before).unique("number", keep="last", maintain_order=True),
        changes.filter(~is_before).unique("number", keep="first", maintain_order=True),
    )
    for side, found in (("before", last), ("after", first)):
        commit = found.filter(IS_COMMIT).select(
            "number",
            pl.col("committed_offset").alias(f"{side}_offset"),
            pl.col("member_id").alias(f"{side}_member"),
            pl.col("epoch").alias(f"{side}_epoch"),
            pl.lit(value=True).alias(f"has_{side}"),
        )
        lost = lost.join(commit, "number", "left", maintain_order="left")
    return lost.with_columns(pl.col("has_before", "has_after").fill_null(value=False))


def _is_committed() -> pl.Expr:
    """Return whether the record was replicated to all in sync before the line was lost.

    What was not, no client was told of: a clean election may have cut it off.
    """
    below = pl.col("committed_below")
    return below.is_null() | (pl.col("record_offset") < below)


def _remarks() -> list[pl.Expr]:
    return [
        pl.format(
            f"{CONSUMER_OFFSETS} was deleted and made again: that copy is of topic id {{}}",
            "other_topic",
        ),
        pl.format("on the lost line it is a {} group", "other_type"),
        pl.when(~_is_committed()).then(pl.lit(_UNANSWERED)),
        pl.col("lacks"),
    ]


class _Became(NamedTuple):
    """What an offset became, what that cost (null where it cannot be told), and what says so."""

    offset: pl.Expr
    cost: pl.Expr
    why: pl.Expr


def _became() -> _Became:
    ask = pl.format("--prefer-copy {}", "copy")
    only_there = pl.format("only copy {} has it ({})", "copy", ask)
    had = _BASE.cast(pl.String).fill_null("no offset")
    why = pl.format("{}; the surviving log had {}", only_there, had)
    then = pl.format("{}, and the next commit was {}", why, _FIRST)
    none, cost = pl.lit(None, pl.Int64), _WAS - _BASE
    was_deleted = pl.format(
        "it was deleted, which only copy {} has ({}): the offset came back", "copy", ask
    )
    is_gone = ~pl.col("has_before") & (pl.col("uncompacted_from") > pl.col("diverges_at"))
    gone = pl.format("{}; what was in force after the election is no longer in the log", only_there)
    followed = pl.format("{}, and what came next was lost, too", why)
    has_resumed = (_BASE.fill_null(0) <= _FIRST) & (_FIRST < _WAS)
    kept = pl.format("{}: the member kept its position", then)
    known_cost = pl.when(_is_other_member()).then(cost)
    cases = (
        (_WAS.is_null(), _Became(_BASE, none, was_deleted)),
        (is_gone, _Became(_FIRST, none, gone)),
        (pl.col("is_followed"), _Became(_BASE, none, followed)),
        (_FIRST.is_null() | _FIRST.eq_missing(_BASE), _Became(_BASE, cost, why)),
        (has_resumed, _Became(_FIRST, _WAS - _FIRST, then)),
        (_is_same_member(), _Became(_BASE, pl.lit(0, pl.Int64), kept)),
        (pl.lit(value=True), _Became(_BASE, known_cost, then)),
    )
    offset, spent, reason = (
        pl.coalesce(
            pl.when(_is_first_case([case for case, _ in cases], number)).then(each[part])
            for number, (_, each) in enumerate(cases)
        )
        for part in range(len(_Became._fields))
    )
    return _Became(offset, spent, reason)


def _is_first_case(cases: list[pl.Expr], number: int) -> pl.Expr:
    """Return whether a case holds and none before it."""
    return pl.all_horizontal(
        *(~each.fill_null(value=False) for each in cases[:number]),
        cases[number].fill_null(value=False),
    )


def _is_same_member() -> pl.Expr:
    """Return whether one member owned the partition all along, and read no committed offset."""
    return (pl.col("before_member") == pl.col("after_member")) & pl.col("before_epoch").eq_missing(
        pl.col("after_epoch")
    )


def _is_other_member() -> pl.Expr:
    """Return whether another member has the partition, which began where the group stood."""
    return pl.col("before_member") != pl.col("after_member")
