"""Whether a removal came when it should have, and why not."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.questions.expiration.offset_expiration import MAY_NOT_BE_KEPT, as_ms, as_time
from analytics.questions.expiration.retention_settings import ASSUMED, OPTION, RECORD
from analytics.replay.removals.removal_causes import (
    EXPIRATION,
    GROUP_DELETED,
    LOW,
    TOPIC_DELETED,
    UNKNOWN,
)
from analytics.replay.removals.removed_offsets import CONSUMER_GROUP, STREAMS_GROUP, UNSUBSCRIBED
from schemas.expiration_rules import AuditRules, ExpirationRules, rule_name

# Why a removal came when it did, in words, as far as the logs show it.


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


ON_TIME, EARLY, LATE, NOT_APPLICABLE, CANNOT_TELL = (
    "on_time",
    "early",
    "late",
    "not_applicable",
    "cannot_tell",
)
NO_EXPIRE_TIME_VERSION: Final = 1
"""The value version with an expire time in it, where -1 is none."""

KAFKA_8069_ERA: Final = "2.1-2.3"
"""In which a coordinator that loads an expire time of -1 takes it as a time (KAFKA-8069)."""

_NO_RETENTION: Final = (
    "the retention is assumed: without the brokers' settings it cannot be told when it was due"
)
_NO_INTERVAL: Final = (
    "not early; how often the coordinator cleans up is assumed: without the brokers' settings it "
    "cannot be told whether it was late"
)
_Case = tuple[pl.Expr, str, pl.Expr]


def is_unparsed_expire_time(era: ExpirationRules) -> pl.Expr:
    """Return whether KAFKA-8069 takes an offset: stored with -1, in a release that has the bug."""
    if era.name != KAFKA_8069_ERA:
        return pl.lit(value=False)
    stored = pl.col("removed_value_version") == NO_EXPIRE_TIME_VERSION
    found = stored & (pl.col("removed_expire_ms") == -1) & ~pl.col("is_kept")
    return found.fill_null(value=False)


def retention_may_differ() -> pl.Expr:
    """Return whether another retention than the one given may have been in force.

    What a person names for the question is taken at their word. A broker reads its file when it
    starts: what was in force before its last start nobody knows, and without the metadata log not
    even when that was. Takes what `with_beginning` and `with_expiry` add.
    """
    is_named = pl.col("retention_source").is_in([OPTION, RECORD])
    return ~is_named & ~_same_settings()


def with_verdict(
    removed: pl.DataFrame, audit: AuditRules, *, rebalance_keeps: bool = True
) -> pl.DataFrame:
    """Add `verdict`, `reason`, `rule` and `expected_at`.

    Args:
        removed: Removed offsets with what `with_expiry` and `with_transactions` add, with what
            `with_removal_cause` takes and adds, `is_unparsed` (boolean: `is_unparsed_expire_time`)
            and what `with_beginning` adds.
        audit: How much later than one check interval is on time.
        rebalance_keeps: Whether the release keeps all offsets of a group that rebalances.
    """
    is_expired = pl.col("cause") == EXPIRATION
    is_unknown = pl.col("cause") == UNKNOWN
    # Whether it was due rests on a retention that nobody gave.
    is_guess = (pl.col("retention_source") == ASSUMED) & pl.col("is_surely_due").is_null()
    cases: list[_Case] = [
        (pl.col("undecided").is_not_null() & is_unknown, CANNOT_TELL, pl.col("undecided")),
        (pl.col("may_not_be_kept"), CANNOT_TELL, pl.lit(MAY_NOT_BE_KEPT)),
        (pl.col("may_be_swept") & (is_expired | is_unknown), CANNOT_TELL, why_swept()),
        (
            is_guess & pl.col("removed_position").is_not_null(),
            CANNOT_TELL,
            pl.lit(_NO_RETENTION),
        ),
        *(
            (is_expired & holds, word, why)
            for holds, word, why in _of_expiration(audit, rebalance_keeps=rebalance_keeps)
        ),
        (is_unknown, CANNOT_TELL, why_unknown()),
    ]
    # Each reason is worked out where its case is the one: the first that holds.
    number = pl.lit(len(cases), pl.Int32)
    for place, (holds, _, _) in reversed(list(enumerate(cases))):
        number = pl.when(holds).then(pl.lit(place, pl.Int32)).otherwise(number)
    verdict, reason = pl.lit(NOT_APPLICABLE), why_deleted()
    for place, (_, word, why) in enumerate(cases):
        is_it = pl.col("case") == place
        verdict = pl.when(is_it).then(pl.lit(word)).otherwise(verdict)
        reason = pl.when(is_it).then(why).otherwise(reason)
    return (
        removed.with_columns(number.alias("case"))
        .with_columns(
            verdict.alias("verdict"),
            reason.alias("reason"),
            pl.when(is_expired).then("rule").alias("rule"),
            pl.when(is_expired).then(as_time(pl.col("expires_ms"))).alias("expected_at"),
        )
        .drop("case")
    )


def _of_expiration(audit: AuditRules, *, rebalance_keeps: bool) -> list[_Case]:
    expected, at = pl.col("expires_ms"), as_ms("at")
    within = one_cleanup(audit)
    # What was committed after the instant was not there to be removed before.
    latest = pl.max_horizontal(expected, committed_ms()) + within
    surely_on_time = (pl.col("not_before_ms") >= expected) & (pl.col("not_after_ms") <= latest)
    # Of an offset with an expire time of its own only the instant is known then.
    is_guess = pl.col("is_interval_assumed")
    return [
        (pl.col("retention_source") == ASSUMED, CANNOT_TELL, pl.lit(_NO_RETENTION)),
        (at.is_null() & ~is_guess & surely_on_time, ON_TIME, known_surprise()),
        (at.is_null(), CANNOT_TELL, pl.lit(NO_TIME)),
        ((at < expected) & _is_surely_early(), EARLY, why_early()),
        (at < expected, CANNOT_TELL, why_early()),
        (is_guess, CANNOT_TELL, pl.lit(_NO_INTERVAL)),
        (at <= latest, ON_TIME, known_surprise()),
        (pl.lit(value=True), LATE, why_late(audit, rebalance_keeps=rebalance_keeps)),
    ]


def _is_surely_early() -> pl.Expr:
    """Return whether the settings given were those in force, or did not matter."""
    return pl.col("is_unparsed") | _same_settings()


def _same_settings() -> pl.Expr:
    return pl.col("leader").is_not_null() & pl.col("restarted_since").is_null()
