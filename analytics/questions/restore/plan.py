"""What becomes of each committed offset of the past: given back, there already, or refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import polars as pl

from analytics.contracts import in_key_order
from analytics.dump.batches.stretches import SAME_CLOCK_MS
from analytics.dump.copies.leadership import EpochLine, truncation_offset
from analytics.questions.diff.changes import LEFT_OUT_TOPICS
from analytics.tables.parted_table import Order

# Reasons for which an offset is not given back, each a word and a sentence.

INCOMPLETE: Final = "incomplete"
PRESENT_UNKNOWN: Final = "present_unknown"
MOVED_ON: Final = "moved_on"
PENDING_TRANSACTION: Final = "pending_transaction"
TOPIC_ID_CHANGED: Final = "topic_id_changed"
TOPIC_GONE: Final = "topic_gone"
TOPIC_UNKNOWN: Final = "topic_unknown"
BELOW_LOG_START: Final = "below_log_start"
ABOVE_LOG_END: Final = "above_log_end"
DATA_DIVERGED: Final = "data_diverged"
DATA_UNCERTAIN: Final = "data_uncertain"
UNFIT_GROUP: Final = "unfit_group"
SHARE_GROUP: Final = "share_group"
UNFIT_NAME: Final = "unfit_name"

UNSURE: Final = (INCOMPLETE, PRESENT_UNKNOWN, TOPIC_UNKNOWN, DATA_UNCERTAIN)
"""Reasons that say that the dump cannot tell."""

LEGAL_TOPIC: Final = r"^[a-zA-Z0-9._-]{1,249}$"
"""``Topic.validate``; another name would not come through the file."""

AND: Final = "; "
_TIME: Final = "%Y-%m-%dT%H:%M:%S%.3fZ"


class Refusal(NamedTuple):
    """One reason.

    Attributes:
        word: What programs read.
        applies: Whether it applies to a row (null is false).
        sentence: Of a row; the word alone where it is null.
    """

    word: str
    applies: pl.Expr
    sentence: pl.Expr


def with_reasons(rows: pl.DataFrame, refusals: Sequence[Refusal]) -> pl.DataFrame:
    """Add `reason` (words) and `detail` (sentences); null where nothing applies."""
    words = [pl.when(each.applies).then(pl.lit(each.word)) for each in refusals]
    details = [
        pl.when(each.applies).then(each.sentence.fill_null(pl.lit(each.word))) for each in refusals
    ]
    is_refused = pl.any_horizontal(each.applies.fill_null(value=False) for each in refusals)
    return rows.with_columns(
        pl.when(is_refused).then(pl.concat_str(texts, separator=AND, ignore_nulls=True)).alias(name)
        for name, texts in (("reason", words), ("detail", details))
    )


def refusals_of(*, include_live: bool) -> list[Refusal]:
    """Return every reason an offset may be refused for.

    Args:
        include_live: Groups that have moved on since are rewound.
    """
    optional = {MOVED_ON, PRESENT_UNKNOWN} if include_live else set()
    return [each for each in _REFUSALS if each.word not in optional]


_THEN, _NOW = pl.col("untold_then"), pl.col("untold_now")
_OF_KNOWLEDGE: Final = (
    Refusal(INCOMPLETE, _THEN.is_not_null(), pl.format("cannot tell what it was: {}", _THEN)),
    Refusal(
        PRESENT_UNKNOWN,
        _NOW.is_not_null(),
        pl.format("cannot tell whether it has moved on since: {}", _NOW),
    ),
)
_OF_TRANSACTIONS: Final = Refusal(
    PENDING_TRANSACTION, pl.col("pending").is_not_null(), pl.col("pending")
)
REFUSALS_OF_PENDING: Final = (*_OF_KNOWLEDGE, _OF_TRANSACTIONS)
"""Every reason an offset is refused for that was only pending: no row lacks them all."""

_OFFSET, _PRESENT = pl.col("committed_offset"), pl.col("present_offset")
_PRESENT_AT: Final = pl.format(" ({})", pl.col("present_timestamp").dt.strftime(_TIME))
_OF_GROUP: Final = (
    Refusal(
        MOVED_ON,
        _PRESENT > _OFFSET,
        pl.format(
            "the group has since committed {}{}: this would rewind it",
            _PRESENT,
            _PRESENT_AT.fill_null(""),
        ),
    ),
    _OF_TRANSACTIONS,
    Refusal(UNFIT_GROUP, pl.col("unfit").is_not_null(), pl.col("unfit")),
)

_ID_THEN, _ID_NOW = pl.col("topic_id_then"), pl.col("topic_id_now")
_IS_OPEN: Final = pl.any_horizontal("has_several_ids", "is_only_named").fill_null(value=False)
_IS_GONE: Final = pl.col("knows_topics") & _ID_NOW.is_null() & ~_IS_OPEN
_IS_BEYOND: Final = pl.col("partition") >= pl.col("partitions_now")
_OF_TOPIC: Final = (
    Refusal(
        TOPIC_ID_CHANGED,
        _ID_THEN != _ID_NOW,
        pl.format("the topic was created again: its id was {}, and is {}", _ID_THEN, _ID_NOW),
    ),
    Refusal(
        TOPIC_ID_CHANGED,
        pl.col("has_several_ids"),
        pl.lit("the topic was created again: cannot tell which of its ids it has now"),
    ),
    Refusal(
        TOPIC_GONE,
        _IS_GONE | _IS_BEYOND,
        pl.format("there is no partition {}-{} any more", "topic", "partition"),
    ),
    Refusal(
        TOPIC_UNKNOWN,
        pl.col("is_only_named"),
        pl.lit(
            "cannot tell whether the topic is there: only records of groups name it, and the "
            "metadata log, which does not, may begin after it was deleted, or end before it was "
            "made"
        ),
    ),
    Refusal(
        UNFIT_NAME,
        ~pl.col("topic").str.contains(LEGAL_TOPIC),
        pl.format("no topic can have this name: {}", "topic"),
    ),
)

_START: Final = pl.col("log_start_offset").fill_null(0)
_END, _SAME = pl.col("log_end_offset"), pl.col("same_up_to")
_UNCLEAN: Final = pl.col("unclean_at")
_OF_LOG: Final = (
    Refusal(BELOW_LOG_START, _OFFSET < _START, pl.format("the log starts at offset {}", _START)),
    Refusal(ABOVE_LOG_END, _OFFSET > _END, pl.format("the log ends at offset {}", _END)),
    Refusal(
        DATA_DIVERGED,
        _OFFSET > _SAME,
        pl.format("{}: the records before {} are others now", "same_by", _OFFSET),
    ),
    Refusal(
        DATA_UNCERTAIN,
        _SAME.is_null() & _UNCLEAN.is_not_null(),
        pl.format(
            "cannot tell whether the log still is the one it was committed for: an unclean "
            "election at {} may have changed it",
            _UNCLEAN.dt.strftime(_TIME),
        ),
    ),
)
_REFUSALS: Final = (*_OF_KNOWLEDGE, *_OF_GROUP, *_OF_TOPIC, *_OF_LOG)


# What becomes of each committed offset of the past: it is given back, is there already, or not.

KEY: Final = ("group_id", "topic", "partition")
COMMITTED: Final = (
    *(*KEY, "committed_offset", "committed_leader_epoch", "commit_timestamp", "via", "missing"),
)
"""Of the table `committed_offsets`, what is read."""

RESTORE: Final = "restore"
UNCHANGED: Final = "unchanged"
REFUSED: Final = "refused"

UNCLEAN: Final = pl.Schema(
    {
        "topic": pl.String(),
        "partition": pl.Int32(),
        "in_sync_until": pl.Datetime("us", "UTC"),
        "unclean_at": pl.Datetime("us", "UTC"),
    }
)
"""Unclean elections of data partitions, and until when the elected broker was in sync."""

PLAN: Final = (
    *(*KEY, "verdict", "committed_offset", "present_offset", "difference", "via"),
    *("reason", "detail"),
)
"""The columns of a plan."""

_TRANSACTION_OF: Final = "a transaction is pending on it "
_NO_FILE: Final = "a share group: kafka-share-groups --reset-offsets takes no file"


def shares_last(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort a plan by `KEY`; share groups come last."""
    is_share = pl.col("reason").eq_missing(SHARE_GROUP)
    return pl.concat(in_key_order(rows.filter(each), KEY) for each in (~is_share, is_share))


