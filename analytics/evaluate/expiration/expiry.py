"""When an offset expires, by the rules of an era (``OffsetExpirationConditionImpl``, KIP-211)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.replay.log.stored_values import LAST_MILLISECOND
from schemas.expiration_rules import ExpirationRules, rule_names

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NO_EXPIRE_TIME = -1
EXPIRY = (
    "rule",
    "base_ms",
    "retention_ms",
    "retention_source",
    "expires_ms",
    "goes_after",
    "is_kept",
)

MAY_NOT_BE_KEPT = (
    "a streams group of 4.1 keeps the offsets of its topics once its topology is configured, after "
    "a load with the next heartbeat: that leaves no record"
)
"""Why nobody can tell whether such a group kept one (``StreamsGroup.isSubscribedToTopic``)."""


def with_expiry(
    rows: DataFrame, era: ExpirationRules, before: ExpirationRules | None = None
) -> DataFrame:
    """Add what decides about each offset, and from when on it does.

    Args:
        rows: What `with_condition` and `with_retention` add, `commit_ms` and `expire_ms` as they
            are stored, `blocked_until` (timestamp: when the last transaction ended that had a
            commit pending; null where none did), and `is_before` (boolean) where `before` is given.
        era: The rules.
        before: The rules of rows that `is_before` marks: they are of a release before an upgrade.

    Returns:
        The rows with `rule`, `base_ms` (null where nothing counts), `retention_ms` and
        `retention_source` (of a stored expire time: how far it is from the commit, and record),
        `expires_ms` (the instant; null where the offset is kept), `goes_after` (boolean: a cleanup
        at exactly that instant leaves it) and `is_kept` (boolean).
    """
    expiry = _expiry(era)
    if before is not None:
        expiry = F.when(F.col("is_before"), _expiry(before)).otherwise(expiry)
    said = rows.withColumn("expiry", expiry)
    for name in EXPIRY:
        said = said.withColumn(name, F.col(f"expiry.{name}"))
    return said.drop("expiry")


def is_due(at_ms: Column) -> Column:
    """Return whether a cleanup at an instant takes what `with_expiry` said of; false if kept."""
    expires = F.col("expires_ms")
    due = F.when(F.col("goes_after"), at_ms > expires).otherwise(at_ms >= expires)
    return F.coalesce(due, F.lit(col=False))


def as_time(milliseconds: Column) -> Column:
    """Return epoch milliseconds as a timestamp, the nearest one where Spark has none for them."""
    within = F.least(F.greatest(milliseconds, F.lit(0)), F.lit(LAST_MILLISECOND))
    return F.when(milliseconds.isNotNull(), F.timestamp_millis(within.cast("bigint")))


def has_expire_time() -> Column:
    """Return whether the commit has an expire time of its own (``-1`` is none)."""
    stored = F.col("expire_ms")
    return stored.isNotNull() & (stored != NO_EXPIRE_TIME)


def _expiry(era: ExpirationRules) -> Column:
    names = rule_names()
    kept_by = F.when(F.col("kept_by").isin(*era.heeds), F.col("kept_by"))
    by_record = has_expire_time()
    if era.expire_timestamp != "always":
        by_record &= kept_by.isNull()
    base = _base(era)
    # A base of nothing keeps as well: share groups, and what an era has no rule for.
    kept = ~by_record & (kept_by.isNotNull() | base.isNull())
    rule = F.when(by_record, names[era.rule_of_expire_timestamp])
    if era.per_offset:
        rule = rule.otherwise(names["per_offset"])
    else:
        rule = rule.otherwise(_named(F.coalesce(kept_by, F.col("condition"))))
    instant = F.when(by_record, F.col("expire_ms")).otherwise(base + F.col("retention_ms"))
    if era.heeds:
        instant = F.greatest(instant, _when_free(era, by_record))
    return F.struct(
        rule.alias("rule"),
        F.when(by_record, F.col("commit_ms")).when(~kept, base).alias("base_ms"),
        F.when(by_record, F.col("expire_ms") - F.col("commit_ms"))
        .otherwise(F.col("retention_ms"))
        .alias("retention_ms"),
        F.when(by_record, "record").otherwise(F.col("retention_source")).alias("retention_source"),
        F.when(~kept, instant).alias("expires_ms"),
        F.lit(era.due == "after").alias("goes_after"),
        kept.alias("is_kept"),
    )


def _base(era: ExpirationRules) -> Column:
    commit = F.col("commit_ms")
    bases = {
        "commit": commit,
        "state": F.coalesce("state_ms", commit),
        "end_of_protection": F.coalesce(F.unix_millis("kept_until"), commit),
        "none": F.lit(None).cast("bigint"),
    }
    chosen = bases["none"]
    for condition, base in era.counts_from.items():
        chosen = F.when(F.col("condition") == condition, bases[base]).otherwise(chosen)
    return chosen


def _when_free(era: ExpirationRules, by_record: Column) -> Column:
    """Return when the last of what kept the offset ended; null where nothing did."""
    ends = [F.unix_millis("kept_until")]
    if era.expire_timestamp == "always":
        ends = [F.when(~by_record, each) for each in ends]
    if era.pending_transaction_keeps:
        ends.append(F.unix_millis("blocked_until"))
    return F.greatest(*ends, F.lit(None).cast("bigint"))


def _named(what: Column) -> Column:
    name = F.lit(None).cast("string")
    for key, said in rule_names().items():
        name = F.when(what == key, said).otherwise(name)
    return name
