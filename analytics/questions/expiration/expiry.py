"""When an offset expires, by the rules of an era (``OffsetExpirationConditionImpl``, KIP-211)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from analytics.epoch_times import LAST_MS
from analytics.replay.log.rules import named_release
from analytics.replay.log.spans import TIME
from schemas.expiration_rules import ExpirationRules, era_of_release, expiration_eras, rule_names
from schemas.releases import release_key

if TYPE_CHECKING:
    from schemas.manifest import Manifest

# Which era's rules of expiry apply: the one asked for, or that of the release, and why.

OLDEST, NEWEST = "pre-2.1", "current"
_SHOWN_BY_EVERY_3_X = "2.3"
"""Without a metadata log, records of this and of all releases up to 3.9 look alike."""

_LATER = "3.2-3.9"


@dataclass(frozen=True)
class ChosenEra:
    """The rules, those of what was written before an upgrade, and a sentence that says so."""

    era: ExpirationRules
    before: ExpirationRules | None
    explanation: str


def chosen_era(era_name: str | None, kafka_version: str | None, manifest: Manifest) -> ChosenEra:
    """Return the rules that apply.

    Args:
        era_name: A name of an era, or None to go by the release.
        kafka_version: `--kafka-version`, or None.
        manifest: Of the dump: it says at least which release wrote it.
    """
    eras = expiration_eras()
    if era_name is not None:
        return ChosenEra(eras[era_name], None, f"rules: {era_name}, as asked for")
    before = eras[OLDEST]
    named = named_release(manifest)
    if kafka_version is not None:
        era = era_of_release(kafka_version)
        why = f"of Kafka {kafka_version}, as asked for"
    elif named is not None:
        era = era_of_release(named)
        why = f"of Kafka {named}, as it was replayed"
    else:
        at_least = manifest["kafka_version"].get("at_least")
        if at_least is None:
            era, why = eras[NEWEST], "the newest: nothing shows which release wrote this"
        else:
            era = era_of_release(at_least)
            why = f"by release: written by Kafka {at_least} or newer"
            if release_key(at_least)[:2] == release_key(_SHOWN_BY_EVERY_3_X):
                era = eras[_LATER]
                why += ", and nothing tells 2.3 from the releases up to 3.9"
    sentence = f"rules: {era.name} ({why}); --rules or --kafka-version choose others"
    return ChosenEra(era, None if era.per_offset else before, sentence)


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
