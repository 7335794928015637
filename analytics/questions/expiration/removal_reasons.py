"""Why a removal came when it did, in words, as far as the logs show it."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.questions.expiration.expiry import as_ms, as_time
from analytics.replay.removals.removal_causes import GROUP_DELETED, LOW, TOPIC_DELETED
from analytics.replay.spans.conditions import CONSUMER_GROUP, STREAMS_GROUP, UNSUBSCRIBED
from schemas.expiration_rules import AuditRules, rule_name


def one_cleanup(audit: AuditRules) -> pl.Expr:
    """Return how long after an instant the next cleanup is on time, in milliseconds."""
    interval = pl.col("check_interval_ms")
    slack = (interval * audit.slack_share).cast(pl.Int64)
    return interval + slack.clip(audit.slack_least_ms)


NO_TIME: Final = "the record carries no time (message format 0)"
_AROUND_THE_INSTANT: Final = f"{NO_TIME}, and those around it leave open whether it was due"


def _in_transaction() -> pl.Expr:
    return pl.col("removed_position") != pl.col("removed_record_offset")


def committed_ms() -> pl.Expr:
    """Return when a commit outside of transactions was made; null for one within."""
    written = pl.coalesce(as_ms("removed_at"), "removed_commit_ms")
    return pl.when(~_in_transaction()).then(written)


def why_early() -> pl.Expr:
    """Return why a removal came before the offset was due; null where nothing shows it."""
    return pl.when("is_unparsed").then(
        pl.lit(
            "KAFKA-8069: stored with expire time -1, which the coordinator took as a time when "
            "it loaded its partition"
        )
    )


def known_surprise() -> pl.Expr:
    """Return which known surprise a removal on time is; null where it is none."""
    was_due = committed_ms() > pl.col("expires_ms")
    by_record = pl.col("rule") == rule_name("per_offset")
    is_modern = pl.col("condition").is_in([CONSUMER_GROUP, STREAMS_GROUP])
    had_not_been_empty_long = as_ms("at") < as_ms("kept_until") + pl.col("retention_ms")
    return (
        pl.when(was_due)
        .then(
            _timed(
                "due already when it was committed, and gone with the next cleanup: committed at ",
                as_time(committed_ms()),
            )
        )
        .when(by_record & pl.col("kept_by").is_not_null())
        .then(
            pl.lit(
                "KAFKA-4682: the group was active and had not committed for long; since 2.1 an "
                "active group keeps its offsets"
            )
        )
        .when(is_modern & had_not_been_empty_long)
        .then(
            _timed(
                "counted from the commit, as of all groups of this type: the group had left the "
                "topic only at ",
                pl.col("kept_until"),
            )
        )
    )


def why_late(audit: AuditRules, *, rebalance_keeps: bool) -> pl.Expr:
    """Return why a removal came later than the next cleanup.

    Args:
        audit: What is on time.
        rebalance_keeps: Whether the release keeps all offsets of a group that rebalances.
    """
    began, anew = pl.col("began_at"), _began_anew(audit)
    marker_came_late = _in_transaction() & (pl.col("removed_at") > as_time(pl.col("expires_ms")))
    restarted = "the coordinator was restarted"
    return (
        pl.when(marker_came_late)
        .then(_timed("the COMMIT marker came after the instant, at ", pl.col("removed_at")))
        .when(anew & pl.col("by_restart"))
        .then(
            _timed(
                f"{restarted}, and its cleanups began anew: the broker kept its leader epoch, and "
                "registered again at ",
                began,
            )
        )
        .when(anew & _was_left_before(audit))
        .then(
            _timed(
                "the cleanups before left it too, and the first one after a restart or move took "
                "it: something kept it that only a coordinator's memory had; leader epoch since ",
                began,
            )
        )
        .when(anew & pl.col("leader").is_not_null())
        .then(
            _timed(f"{restarted} or moved, and its cleanups began anew: leader epoch since ", began)
        )
        .when(anew)
        .then(
            _timed(
                f"{restarted} or moved, and its cleanups began anew: leader epoch first seen at ",
                began,
            )
        )
        .when((pl.col("condition") == UNSUBSCRIBED) & rebalance_keeps)
        .then(pl.lit("late, or kept by a rebalance (PreparingRebalance), which no record shows"))
        .otherwise(_no_reason())
    )


def _began_anew(audit: AuditRules) -> pl.Expr:
    """Return whether the coordinator was at its first cleanup since it began.

    It loads its partition first, which took no longer than until its first record, and no longer
    than `AuditRules.start_ms`: behind that a first record shows only that nobody wrote any.
    """
    within, at = one_cleanup(audit), as_ms("at")
    ready, began = as_ms("ready_by"), as_ms("began_at")
    return (
        (ready >= pl.col("expires_ms") - pl.col("check_interval_ms"))
        & (at <= ready + within)
        & (at <= began + audit.start_ms + within)
    )


def _was_left_before(audit: AuditRules) -> pl.Expr:
    """Return whether the coordinator before had come to a cleanup after the offset was due."""
    cleaned_up = as_ms("idle_since") > pl.col("expires_ms") + one_cleanup(audit)
    return cleaned_up.fill_null(value=False)


def _no_reason() -> pl.Expr:
    """Return what remains when neither log shows why; settings change only where a broker starts.

    The metadata log has every start of a broker, so without one they were what they are at the end.
    """
    nothing = "the log shows no reason: "
    failed = f"{nothing}the coordinator was not restarted; a cleanup that failed"
    return (
        pl.when(pl.col("leader").is_null())
        .then(
            pl.lit(
                f"{nothing}a restart that kept the leader epoch, a cleanup that failed or a longer "
                "retention before leaves no record"
            )
        )
        .when(pl.col("restarted_since").is_null())
        .then(pl.lit(f"{failed} leaves no record"))
        .otherwise(
            _timed(
                f"{failed} leaves no record, nor does a longer retention before the broker started "
                "again at ",
                pl.col("restarted_since"),
            )
        )
    )


def why_swept() -> pl.Expr:
    """Return what shows that a cleanup took it while its group rebalanced, and what does not."""
    bug = (
        "KAFKA-13636: before 3.2 a cleanup takes of a group that rebalances what its members of "
        "that moment do not subscribe to, of which there is no record"
    )
    skipped = pl.when("skips_generation").then(pl.lit("; a generation left no record right then"))
    return pl.concat_str(
        pl.when("is_swept").then(pl.lit("best explained by ")).otherwise(pl.lit("perhaps ")),
        pl.lit(bug),
        skipped.otherwise(pl.lit("; or its topic was deleted")),
    )


def why_unknown() -> pl.Expr:
    """Return why nobody knows what removed an offset."""
    is_bare = pl.col("removed_position").is_null()
    return (
        pl.when(is_bare & ~pl.col("removed_pending") & ~pl.col("repeats"))
        .then(pl.lit("the commit it removed is not in the dump"))
        .when(pl.col("at").is_null())
        .then(pl.lit(_AROUND_THE_INSTANT))
        .when(~pl.col("is_due") & ~pl.col("retention_may_differ"))
        .then(
            pl.lit(
                "not due, so a deletion: nothing shows whether of the group, of its topic or of "
                "offsets alone"
            )
        )
        .otherwise(pl.lit("a cleanup under another retention, or a deletion: nothing shows which"))
    )


def why_deleted() -> pl.Expr:
    """Return what shows that an offset was deleted, and how it may have expired after all."""
    rests_on_retention = (pl.col("confidence") == LOW) & pl.col("retention_may_differ")
    before = pl.when(pl.col("restarted_since").is_not_null()).then(
        _timed(
            "; unless the retention was shorter before the broker started again at ",
            pl.col("restarted_since"),
        )
    )
    doubt = before.otherwise(
        pl.lit(
            "; unless the retention was shorter then: no metadata log tells whether the broker "
            "started again since, with other settings"
        )
    )
    return pl.concat_str(
        _why_deleted(), pl.when(rests_on_retention).then(doubt).otherwise(pl.lit(""))
    )


def _why_deleted() -> pl.Expr:
    cause = pl.col("cause")
    return (
        pl.when((cause == TOPIC_DELETED) & pl.col("topic_deleted_at").is_not_null())
        .then(_timed("the topic was deleted at ", pl.col("topic_deleted_at")))
        .when(cause == TOPIC_DELETED)
        .then(pl.lit("not due, and the topic is gone from the dump"))
        .when("group_ended")
        .then(pl.lit("not due, and the group ended with it"))
        .when(cause == GROUP_DELETED)
        .then(pl.lit("not due, and nothing of the group was left"))
        .when("is_kept")
        .then(pl.lit("not due: the group kept it, and stayed"))
        .otherwise(pl.lit("not due, and the group stayed"))
    )


def _timed(words: str, at: pl.Expr) -> pl.Expr:
    return pl.concat_str(pl.lit(words), at.dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ"))
