"""When each committed offset expires, and what keeps it: the table `offset_expiration`.

By the rules of an era (``OffsetExpirationConditionImpl``, KIP-211).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from analytics.epoch_times import LAST_MS
from analytics.questions.expiration.offset_log import OffsetLog, with_transactions
from analytics.questions.expiration.retention_settings import Retention, with_retention
from analytics.replay.log.losses import of_partition
from analytics.replay.log.spans import TIME
from analytics.replay.offsets.commit_rows import GROUP, KEY, TOPIC
from analytics.replay.offsets.effective_commits import COMMIT
from analytics.replay.removals.removed_offsets import (
    AT_THE_END,
    BY_NUMBERS,
    STREAMS_GROUP,
    UNSUBSCRIBED,
    with_condition,
)
from schemas import table
from schemas.expiration_rules import OFFSET_STATUSES, ExpirationRules, rule_name, rule_names

# When an offset expires, by the rules of an era.

NO_EXPIRE_TIME: Final = -1

MAY_NOT_BE_KEPT: Final = (
    "a streams group of 4.1 keeps the offsets of its topics once its topology is configured, after "
    "a load with the next heartbeat: that leaves no record"
)
"""Why nobody can tell whether such a group kept one (``StreamsGroup.isSubscribedToTopic``)."""

WHAT: Final = pl.Enum(list(rule_names()))
"""What a group is, or keeps an offset: rows that have it so are judged sooner than by texts."""
RULE: Final = pl.Enum(list(dict.fromkeys(rule_names().values())))


def with_expiry(
    rows: pl.DataFrame, era: ExpirationRules, before: ExpirationRules | None = None
) -> pl.DataFrame:
    """Add what decides about each offset, and from when on it does.

    Args:
        rows: What `with_condition` and `with_retention` add, `commit_ms` and `expire_ms` as they
            are stored, `blocked_until` (timestamp: when the last transaction ended that had a
            commit pending; null where none did), and `is_before` (boolean) where `before` is given.
        era: The rules.
        before: The rules of rows that `is_before` marks: they are of a release before an upgrade.

    Returns:
        The rows with `rule` (`RULE`), `base_ms` (null where nothing counts), `retention_ms` and
        `retention_source` (of a stored expire time: how far it is from the commit, and record),
        `expires_ms` (the instant; null where the offset is kept), `goes_after` (boolean: a cleanup
        at exactly that instant leaves it) and `is_kept` (boolean).
    """
    expiry = _expiry(era)
    if before is not None:
        is_before = pl.col("is_before")
        expiry = {
            name: pl.when(is_before).then(_expiry(before)[name]).otherwise(said)
            for name, said in expiry.items()
        }
    return rows.with_columns(said.alias(name) for name, said in expiry.items())


def is_due(at_ms: pl.Expr) -> pl.Expr:
    """Return whether a cleanup at an instant takes what `with_expiry` said of; false if kept."""
    expires = pl.col("expires_ms")
    due = pl.when("goes_after").then(at_ms > expires).otherwise(at_ms >= expires)
    return due.fill_null(value=False)


def as_time(milliseconds: pl.Expr) -> pl.Expr:
    """Return epoch milliseconds as a timestamp, the nearest one where tables have none for them."""
    return (milliseconds.clip(0, LAST_MS) * 1000).cast(pl.Datetime("us")).cast(TIME)


def as_ms(time: str) -> pl.Expr:
    """Return a timestamp's epoch milliseconds."""
    return pl.col(time).dt.epoch("ms")


def has_expire_time() -> pl.Expr:
    """Return whether the commit has an expire time of its own (``-1`` is none)."""
    return pl.col("expire_ms").fill_null(NO_EXPIRE_TIME) != NO_EXPIRE_TIME


