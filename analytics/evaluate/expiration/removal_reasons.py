"""Why a removal came when it did, in words, as far as the logs show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from analytics.evaluate.expiration.expiry import as_time
from analytics.replay.history.offset_conditions import CONSUMER_GROUP, STREAMS_GROUP, UNSUBSCRIBED
from analytics.replay.history.removal_causes import GROUP_DELETED, TOPIC_DELETED
from schemas.expiration_rules import AuditRules, rule_name

if TYPE_CHECKING:
    from pyspark.sql import Column


def one_cleanup(audit: AuditRules) -> Column:
    """Return how long after an instant the next cleanup is on time, in milliseconds."""
    interval = F.col("check_interval_ms")
    slack = (interval * audit.slack_share).cast("bigint")
    return interval + F.greatest(slack, F.lit(audit.slack_least_ms))


NO_TIME = "the record carries no time (message format 0)"
_AROUND_THE_INSTANT = f"{NO_TIME}, and those around it leave open whether it was due"


def _in_transaction() -> Column:
    return F.col("removed.position") != F.col("removed.record_offset")


def committed_ms() -> Column:
    """Return when a commit outside of transactions was made; null for one within."""
    written = F.coalesce(F.unix_millis("removed.at"), F.col("removed.commit_ms"))
    return F.when(~_in_transaction(), written)


def why_early() -> Column:
    """Return why a removal came before the offset was due."""
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


def known_surprise() -> Column:
    """Return which known surprise a removal on time is; null where it is none."""
    was_due = committed_ms() > F.col("expires_ms")
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
                as_time(committed_ms()),
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


def why_late(audit: AuditRules) -> Column:
    """Return why a removal came later than the next cleanup."""
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
    within, at = one_cleanup(audit), F.unix_millis("at")
    ready, began = F.unix_millis("ready_by"), F.unix_millis("began_at")
    return (
        (ready >= F.col("expires_ms") - F.col("check_interval_ms"))
        & (at <= ready + within)
        & (at <= began + audit.start_ms + within)
    )


def _was_left_before(audit: AuditRules) -> Column:
    """Return whether the coordinator before had come to a cleanup after the offset was due."""
    cleaned_up = F.unix_millis("idle_since") > F.col("expires_ms") + one_cleanup(audit)
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


def why_unknown() -> Column:
    """Return why nobody knows what removed an offset."""
    return (
        F.when(
            F.col("removed").isNull() & ~F.col("removed_pending") & ~F.col("repeats"),
            "the commit it removed is not in the dump",
        )
        .when(F.col("at").isNull(), _AROUND_THE_INSTANT)
        .otherwise("a cleanup under another retention, or a deletion: nothing shows which")
    )


def why_deleted() -> Column:
    """Return what shows that an offset was deleted, and did not expire."""
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