PLAN_ORDER: Final = Order((*KEY, "reason"), shares_last)

# Up to which offset the log of a data partition is still the one an offset was committed for.
# A consumer that finds another log under its offset detects it by leader epochs (KIP-320); so does
# this, before the offset is given back.

_LIMITS: Final = pl.Schema(
    {
        "topic": pl.String(),
        "partition": pl.Int32(),
        "epoch": pl.Int32(),
        "log_start_offset": pl.Int64(),
        "log_end_offset": pl.Int64(),
        "same_up_to": pl.Int64(),
        "same_by": pl.String(),
    }
)
_NO_EPOCH: Final = -1


@dataclass(frozen=True)
class DataLog:
    """What is known of the log of a partition.

    Attributes:
        log_start_offset: None where it is not known.
        log_end_offset: None where it is not known.
        epochs: (epoch, first offset), ascending; empty where they are not known.
    """

    log_start_offset: int | None = None
    log_end_offset: int | None = None
    epochs: tuple[tuple[int, int], ...] = ()

    @property
    def line(self) -> EpochLine | None:
        """Its epochs; None where they or the end are not known."""
        if not self.epochs or self.log_end_offset is None:
            return None
        return EpochLine(self.epochs, self.log_end_offset)


Logs = Mapping[tuple[str, int], DataLog]