def _expiry(era: ExpirationRules) -> dict[str, pl.Expr]:
    names = rule_names()
    kept_by = pl.lit(None, WHAT)
    if era.heeds:
        kept_by = pl.when(pl.col("kept_by").is_in(era.heeds)).then(pl.col("kept_by").cast(WHAT))
    by_record = has_expire_time()
    if era.expire_timestamp != "always":
        by_record &= kept_by.is_null()
    base = _base(era)
    # A base of nothing keeps as well: share groups, and what an era has no rule for.
    kept = ~by_record & (kept_by.is_not_null() | base.is_null())
    otherwise = (
        pl.lit(names["per_offset"], RULE)
        if era.per_offset
        else pl.coalesce(kept_by, pl.col("condition").cast(WHAT)).replace_strict(
            names, default=None, return_dtype=RULE
        )
    )
    explicit = pl.lit(names[era.rule_of_expire_timestamp], RULE)
    rule = pl.when(by_record).then(explicit).otherwise(otherwise)
    instant = pl.when(by_record).then("expire_ms").otherwise(base + pl.col("retention_ms"))
    if era.heeds:
        instant = pl.max_horizontal(instant, *_when_free(era, by_record))
    own = difference(pl.col("expire_ms"), pl.col("commit_ms"))
    source = pl.col("retention_source")
    return {
        "rule": rule,
        "base_ms": pl.when(by_record).then("commit_ms").when(~kept).then(base),
        "retention_ms": pl.when(by_record).then(own).otherwise("retention_ms"),
        "retention_source": pl.when(by_record).then(pl.lit("record")).otherwise(source),
        "expires_ms": pl.when(~kept).then(instant),
        "goes_after": pl.lit(era.due == "after"),
        "is_kept": kept,
    }


def difference(later: pl.Expr, earlier: pl.Expr) -> pl.Expr:
    """Return by how much a number is more than another, as far as a number of 64 bits goes.

    A client may have stored any expire time.
    """
    least, most = (pl.lit(each, pl.Int128) for each in (-(2**63), 2**63 - 1))
    wide = later.cast(pl.Int128) - earlier.cast(pl.Int128)
    return wide.clip(least, most).cast(pl.Int64)


def _base(era: ExpirationRules) -> pl.Expr:
    commit = pl.col("commit_ms")
    bases = {
        "commit": commit,
        "state": pl.coalesce("state_ms", commit),
        "end_of_protection": pl.coalesce(as_ms("kept_until"), commit),
    }
    chosen = pl.lit(None, pl.Int64)
    for condition, base in era.counts_from.items():
        if base in bases:
            is_so = pl.col("condition") == condition
            chosen = pl.when(is_so).then(bases[base]).otherwise(chosen)
    return chosen


def _when_free(era: ExpirationRules, by_record: pl.Expr) -> list[pl.Expr]:
    """Return when each of what kept the offset ended; null where nothing did."""
    ends = [as_ms("kept_until")]
    if era.expire_timestamp == "always":
        ends = [pl.when(~by_record).then(each) for each in ends]
    if era.pending_transaction_keeps:
        ends.append(as_ms("blocked_until"))
    return ends


# How the offsets of each group fare, and which are the worst: of many, without a row for each.
#
# Takes rows of the table `offset_expiration`, of whole groups.

_KEY: Final = table("offset_expiration").key
FATE: Final = ["group_id", "rule", "status"]
"""What a row of fates is of, and the order in which they come."""
_RANK: Final = "rank"


def fates(expiration: pl.DataFrame) -> pl.DataFrame:
    """Return `group_id`, `rule`, `status`, how many `offsets` fare so, and the first `expires_at`.

    Groups come in any order.
    """
    return expiration.group_by(FATE).agg(
        pl.len().cast(pl.Int64).alias("offsets"), pl.col("expires_at").min()
    )


