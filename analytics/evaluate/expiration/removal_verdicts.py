"""Whether a removal came when it should have, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.evaluate.expiration.expiry import MAY_NOT_BE_KEPT, as_time
from analytics.evaluate.expiration.retention import ASSUMED
from analytics.replay.history.offset_conditions import CONSUMER_GROUP, STREAMS_GROUP, UNSUBSCRIBED
from analytics.replay.history.removal_causes import (
    EXPIRATION,
    GROUP_DELETED,
    TOPIC_DELETED,
    UNKNOWN,
)
from schemas.expiration_rules import AuditRules, ExpirationRules, rule_name

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
        .when(F.col("cause") == UNKNOWN, _said(CANNOT_TELL, _why_unknown()))
        .otherwise(_said(NOT_APPLICABLE, _why_deleted()))
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
    within = _one_cleanup(audit)
    # What was committed after the instant was not there to be removed before.
    latest = F.greatest(expected, _committed_ms()) + within
    surely_on_time = (F.col("not_before_ms") >= expected) & (F.col("not_after_ms") <= latest)
    # Of an offset with an expire time of its own only the instant is known then.
    is_guess = F.col("is_interval_assumed")
    return (
        F.when(F.col("retention_source") == ASSUMED, _said(CANNOT_TELL, F.lit(_NO_RETENTION)))
        .when(
            at.isNull() & ~is_guess & F.coalesce(surely_on_time, F.lit(col=False)),
            _said(ON_TIME, _known()),
        )
        .when(at.isNull(), _said(CANNOT_TELL, F.lit(_NO_TIME)))
        .when((at < expected) & _is_surely_early(), _said(EARLY, _why_early()))
        .when(at < expected, _said(CANNOT_TELL, _why_early()))
        .when(is_guess, _said(CANNOT_TELL, F.lit(_NO_INTERVAL)))
        .when(at <= latest, _said(ON_TIME, _known()))
        .otherwise(_said(LATE, _why_late(audit)))
    )


def _one_cleanup(audit: AuditRules) -> Column:
    """Return how long after an instant the next cleanup is on time, in milliseconds."""
    interval = F.col("check_interval_ms")
    slack = (interval * audit.slack_share).cast("bigint")
    return interval + F.greatest(slack, F.lit(audit.slack_least_ms))


_NO_RETENTION = (
    "the retention is assumed: without the brokers' settings it cannot be told when it was due"
)
_NO_INTERVAL = (
    "not early; how often the coordinator cleans up is assumed: without the brokers' settings it "
    "cannot be told whether it was late"
)
_NO_TIME = "the record carries no time (message format 0)"
_AROUND_THE_INSTANT = f"{_NO_TIME}, and those around it leave open whether it was due"


def _in_transaction() -> Column:
    return F.col("removed.position") != F.col("removed.record_offset")


def _committed_ms() -> Column:
    """Return when a commit outside of transactions was made; null for one within."""
    written = F.coalesce(F.unix_millis("removed.at"), F.col("removed.commit_ms"))
    return F.when(~_in_transaction(), written)


def _is_surely_early() -> Column:
    """Return whether the settings given were those in force, or did not matter.

    A broker reads its file when it starts: what was in force before the last start nobody knows,
    and without the metadata log not even when that was.
    """
    same_settings = F.col("leader").isNotNull() & F.col("restarted_since").isNull()
    return F.col("is_unparsed") | same_settings


def _why_early() -> Column:
    sooner = "sooner than the retention given, and other groups with it: "
    return (
        F.when(
            F.col("is_unparsed"),
            "KAFKA-8069: stored with expire time -1, which the coordinator took as a time when it "
            "loaded its partition",
        )
        .when(
            F.col("restarted_since").isNotNull(),
            _timed(
                f"{sooner}groups were deleted together, or the retention was shorter before the "
                "broker started again at ",
                F.col("restarted_since"),
            ),
        )
        .when(
            F.col("leader").isNotNull(),
            f"{sooner}the broker has not started again since, so its settings were the same: they "
            "are not those given, or groups were deleted together",
        )
        .otherwise(
            f"{sooner}the retention was shorter then, or groups were deleted together; no metadata "
            "log tells whether the broker started again since, with other settings"
        )
    )


def _known() -> Column:
    """Return which known surprise a removal on time is; null where it is none."""
    was_due = _committed_ms() > F.col("expires_ms")
    by_record = F.col("rule") == rule_name("per_offset")
    is_modern = F.col("condition").isin(CONSUMER_GROUP, STREAMS_GROUP)
    had_not_been_empty_long = F.unix_millis("at") < F.unix_millis("kept_until") + F.col(
        "retention_ms"
    )
    return (
        F.when(
            was_due,
            _timed(
                "due already when it was committed, and gone with the next cleanup: committed at ",
                as_time(_committed_ms()),
            ),
        )
        .when(
            by_record & F.col("kept_by").isNotNull(),
            "KAFKA-4682: the group was active and had not committed for long; since 2.1 an active "
            "group keeps its offsets",
        )
        .when(
            is_modern & had_not_been_empty_long,
            _timed(
                "counted from the commit, as of all groups of this type: the group had left the "
                "topic only at ",
                F.col("kept_until"),
            ),
        )
    )


def _why_late(audit: AuditRules) -> Column:
    due, began = as_time(F.col("expires_ms")), F.col("began_at")
    marker_came_late = _in_transaction() & (F.col("removed.at") > due)
    return (
        F.when(
            marker_came_late,
            _timed("the COMMIT marker came after the instant, at ", F.col("removed.at")),
        )
        .when(
            _began_anew(audit) & F.col("by_restart"),
            _timed(
                "the coordinator was restarted, and its cleanups began anew: the broker kept its "
                "leader epoch, and registered again at ",
                began,
            ),
        )
        .when(
            _began_anew(audit) & _was_left_before(audit),
            _timed(
                "the cleanups before left it too, and the first one after a restart or move took "
                "it: something kept it that only a coordinator's memory had; leader epoch since ",
                began,
            ),
        )
        .when(
            _began_anew(audit) & F.col("leader").isNotNull(),
            _timed(
                "the coordinator was restarted or moved, and its cleanups began anew: leader epoch "
                "since ",
                began,
            ),
        )
        .when(
            _began_anew(audit),
            _timed(
                "the coordinator was restarted or moved, and its cleanups began anew: leader epoch "
                "first seen at ",
                began,
            ),
        )
        .when(
            F.col("condition") == UNSUBSCRIBED,
            "late, or kept by a rebalance (PreparingRebalance), which no record shows",
        )
        .otherwise(_no_reason())
    )


def _began_anew(audit: AuditRules) -> Column:
    """Return whether the coordinator was at its first cleanup since it began.

    It loads its partition first, which took no longer than until its first record, and no longer
    than `AuditRules.start_ms`: behind that a first record shows only that nobody wrote any.
    """
    within, at = _one_cleanup(audit), F.unix_millis("at")
    ready, began = F.unix_millis("ready_by"), F.unix_millis("began_at")
    return (
        (ready >= F.col("expires_ms") - F.col("check_interval_ms"))
        & (at <= ready + within)
        & (at <= began + audit.start_ms + within)
    )


def _was_left_before(audit: AuditRules) -> Column:
    """Return whether the coordinator before had come to a cleanup after the offset was due."""
    cleaned_up = F.unix_millis("idle_since") > F.col("expires_ms") + _one_cleanup(audit)
    return F.coalesce(cleaned_up, F.lit(col=False))


def _no_reason() -> Column:
    """Return what remains when neither log shows why; settings change only where a broker starts.

    The metadata log has every start of a broker, so without one they were what they are at the end.
    """
    nothing = "the log shows no reason: "
    failed = f"{nothing}the coordinator was not restarted; a cleanup that failed"
    return (
        F.when(
            F.col("leader").isNull(),
            f"{nothing}a restart that kept the leader epoch, a cleanup that failed or a longer "
            "retention before leaves no record",
        )
        .when(F.col("restarted_since").isNull(), f"{failed} leaves no record")
        .otherwise(
            _timed(
                f"{failed} leaves no record, nor does a longer retention before the broker started "
                "again at ",
                F.col("restarted_since"),
            )
        )
    )


def _why_unknown() -> Column:
    return (
        F.when(
            F.col("removed").isNull() & ~F.col("removed_pending") & ~F.col("repeats"),
            "the commit it removed is not in the dump",
        )
        .when(F.col("at").isNull(), _AROUND_THE_INSTANT)
        .otherwise("a cleanup under another retention, or a deletion: nothing shows which")
    )


def _why_deleted() -> Column:
    cause = F.col("cause")
    return (
        F.when(
            (cause == TOPIC_DELETED) & F.col("topic_deleted_at").isNotNull(),
            _timed("the topic was deleted at ", F.col("topic_deleted_at")),
        )
        .when(cause == TOPIC_DELETED, "not due, and the topic is gone from the dump")
        .when(F.col("group_ended"), "not due, and the group ended with it")
        .when(cause == GROUP_DELETED, "not due, and nothing of the group was left")
        .when(F.col("is_kept"), "not due: the group kept it, and stayed")
        .otherwise("not due, and the group stayed")
    )


def _timed(words: str, at: Column) -> Column:
    return F.concat(F.lit(words), F.date_format(at, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"))


def _said(verdict: str, reason: Column) -> Column:
    return F.struct(F.lit(verdict).alias("verdict"), reason.alias("reason"))