@dataclass(frozen=True)
class State:
    """What one state knows of some whole groups.

    Attributes:
        committed: `COMMITTED` of the table `committed_offsets`.
        pending: `KEY`, `transactional_id` and `missing` of the table `pending_offsets`.
        topics: `topic`, `topic_id`, `partitions`, `has_several_ids` (nothing tells which is its
            id), `is_only_named` (nothing tells whether it is there), one row a topic that is there.
        incomplete_groups: `group_id`, `reason`: groups of which the state does not tell all.
        logs: The logs of data partitions, as far as they are known.
        knows_topics: A topic that is not in `topics` is not there.
        left_out_topics: Topics that the state was made without (`LEFT_OUT_TOPICS`).
    """

    committed: pl.DataFrame
    pending: pl.DataFrame
    topics: pl.DataFrame
    incomplete_groups: pl.DataFrame
    logs: Logs = field(default_factory=dict)
    knows_topics: bool = False
    left_out_topics: pl.DataFrame = field(default_factory=LEFT_OUT_TOPICS.to_frame)


def restore_plan(
    then: State,
    now: State,
    unfit: pl.DataFrame,
    unclean: pl.DataFrame,
    *,
    include_live: bool = False,
) -> pl.DataFrame:
    """Judge every committed offset of the past.

    Args:
        then: The state whose offsets are wanted back.
        now: The state they are brought into.
        unfit: `group_id`, `unfit`: groups of now whose offsets no tool resets, and why.
        unclean: `UNCLEAN`: in any number of rows for a partition.
        include_live: Groups that have moved on since are rewound.

    Returns:
        `PLAN`, sorted by `KEY`: `verdict` is restore, unchanged (it is there already) or refused,
        then with `reason` (words with semicolons between) and `detail`; `difference` is how many
        records the group goes forward, negative for those it reads again; `via` is plain or
        transaction. Of what was pending alone then the offset is null.
    """
    rows = then.committed.select(COMMITTED)
    rows = rows.join(_present(now), KEY, "left").join(now.left_out_topics, "topic", "left")
    rows = rows.join(unfit, "group_id", "left")
    rows = _with_untold(rows, then, now, ("missing",), ("left_out", "present_missing"))
    rows = _with_topics(rows, then, now)
    rows = rows.join(_pending(then, now), KEY, "left")
    rows = rows.join(_doubted(rows, unclean), KEY, "left")
    rows = _with_limits(rows, then.logs, now.logs)
    judged = _judged(rows, include_live=include_live)
    return in_key_order(pl.concat([judged, _only_pending(then, now)]), KEY)


