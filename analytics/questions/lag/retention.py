"""When retention overtakes what is left to read: the instant from which the next record is gone.

Brokers delete whole segments, the oldest first (``UnifiedLog.deleteOldSegments``): by time, once
the newest record of a segment is older than `retention.ms`; by size, once what lies after it is at
least `retention.bytes`. They look every `log.retention.check.interval.ms`. The segment that is
written ends later than it does now. By size an instant rests on the log growing as it did.

How long topics keep their records say their own settings, then those of the brokers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from analytics.replay.topics import METADATA_LOG, SNAPSHOT
from analytics.side_files import whole_number

if TYPE_CHECKING:
    from analytics.replayed.given_settings import BrokerSettings, Settings

EXACT, AT_LEAST, AT_MOST = "exact", "at_least", "at_most"
ESTIMATED, NEVER, NOTHING, UNKNOWN = "estimated", "never", "nothing", "unknown"
BY_TIME, BY_SIZE = "time", "size"
NO_SEGMENTS: Final = "the files of the log are not in the dump"
NOT_LOCAL: Final = "the dump lacks the segment of the committed offset"
NO_TIMES: Final = "nothing tells how old the newest record of its segments is"
NO_GROWTH: Final = "nothing tells how fast the log grows"
NOT_NOW: Final = "files tell of the end of the dump only"
NO_CONFIGS: Final = "the dump does not tell the topic's settings"
KEEPS: Final = "nothing is deleted by time or size"
TIERED: Final = "the topic has tiered storage: files beside the dump are not all of the log"
ASSUMED: Final = "Kafka's default, assumed"
OF_TOPIC: Final = "the topic's own"
DYNAMIC: Final = "the brokers', in the metadata log"
ANSWERED: Final = "the brokers', as they answered"

_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000
_MS: Final = (("log.retention.ms", 1), ("log.retention.minutes", _MINUTE_MS))
_HOURS: Final = "log.retention.hours"
_DEFAULT_HOURS: Final = 168
_BYTES: Final = "log.retention.bytes"
_POLICY: Final = "log.cleanup.policy"
_DELETE: Final = "delete"

_PLACE: Final = ["topic", "partition"]
_TIME: Final = pl.Datetime("us", "UTC")
RETENTION: Final = {
    "topic": pl.String,
    "ms": pl.Int64,
    "size": pl.Int64,
    "said": pl.String,
    "why_unknown": pl.String,
}
"""How long topics keep their records: see `TopicRetention`."""

Said = Mapping[str, tuple[str, str]]
"""By name: the value, and where it is from."""


@dataclass(frozen=True)
class TopicRetention:
    """How long a topic keeps its records.

    Attributes:
        ms: `retention.ms`; None where nothing is deleted by time.
        size: `retention.bytes`, of a partition; None where nothing is deleted by size.
        said: What is in force and where that is from, in words.
        why_unknown: Why neither is known, in words; else None.
    """

    ms: int | None = None
    size: int | None = None
    said: str = ""
    why_unknown: str | None = None


def topic_retention(
    topics: pl.DataFrame,
    configs: pl.DataFrame,
    settings: Settings,
    unanswered: Collection[str] = (),
) -> dict[str, TopicRetention]:
    """Return how long each topic keeps its records.

    A topic's own setting goes before the brokers'; of these the dynamic ones of the metadata log go
    before files, as with brokers (``DynamicLogConfig``), and `--config` before all of them. What
    brokers answered to a snapshot counts where no files are given.

    Args:
        topics: The table `topics` at the instant.
        configs: The table `configs`.
        settings: Files that were given; where brokers' differ the one that keeps less counts.
        unanswered: Topics that a cluster named and whose settings it did not answer.

    Raises:
        InputNotRecognizedError: A setting is no whole number.
    """
    columns = ("resource_type", "resource", "name", "value", "source")
    rows = configs.select(columns).to_dicts()
    own: dict[str, dict[str, tuple[str, str]]] = {}
    for each in rows:
        if each["resource_type"] == "topic" and each["value"] is not None:
            own.setdefault(each["resource"], {})[each["name"]] = each["value"], OF_TOPIC
    answers = [each for each in rows if each["source"] == SNAPSHOT]
    logged = [each for each in rows if each["source"] != SNAPSHOT]
    layers = [_dynamic(logged), _named(settings.from_file.values, "--config")]
    otherwise = [
        {name: said for layer in (own_layer, *layers) for name, said in layer.items()}
        for own_layer in _of_files(settings.brokers) or _answered(answers)
    ]
    found: dict[str, TopicRetention] = {}
    for topic, source in (
        topics.filter(pl.col("deleted_at").is_null()).select("topic", "source").iter_rows()
    ):
        kept = [_of(own.get(topic, {}), layer) for layer in otherwise]
        least = min(kept, key=lambda one: (_or_all(one.ms), _or_all(one.size)))
        is_told = source == METADATA_LOG or (source == SNAPSHOT and topic not in unanswered)
        found[topic] = least if is_told else TopicRetention(why_unknown=NO_CONFIGS)
    return found


def retention_frame(retention: Mapping[str, TopicRetention]) -> pl.DataFrame:
    """Return how long topics keep their records as rows (`RETENTION`)."""
    rows = [(topic, *astuple(kept)) for topic, kept in retention.items()]
    return pl.DataFrame(rows, RETENTION, orient="row")


def _or_all(number: int | None) -> float:
    return float("inf") if number is None else number


def _of_files(brokers: Iterable[BrokerSettings]) -> list[Said]:
    return [_named(each.values, each.name) for each in brokers]


def _named(values: Mapping[str, str], where: str) -> dict[str, tuple[str, str]]:
    return {name: (value, where) for name, value in values.items()}


def _answered(rows: Iterable[Mapping[str, Any]]) -> list[Said]:
    """Return what each broker answered; once where all answered the same, or none did."""
    by_broker: dict[str, dict[str, tuple[str, str]]] = {}
    for each in rows:
        if each["resource_type"] == "broker":
            by_broker.setdefault(each["resource"], {})[each["name"]] = each["value"], ANSWERED
    everywhere = by_broker.pop("", {})
    return [{**everywhere, **own} for own in by_broker.values()] or [everywhere]


def _dynamic(rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    """Return what the metadata log has of all brokers, and what it has of the only one it names."""
    of_brokers = [each for each in rows if each["resource_type"] == "broker" and each["value"]]
    of_one = {each["resource"] for each in of_brokers if each["resource"]}
    wanted = {"", *(of_one if len(of_one) == 1 else ())}
    ordered = sorted(of_brokers, key=lambda each: str(each["resource"]))
    return {
        each["name"]: (each["value"], DYNAMIC) for each in ordered if each["resource"] in wanted
    }


def _of(own: Said, brokers: Said) -> TopicRetention:
    if own.get("remote.storage.enable", ("", ""))[0].strip().lower() == "true":
        return TopicRetention(why_unknown=TIERED)
    policy, where = own.get("cleanup.policy") or brokers.get(_POLICY) or (_DELETE, ASSUMED)
    if _DELETE not in [each.strip() for each in policy.split(",")]:
        return TopicRetention(said=f"cleanup.policy = {policy} ({where})")
    ms, ms_from = _retention_ms(own, brokers)
    size, size_from = own.get("retention.bytes") or brokers.get(_BYTES) or ("-1", ASSUMED)
    kept = _number("retention.bytes", size, size_from)
    said = f"retention.ms = {ms} ({ms_from})"
    said += f", retention.bytes = {kept} ({size_from})" if kept >= 0 else ""
    return TopicRetention(ms if ms >= 0 else None, kept if kept >= 0 else None, said)


def _retention_ms(own: Said, brokers: Said) -> tuple[int, str]:
    """Return retention by time, and where it is from: the finest unit that is set counts."""
    if "retention.ms" in own:
        text, where = own["retention.ms"]
        return _number("retention.ms", text, where), where
    for name, unit in (*_MS, (_HOURS, _HOUR_MS)):
        if name in brokers:
            text, where = brokers[name]
            number = _number(name, text, where)
            return (number * unit if number >= 0 else -1), where
    return _DEFAULT_HOURS * _HOUR_MS, ASSUMED


def _number(name: str, text: str, where: str) -> int:
    return whole_number(text, name, where, least=-1)


def with_losses(
    rows: pl.DataFrame,
    segments: pl.DataFrame,
    retention: pl.DataFrame,
    as_of_ms: int,
    *,
    is_end: bool,
) -> pl.DataFrame:
    """Add when the next record to read is deleted.

    Where the log starts before the first file that is there, others wait to be deleted first.

    Args:
        rows: `topic`, `partition`, `committed_offset`, `log_start_offset`, `records_to_read`.
        segments: `topic`, `partition`, `base_offset`, `size_bytes`, `largest_timestamp`,
            `is_largest` of the data topics' logs.
        retention: `RETENTION`; a topic that is not there is not known.
        as_of_ms: The instant.
        is_end: It is the end of the dump: files tell of no other instant.

    Returns:
        The rows with `loss_at`, `loss_in_ms`, `loss_in_bound`, `loss_by` and `loss_basis`.
    """
    left = pl.col("records_to_read").fill_null(-1)
    rows = rows.with_row_index("row").with_columns(
        pl.max_horizontal(
            pl.col("committed_offset").fill_null(0), pl.col("log_start_offset").fill_null(0)
        ).alias("position")
    )
    behind = rows.filter((left > 0) & is_end).select("row", *_PLACE, "log_start_offset", "position")
    found = _next_to_go(behind, segments, retention, as_of_ms)
    rows = rows.join(found, "row", "left", maintain_order="left")
    at = pl.col("at_ms")
    bound = pl.when(left < 0).then(pl.lit(UNKNOWN)).when(left == 0).then(pl.lit(NOTHING))
    basis = pl.when((left > 0) & (not is_end)).then(pl.lit(NOT_NOW)).otherwise("basis")
    return rows.with_columns(
        (at * 1000).cast(_TIME).alias("loss_at"),
        (at - as_of_ms).alias("loss_in_ms"),
        bound.otherwise(pl.col("bound").fill_null(UNKNOWN)).alias("loss_in_bound"),
        pl.col("by").alias("loss_by"),
        basis.alias("loss_basis"),
    ).drop("row", "position", *_LOSS)


_LOSS: Final = ("bound", "at_ms", "by", "basis")
"""When a record is deleted: how sure, in epoch milliseconds, by time or by size, and what that
rests on, or why it is not known."""


def _next_to_go(
    behind: pl.DataFrame, segments: pl.DataFrame, retention: pl.DataFrame, as_of_ms: int
) -> pl.DataFrame:
    """Return `row` and `_LOSS` of the records at positions."""
    files = _with_order(segments)
    rows = behind.sort("position").join_asof(
        files.sort("base_offset"),
        left_on="position",
        right_on="base_offset",
        by=_PLACE,
        strategy="backward",
        check_sortedness=False,
    )
    there = segments.select(_PLACE).unique().with_columns(pl.lit(value=True).alias("has_files"))
    rows = rows.join(there, _PLACE, "left").join(retention, "topic", "left")
    by_time, by_size = _by_time(), _by_size(as_of_ms)
    # All that is in the same segment goes with it.
    rows = rows.with_columns(_struct(by_time).alias("of_time"), _struct(by_size).alias("of_size"))
    why = pl.col("why_unknown").fill_null(NO_CONFIGS)
    is_told = pl.col("said").is_not_null() & pl.col("why_unknown").is_null()
    is_kept = pl.col("ms").is_null() & pl.col("size").is_null()
    keeps = pl.when(pl.col("said") != "").then("said").otherwise(pl.lit(KEEPS))
    loss = (
        pl.when(~is_told)
        .then(_loss(UNKNOWN, why))
        .when(is_kept)
        .then(_loss(NEVER, keeps))
        .when(pl.col("has_files").is_null())
        .then(_loss(UNKNOWN, pl.lit(NO_SEGMENTS)))
        .when(pl.col("base_offset").is_null())
        .then(_loss(UNKNOWN, pl.lit(NOT_LOCAL)))
        .when(pl.col("size").is_null())
        .then("of_time")
        .when(pl.col("ms").is_null())
        .then("of_size")
        .otherwise(_earlier())
    )
    return rows.select("row", loss.alias("loss")).unnest("loss")


def _with_order(segments: pl.DataFrame) -> pl.DataFrame:
    """Return segments with what lies before and after each, and how their log grew.

    Returns:
        `topic`, `partition`, `base_offset`; `newest_ms` of it and those before, which go first,
        null where that is not known; `is_sure` whether no record of them can be newer, `is_closed`
        whether another one is behind it, `bytes_after`; `first_base`; and `growth`, the bytes a
        millisecond from the newest record of the first segment to that of the last, null where they
        do not tell.
    """
    files = segments.sort(*_PLACE, "base_offset").with_columns(
        (pl.col("largest_timestamp").to_physical() // 1000).alias("at_ms")
    )
    known = pl.when(pl.col("at_ms") >= 0).then("at_ms")
    files = files.with_columns(known.alias("at_ms"))
    lacks = pl.col("at_ms").is_null()
    took = pl.col("at_ms").last() - pl.col("at_ms").first()
    grown = pl.col("size_bytes").sum() - pl.col("size_bytes").first()
    is_told = (took > 0) & (grown > 0) & ~lacks.any()
    so_far = pl.when(lacks.cast(pl.Int32).cum_sum() == 0).then(pl.col("at_ms").cum_max())
    unsure = (~pl.col("is_largest")).cast(pl.Int32).cum_sum()
    return files.with_columns(
        so_far.over(_PLACE).alias("newest_ms"),
        (unsure.over(_PLACE) == 0).alias("is_sure"),
        pl.col("base_offset").shift(-1).over(_PLACE).is_not_null().alias("is_closed"),
        (pl.col("size_bytes").sum() - pl.col("size_bytes").cum_sum())
        .over(_PLACE)
        .alias("bytes_after"),
        pl.col("base_offset").first().over(_PLACE).alias("first_base"),
        pl.when(is_told).then(grown / took).over(_PLACE).alias("growth"),
    ).drop("at_ms", "size_bytes", "largest_timestamp", "is_largest")


def _struct(columns: Mapping[str, pl.Expr]) -> pl.Expr:
    return pl.struct(column.alias(name) for name, column in columns.items())


def _loss(
    bound: str | pl.Expr,
    basis: pl.Expr,
    at_ms: pl.Expr | None = None,
    by: str | pl.Expr | None = None,
) -> pl.Expr:
    return pl.struct(
        (pl.lit(bound) if isinstance(bound, str) else bound).alias("bound"),
        (pl.lit(None, pl.Int64) if at_ms is None else at_ms.cast(pl.Int64)).alias("at_ms"),
        (pl.lit(by, pl.String) if by is None or isinstance(by, str) else by).alias("by"),
        basis.alias("basis"),
    )


def _by_time() -> dict[str, pl.Expr]:
    is_told = pl.col("newest_ms").is_not_null()
    is_whole = (pl.col("log_start_offset") >= pl.col("first_base")).fill_null(value=False)
    is_sure = is_whole & pl.col("is_closed") & pl.col("is_sure")
    bound = pl.when(is_sure).then(pl.lit(EXACT)).otherwise(pl.lit(AT_LEAST))
    return {
        "bound": pl.when(is_told).then(bound).otherwise(pl.lit(UNKNOWN)),
        # A segment waits for those before it.
        "at_ms": pl.col("newest_ms") + pl.col("ms"),
        "by": pl.when(is_told).then(pl.lit(BY_TIME)),
        "basis": pl.when(is_told).then("said").otherwise(pl.lit(NO_TIMES)),
    }


def _by_size(as_of_ms: int) -> dict[str, pl.Expr]:
    missing = pl.col("size") - pl.col("bytes_after")
    is_due = (missing <= 0) & pl.col("is_closed")
    is_told = is_due | pl.col("growth").is_not_null()
    left = (missing.clip(0) / pl.col("growth")).round(0).cast(pl.Int64, strict=False)
    bound = pl.when(is_due).then(pl.lit(EXACT)).when(is_told).then(pl.lit(ESTIMATED))
    return {
        "bound": bound.otherwise(pl.lit(UNKNOWN)),
        "at_ms": pl.when(is_due).then(as_of_ms).otherwise(as_of_ms + left),
        "by": pl.when(is_told).then(pl.lit(BY_SIZE)),
        "basis": pl.when(is_told).then("said").otherwise(pl.lit(NO_GROWTH)),
    }


def _earlier() -> pl.Expr:
    """Return which comes first, as far as both are known."""
    of_time, of_size = (
        {name: pl.col(column).struct.field(name) for name in _LOSS}
        for column in ("of_time", "of_size")
    )
    is_exact = of_time["bound"] == EXACT
    at_most = pl.when(is_exact).then(pl.lit(AT_MOST)).otherwise(of_time["bound"])
    by_time = _loss(at_most, of_time["basis"], of_time["at_ms"], of_time["by"])
    return (
        pl.when(of_size["bound"] == EXACT)
        .then("of_size")
        .when(of_time["at_ms"].is_null())
        .then("of_time")
        .when(of_size["at_ms"].is_null() & ~is_exact)
        .then("of_size")
        .when(of_size["at_ms"] < of_time["at_ms"])
        .then("of_size")
        .otherwise(by_time)
    )
