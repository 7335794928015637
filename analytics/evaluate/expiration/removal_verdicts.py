"""Whether a removal came when it should have, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.evaluate.expiration.expiry import MAY_NOT_BE_KEPT, as_time
from analytics.evaluate.expiration.removal_reasons import (
    NO_TIME,
    committed_ms,
    known_surprise,
    one_cleanup,
    why_deleted,
    why_early,
    why_late,
    why_unknown,
)
from analytics.evaluate.expiration.retention import ASSUMED
from analytics.replay.history.removal_causes import (
    EXPIRATION,
    UNKNOWN,
)
from schemas.expiration_rules import AuditRules, ExpirationRules

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ON_TIME, EARLY, LATE, NOT_APPLICABLE, CANNOT_TELL = (
    "on_time",
    "early",
    "late",
    "not_applicable",
    "cannot_tell",
)
NO_EXPIRE_TIME_VERSION = 1
"""The value version with an expire time in it, where -1 is none."""

KAFKA_8069_ERA = "2.1-2.3"
"""In which a coordinator that loads an expire time of -1 takes it as a time (KAFKA-8069)."""


def is_unparsed_expire_time(era: ExpirationRules) -> Column:
    """Return whether KAFKA-8069 takes an offset: stored with -1, in a release that has the bug."""
    if era.name != KAFKA_8069_ERA:
        return F.lit(col=False)
    stored = F.col("removed.value_version") == NO_EXPIRE_TIME_VERSION
    return F.coalesce(
        stored & (F.col("removed.expire_ms") == -1) & ~F.col("is_kept"), F.lit(col=False)
    )


def with_verdict(removed: DataFrame, audit: AuditRules) -> DataFrame:
    """Add `verdict`, `reason`, `rule` and `expected_at`.

    Args:
        removed: Removed offsets with what `with_expiry` and `with_transactions` add, with what
            `with_removal_cause` takes and adds, `is_unparsed` (boolean: `is_unparsed_expire_time`)
            and what `with_beginning` adds.
        audit: How much later than one check interval is on time.
    """
    expired = F.col("cause") == EXPIRATION
    # Whether it was due rests on a retention that nobody gave.
    is_guess = (F.col("retention_source") == ASSUMED) & F.col("is_surely_due").isNull()
    is_undecided = F.col("undecided").isNotNull() & (F.col("cause") == UNKNOWN)
    judged = (
        F.when(is_undecided, _said(CANNOT_TELL, F.col("undecided")))
        .when(F.col("may_not_be_kept"), _said(CANNOT_TELL, F.lit(MAY_NOT_BE_KEPT)))
        .when(is_guess & F.col("removed").isNotNull(), _said(CANNOT_TELL, F.lit(_NO_RETENTION)))
        .when(expired, _of_expiration(audit))
        .when(F.col("cause") == UNKNOWN, _said(CANNOT_TELL, why_unknown()))
        .otherwise(_said(NOT_APPLICABLE, why_deleted()))
    )
    return (
        removed.withColumn("judged", judged)
        .withColumn("verdict", F.col("judged.verdict"))
        .withColumn("reason", F.col("judged.reason"))
        .withColumn("rule", F.when(expired, F.col("rule")))
        .withColumn("expected_at", F.when(expired, as_time(F.col("expires_ms"))))
        .drop("judged")
    )


def _of_expiration(audit: AuditRules) -> Column:
    expected, at = F.col("expires_ms"), F.unix_millis("at")
    within = one_cleanup(audit)
    # What was committed after the instant was not there to be removed before.
    latest = F.greatest(expected, committed_ms()) + within
    surely_on_time = (F.col("not_before_ms") >= expected) & (F.col("not_after_ms") <= latest)
    # Of an offset with an expire time of its own only the instant is known then.
    is_guess = F.col("is_interval_assumed")
    return (
        F.when(F.col("retention_source") == ASSUMED, _said(CANNOT_TELL, F.lit(_NO_RETENTION)))
        .when(
            at.isNull() & ~is_guess & F.coalesce(surely_on_time, F.lit(col=False)),
            _said(ON_TIME, known_surprise()),
        )
        .when(at.isNull(), _said(CANNOT_TELL, F.lit(NO_TIME)))
        .when((at < expected) & _is_surely_early(), _said(EARLY, why_early()))
        .when(at < expected, _said(CANNOT_TELL, why_early()))
        .when(is_guess, _said(CANNOT_TELL, F.lit(_NO_INTERVAL)))
        .when(at <= latest, _said(ON_TIME, known_surprise()))
        .otherwise(_said(LATE, why_late(audit)))
    )


_NO_RETENTION = (
    "the retention is assumed: without the brokers' settings it cannot be told when it was due"
)
_NO_INTERVAL = (
    "not early; how often the coordinator cleans up is assumed: without the brokers' settings it "
    "cannot be told whether it was late"
)


def _is_surely_early() -> Column:
    """Return whether the settings given were those in force, or did not matter.

    A broker reads its file when it starts: what was in force before the last start nobody knows,
    and without the metadata log not even when that was.
    """
    same_settings = F.col("leader").isNotNull() & F.col("restarted_since").isNull()
    return F.col("is_unparsed") | same_settings


def _said(verdict: str, reason: Column) -> Column:
    return F.struct(F.lit(verdict).alias("verdict"), reason.alias("reason"))