def share_plan(shares: pl.DataFrame, present: pl.DataFrame) -> pl.DataFrame:
    """Return the refusals of share groups, whose start offsets no file gives back.

    Args:
        shares: `group_id`, `topic`, `partition`, `start_offset` of the past.
        present: The same of now.

    Returns:
        `PLAN`, sorted by `KEY`.
    """
    old = shares.rename({"start_offset": "committed_offset"})
    rows = old.join(present.rename({"start_offset": "present_offset"}), KEY, "left")
    refused = rows.with_columns(
        verdict=pl.lit(REFUSED),
        reason=pl.lit(SHARE_GROUP),
        detail=pl.lit(_NO_FILE),
        via=pl.lit(None, pl.String),
    )
    return in_key_order(_planned(refused), KEY)


def _present(now: State) -> pl.DataFrame:
    return now.committed.select(
        *KEY,
        present_offset="committed_offset",
        present_timestamp="commit_timestamp",
        present_missing="missing",
    )


def _with_untold(
    rows: pl.DataFrame, then: State, now: State, was: Sequence[str], present: Sequence[str]
) -> pl.DataFrame:
    """Add `untold_then` and `untold_now`: why a row cannot be told, of its group or of itself.

    What a present that cannot be told was read as is left out: it is no present offset.

    Args:
        rows: The rows.
        then: The past.
        now: The present.
        was: Columns that say why the past does not tell of the row.
        present: The same of the present.
    """
    for state, name, own in ((then, "untold_then", was), (now, "untold_now", present)):
        rows = rows.join(state.incomplete_groups.rename({"reason": name}), "group_id", "left")
        rows = rows.with_columns(pl.coalesce(name, *own).alias(name))
    is_told = pl.col("untold_now").is_null()
    return rows.with_columns(
        pl.when(is_told).then(name).alias(name) for name in ("present_offset", "present_timestamp")
    )


def _with_topics(rows: pl.DataFrame, then: State, now: State) -> pl.DataFrame:
    old = then.topics.select("topic", topic_id_then="topic_id")
    new = now.topics.select(
        *("topic", "has_several_ids", "is_only_named"),
        topic_id_now="topic_id",
        partitions_now="partitions",
    )
    rows = rows.join(old, "topic", "left").join(new, "topic", "left")
    return rows.with_columns(knows_topics=pl.lit(now.knows_topics))


def _pending(then: State, now: State) -> pl.DataFrame:
    """Return `KEY` and `pending`: which transaction is open on an offset, then or now."""
    both = pl.concat([_open(then, "then"), _open(now, "at present")])
    return both.group_by(KEY).agg(pl.max("pending"))


def _open(state: State, word: str) -> pl.DataFrame:
    """Return `KEY`, `pending` and `doubt`: the transactions that are open on offsets in a state."""
    owner = pl.col("transactional_id").fill_null("id not known")
    words = pl.format(f"{_TRANSACTION_OF}{word} ({{}})", owner)
    return state.pending.group_by(KEY).agg(
        words.max().alias("pending"), pl.col("missing").max().alias("doubt")
    )


def _doubted(rows: pl.DataFrame, unclean: pl.DataFrame) -> pl.DataFrame:
    """Return `KEY` and `unclean_at`: the last election that may have changed the log of a commit.

    What was committed while the elected broker was in sync is on its disk. Commits have the time of
    a coordinator, elections that of the controller, whose clocks may differ a little.
    """
    commits = rows.select(*KEY, "committed_offset", "commit_timestamp")
    pairs = commits.join(unclean, ["topic", "partition"])
    at = pl.col("commit_timestamp")
    surely = pl.col("in_sync_until") - pl.duration(milliseconds=SAME_CLOCK_MS)
    is_before = (at <= pl.col("unclean_at")).fill_null(value=True)
    # Before offset 0 there is nothing that could be other.
    is_kept = (at <= surely).fill_null(value=False) | (pl.col("committed_offset") == 0)
    return pairs.filter(is_before & ~is_kept).group_by(KEY).agg(pl.max("unclean_at"))