def all_fates(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return `fates` of all groups, in order: a group may lie in two partitions of the topic."""
    found = pl.concat(parts).sort(FATE)
    is_same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in FATE)
    if not found.select(is_same.slice(1).any()).item():
        return found
    summed = found.group_by(FATE).agg(pl.col("offsets").sum(), pl.col("expires_at").min())
    return summed.sort(FATE)


def in_fate_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows of fates."""
    return rows.sort(FATE, maintain_order=True)


def notes(expiration: pl.DataFrame) -> pl.DataFrame:
    """Return each `note`, of how many `offsets`, and the key of the first of them.

    `is_untold` says whether it is why nobody can tell when they expire.
    """
    is_untold = (pl.col("status") == UNTOLD).alias("is_untold")
    noted = expiration.filter(pl.col("note").is_not_null()).select("note", is_untold, *_KEY)
    return _first_notes(noted.with_columns(pl.lit(1, pl.Int64).alias("offsets")))


def all_notes(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return `notes` of all groups, in the order of their first offsets."""
    return _first_notes(pl.concat(parts))


def _first_notes(noted: pl.DataFrame) -> pl.DataFrame:
    ordered = noted.sort(_KEY, maintain_order=True).group_by(
        "note", "is_untold", maintain_order=True
    )
    return ordered.agg(pl.col("offsets").sum(), pl.col(_KEY).first())


def worst_of(expiration: pl.DataFrame, most: int | None) -> pl.DataFrame:
    """Return so many rows with the worst statuses, the first by key of the last of them."""
    if most is None or expiration.height <= most:
        return expiration
    ranks = {word: rank for rank, word in enumerate(OFFSET_STATUSES)}
    rank = pl.col("status").replace_strict(ranks, return_dtype=pl.Int8).alias(_RANK)
    return expiration.with_columns(rank).bottom_k(most, by=[_RANK, *_KEY]).drop(_RANK)


PROTECTED, SCHEDULED, DUE, OVERDUE, BLOCKED, UNTOLD = (
    "protected",
    "scheduled",
    "due",
    "overdue",
    "blocked",
    "cannot_tell",
)
_RECORD: Final = ("coordinator_partition", "record_offset")
_STATUS: Final = pl.Enum(OFFSET_STATUSES)


def offset_expiration(
    committed: pl.DataFrame,
    log: OffsetLog,
    retention: Retention,
    as_of_ms: int,
    *,
    groups: pl.DataFrame | None = None,
    instants: Mapping[int, int] | None = None,
    ends: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return the rows of the table `offset_expiration`, and more columns.

    Args:
        committed: The state table `committed_offsets` at the instant: `coordinator_partition`,
            `record_offset`, `complete` and `missing`.
        log: The log up to the instant, of all groups that have committed.
        retention: Of the coordinators.
        as_of_ms: The instant, in epoch milliseconds.
        groups: The state table `groups`, which says what is not known of whom; None: all is known.
        instants: That of partitions of `__consumer_offsets` that have another one.
        ends: `topic`, `partition`, `log_start_offset`, `log_end_offset` of data partitions, as far
            as they are known; None where none is.
    """
    placed = _with_missing(in_force(committed, log), committed, groups, log)
    known = with_expiry(with_retention(placed, retention), log.era)
    now = pl.coalesce(of_partition(instants or {}), pl.lit(as_of_ms, pl.Int64))
    blocks = pl.col("blocking_producers").is_not_null() & log.era.pending_transaction_keeps
    # A commit that came, or that a marker made effective, late was not there to be removed before.
    in_force_since = pl.coalesce("effective_at", "written_at").dt.epoch("ms")
    next_cleanup = pl.max_horizontal("expires_ms", in_force_since) + pl.col("check_interval_ms")
    judged = (
        known.with_columns(now.alias("now_ms"))
        # No record was written after the instant: a time beyond it was that of a wrong clock.
        .with_columns(_until_now("written_at"), _until_now("effective_at"))
        .with_columns(is_due(pl.col("now_ms")).alias("is_due"))
        .with_columns(
            (pl.col("is_due") & blocks).alias("is_blocked"),
            pl.when(~pl.col("is_kept")).then(next_cleanup).alias("cleanup_ms"),
            _why_untold(streams_keep=log.replay.streams_readiness_is_recorded).alias("why_untold"),
        )
        .with_columns(
            pl.col("why_untold").is_null().alias("is_told"),
            pl.coalesce("why_untold", _remark(rebalance_keeps=log.era.rebalance_keeps)).alias(
                "note"
            ),
        )
    )
    is_told = pl.col("is_told")
    rule = pl.when("is_blocked").then(pl.lit(rule_name("pending"), RULE)).otherwise("rule")
    times = {
        "base_timestamp": "base_ms",
        "expires_at": "expires_ms",
        "next_cleanup_at": "cleanup_ms",
    }
    rows = judged.with_columns(
        _status().alias("status"),
        rule.alias("rule"),
        pl.lit(log.era.name).alias("rules"),
        *(pl.when(is_told).then(as_time(pl.col(each))).alias(name) for name, each in times.items()),
        pl.when(is_told & pl.col("is_blocked")).then(_producers()).alias("blocked_by"),
    )
    return _with_ends(rows, ends)


def in_force(committed: pl.DataFrame, log: OffsetLog) -> pl.DataFrame:
    """Return committed offsets with what their expiry rests on.

    Returns:
        `KEY`, `committed_offset`, `commit_ms`, `expire_ms`, `written_at` (the time of the
        record), `effective_at` (of a commit in a transaction the time of its marker, else null),
        and what `with_condition` and `with_transactions` add.
    """
    commits = log.records.commits.select(
        *(*KEY, GROUP, TOPIC),
        *("record_offset", "committed_offset", "commit_ms", "expire_ms"),
        pl.col("committed_at").alias("written_at"),
        pl.lit(AT_THE_END, pl.Int64).alias("place"),
    )
    live = commits.join(committed.select(_RECORD), on=list(_RECORD), how="semi")
    effective = pl.col("until_at").alias("effective_at")
    markers = log.pending.filter(pl.col("outcome") == COMMIT)
    live = _beside(live, markers.select(*KEY, "record_offset", effective), *KEY, "record_offset")
    # All partitions of a group's topic are under one condition.
    topics = log.names.select(GROUP, TOPIC, pl.lit(AT_THE_END, pl.Int64).alias("place"))
    told = with_condition(topics, log.groups, log.protections, log.protects, BY_NUMBERS)
    conditions = told.sort(TOPIC).drop(GROUP, TOPIC, "place")
    conditions = conditions.cast({"condition": WHAT, "kept_by": WHAT})[live[TOPIC]]
    return with_transactions(live.hstack(conditions), log.pending)


def _beside(rows: pl.DataFrame, columns: pl.DataFrame, *key: str) -> pl.DataFrame:
    """Add what is told of some keys, null where nothing is; a key has one row of that at most."""
    if columns.is_empty():
        nothing = {name: kind for name, kind in columns.schema.items() if name not in key}
        return rows.with_columns(pl.lit(None, kind).alias(name) for name, kind in nothing.items())
    return rows.join(columns, on=list(key), how="left")


def _with_missing(
    expiring: pl.DataFrame, committed: pl.DataFrame, groups: pl.DataFrame | None, log: OffsetLog
) -> pl.DataFrame:
    """Add `missing`: what the dump lacks that the expiry of an offset rests on; null where none."""

    def lacking(rows: pl.DataFrame, *key: str) -> pl.DataFrame:
        return rows.filter(~pl.col("complete")).select(*key, pl.col("missing").alias("lacks"))

    incomplete = lacking(committed, *_RECORD).rename({"lacks": "missing"})
    expiring = _beside(expiring, incomplete, *_RECORD)
    # Where the era heeds nothing of the group, nothing rests on what is not known of it.
    if groups is None or not log.era.heeds:
        return expiring
    lacks = lacking(groups, "group_id").cast(
        {"group_id": expiring.schema["group_id"]}, strict=False
    )
    if lacks.is_empty():
        return expiring
    of_group = _beside(expiring, lacks, "group_id")
    return of_group.with_columns(pl.coalesce("missing", "lacks").alias("missing")).drop("lacks")


def _until_now(name: str) -> pl.Expr:
    now = as_time(pl.col("now_ms"))
    return pl.when(pl.col(name) > now).then(now).otherwise(name).alias(name)


def _producers() -> pl.Expr:
    listed = pl.col("blocking_producers").cast(pl.List(pl.String)).list.join(", ")
    return pl.concat_str(pl.lit("open transaction of producer "), listed)


def _status() -> pl.Expr:
    cases = {
        UNTOLD: ~pl.col("is_told"),
        PROTECTED: pl.col("is_kept"),
        SCHEDULED: ~pl.col("is_due"),
        BLOCKED: pl.col("is_blocked"),
        OVERDUE: pl.col("now_ms") > pl.col("cleanup_ms"),
    }
    status = pl.lit(DUE, _STATUS)
    for word, is_so in reversed(cases.items()):
        status = pl.when(is_so).then(pl.lit(word, _STATUS)).otherwise(status)
    return status


def _why_untold(*, streams_keep: bool) -> pl.Expr:
    """Return why nobody can tell when an offset expires; null where that can be told.

    Args:
        streams_keep: Whether a streams group with members surely keeps offsets of its topics.
    """
    own = pl.when(has_expire_time()).then("expire_ms")
    otherwise = pl.coalesce(own, pl.col("commit_ms") + pl.col("retention_ms"))
    rests_on_heartbeat = (pl.col("condition") == STREAMS_GROUP) & pl.col("is_kept")
    rests_on_heartbeat &= (otherwise <= pl.col("now_ms")) & (not streams_keep)
    return pl.coalesce("missing", pl.when(rests_on_heartbeat).then(pl.lit(MAY_NOT_BE_KEPT)))


def _remark(*, rebalance_keeps: bool) -> pl.Expr:
    """Return what a row cannot show by itself; null where there is nothing to add.

    Args:
        rebalance_keeps: Whether a group of consumers keeps all while it rebalances.
    """
    has_members = pl.col("condition") == UNSUBSCRIBED
    may_rebalance = has_members & rebalance_keeps
    # Kept by what its members subscribe to, and by nothing while they rebalance.
    may_be_swept = has_members & pl.col("is_kept") & (not rebalance_keeps)
    may_be_swept &= pl.col("commit_ms") + pl.col("retention_ms") <= pl.col("now_ms")
    is_over = pl.col("is_due") & ~pl.col("is_kept")
    due = as_time(pl.col("expires_ms"))
    effective = pl.col("effective_at")
    return (
        pl.when(is_over & may_rebalance)
        .then(pl.lit("kept while the group rebalances, which no record shows"))
        .when(may_be_swept)
        .then(pl.lit("KAFKA-13636: a cleanup while the group rebalances may take it"))
        .when(effective > due)
        .then(pl.lit("in force only since the COMMIT marker of its transaction, after it was due"))
        .when(effective.is_null() & (pl.col("written_at") > due))
        .then(pl.lit("due already when it was committed"))
    )


def _with_ends(rows: pl.DataFrame, ends: pl.DataFrame | None) -> pl.DataFrame:
    """Add what a consumer would read again, or miss, that comes back without its offset."""
    named = ("log_start_offset", "log_end_offset")
    if ends is None:
        rows = rows.with_columns(pl.lit(None, pl.Int64).alias(name) for name in named)
    else:
        known = ends.select("topic", "partition", *named)
        known = known.cast({"topic": rows.schema["topic"]}, strict=False)
        rows = rows.join(known, on=["topic", "partition"], how="left")
    committed = pl.col("committed_offset")
    return rows.with_columns(
        (committed - pl.col("log_start_offset")).clip(0).alias("read_again_if_earliest"),
        (pl.col("log_end_offset") - committed).clip(0).alias("skipped_if_latest"),
    )
