"""Whether a removal came when it should have, and why not."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.questions.expiration.expiry import MAY_NOT_BE_KEPT, as_ms, as_time
from analytics.questions.expiration.removal_reasons import (
    NO_TIME,
    committed_ms,
    known_surprise,
    one_cleanup,
    why_deleted,
    why_early,
    why_late,
    why_swept,
    why_unknown,
)
from analytics.questions.expiration.retention import ASSUMED, OPTION, RECORD
from analytics.replay.removals.removal_causes import EXPIRATION, UNKNOWN
from schemas.expiration_rules import AuditRules, ExpirationRules

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