def _with_limits(rows: pl.DataFrame, then: Logs, now: Logs) -> pl.DataFrame:
    """Add what the logs allow for each partition and committed leader epoch.

    Args:
        rows: With `topic`, `partition` and `committed_leader_epoch`.
        then: The logs as the line of the past has them.
        now: The logs as they are at present.

    Returns:
        The rows with `log_start_offset`, `log_end_offset`; `same_up_to`, the offset up to which the
        present log surely is the one that was read, null where nothing shows it; and `same_by`, the
        words for it.
    """
    key = ["topic", "partition", "epoch"]
    rows = rows.with_columns(epoch=pl.col("committed_leader_epoch").fill_null(_NO_EPOCH))
    distinct = rows.select(key).unique()
    limits = [_limit(each, then, now) for each in distinct.iter_rows(named=True)]
    return rows.join(pl.DataFrame(limits, _LIMITS), key, "left")


def _limit(row: Mapping[str, Any], then: Logs, now: Logs) -> dict[str, Any]:
    key = (row["topic"], row["partition"])
    present = now.get(key, DataLog())
    same_up_to, same_by = _same_up_to(row["epoch"], then.get(key, DataLog()), present)
    return {
        **row,
        "log_start_offset": present.log_start_offset,
        "log_end_offset": present.log_end_offset,
        "same_up_to": same_up_to,
        "same_by": same_by,
    }


def _same_up_to(epoch: int, then: DataLog, now: DataLog) -> tuple[int | None, str | None]:
    line = now.line
    if line is None:
        return None, None
    if epoch > _NO_EPOCH:
        _, end = line.end_of(epoch)
        return end, f"leader epoch {epoch} ends at offset {end} of the present log"
    past = then.line
    if past is None:
        return None, None
    end = truncation_offset(past, line)
    return end, f"the log it was committed for and the present one part at offset {end}"


def _judged(rows: pl.DataFrame, *, include_live: bool) -> pl.DataFrame:
    # What cannot be told is refused even where the numbers agree by chance.
    is_told = pl.col("untold_then").is_null() & pl.col("untold_now").is_null()
    is_same = (pl.col("committed_offset") == pl.col("present_offset")) & is_told
    rows = rows.with_columns(is_same.fill_null(value=False).alias("is_same"))
    # Most offsets have not changed: reasons are sought for the others alone.
    rest = with_reasons(rows.filter(~pl.col("is_same")), refusals_of(include_live=include_live))
    is_refused = pl.col("reason").is_not_null()
    rest = rest.with_columns(
        verdict=pl.when(is_refused).then(pl.lit(REFUSED)).otherwise(pl.lit(RESTORE))
    )
    nothing = pl.lit(None, pl.String)
    there = rows.filter("is_same").with_columns(
        verdict=pl.lit(UNCHANGED), reason=nothing, detail=nothing
    )
    return pl.concat([_planned(rest), _planned(there)])


def _only_pending(then: State, now: State) -> pl.DataFrame:
    """Return the refusals of offsets that were pending then, and of which nothing was committed."""
    rows = _open(then, "then").join(then.committed, KEY, "anti")
    rows = rows.rename({"doubt": "doubt_then"}).join(_present(now), KEY, "left")
    still = _open(now, "at present").select(*KEY, "doubt")
    rows = rows.join(now.left_out_topics, "topic", "left").join(still, KEY, "left")
    untold_now = ("left_out", "present_missing", "doubt")
    rows = _with_untold(rows, then, now, ("doubt_then",), untold_now)
    refused = with_reasons(rows, REFUSALS_OF_PENDING).with_columns(
        committed_offset=pl.lit(None, pl.Int64),
        verdict=pl.lit(REFUSED),
        via=pl.lit("transaction"),
    )
    return _planned(refused)


def _planned(rows: pl.DataFrame) -> pl.DataFrame:
    difference = pl.col("committed_offset") - pl.col("present_offset")
    return rows.with_columns(difference.alias("difference")).select(PLAN)
