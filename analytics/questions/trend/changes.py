"""What a run has and the run before had not, and the other way round: findings and groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import polars as pl

from analytics.contracts import TIME, arrow_rows, contract_schema, polars_rows
from analytics.engine.part_runs import PartAnswer, PartRunner
from analytics.questions.findings.found import NEW, NOT_THERE_NOW, STILL, with_changes
from analytics.questions.findings.found import WORST_FIRST as OF_FINDINGS
from analytics.questions.table_orders import order_of
from analytics.questions.trend.figures import ESTIMATED, frames
from analytics.questions.trend.runs import AuditedRun, Pair
from analytics.replayed.group_rows import GroupRows
from analytics.replayed.whole_groups import group_parts, parts_for
from analytics.tables.parted_table import Order, PartedTable

CANNOT_TELL: Final = "cannot_tell"
FINDINGS, GROUPS, RETENTION = "trend_findings", "trend_changed_groups", "trend_retention"
AT_ONCE: Final = 200_000
"""So many rows of both runs are compared together, about."""
_NOW, _BEFORE = "now", "before"
_ID: Final = "finding_id"

# Findings: which are new, still there or gone, as `audit --since` compares them.


class FindingChanges(NamedTuple):
    """What became of findings.

    Attributes:
        rows: `trend_findings`.
        counts: By rule and word of `FINDING_CHANGES` how many findings.
        first: By rule the message of the first finding that is new.
    """

    rows: PartedTable
    counts: Mapping[str, Mapping[str, int]]
    first: Mapping[str, str]


MAY_BE_NEW, MAY_BE_GONE = "may_be_new", "may_be_gone"
FINDING_CHANGES: Final = (NEW, STILL, NOT_THERE_NOW, MAY_BE_NEW, MAY_BE_GONE)
"""What may become of a finding; of the last two one of both runs does not tell."""


@dataclass(frozen=True)
class Unjudged:
    """Of which findings two runs do not tell whether they are new, or gone.

    Attributes:
        why: Why of none; None where of some.
        new: Rules that the run before did not apply, or otherwise, and why.
        ended: Rules that this run did not apply, or otherwise, and why.
        of_lag: Rules that look at where logs end: of a group with lags that are not known they
            find nothing that they would else.
    """

    why: str | None
    new: Mapping[str, str]
    ended: Mapping[str, str]
    of_lag: frozenset[str] = frozenset()

    def reason(self) -> pl.Expr:
        """Return why of a finding it cannot be told; null where it can."""
        if self.why is not None:
            return pl.lit(self.why)
        new, gone = (
            pl.col("rule").replace_strict(each, default=None, return_dtype=pl.String)
            if each
            else pl.lit(None, pl.String)
            for each in (self.new, self.ended)
        )
        return pl.when(pl.col("change") == NEW).then(new).otherwise(gone)


def finding_changes(pair: Pair, unjudged: Unjudged, runner: PartRunner) -> FindingChanges:
    """Return what became of findings since the run before.

    A finding about a group of which the other run does not show all may have been there, too.

    Args:
        pair: Both runs, each with its findings.
        unjudged: What cannot be told.
        runner: Makes parts.
    """
    assert pair.before is not None
    of_run = {_NOW: pair.run, _BEFORE: pair.before}
    rows: dict[str, GroupRows] = {}
    number = 0
    for word, run in of_run.items():
        found = run.tables.parted(_FINDINGS_TABLE, order_of(_FINDINGS_TABLE))
        number += found.num_rows
        group = pl.col("group_id").fill_null("")
        rows[f"{word}_{_FINDINGS_TABLE}"] = GroupRows(map(polars_rows, found.pieces()), group)
        for name, columns in _KNOWN_OF_GROUPS.items():
            number += run.tables.count(name) if run.tables.has(name) else 0
            rows[f"{word}_{name}"] = _rows_of(run, name, columns)
    work = partial(_changes_of_part, _compared(pair, 0), unjudged)
    with group_parts(rows, parts_for(number, AT_ONCE), runner.folder) as reads:
        made = runner.run(work, reads, {FINDINGS: WORST_FIRST})
    counts: dict[str, dict[str, int]] = {}
    for rule, change, findings in pl.concat(each[0] for each in made.sums).iter_rows():
        of_rule = counts.setdefault(rule, dict.fromkeys(FINDING_CHANGES, 0))
        of_rule[change] += findings
    first = pl.concat(each[1] for each in made.sums).sort("rule", _ID)
    first = first.unique("rule", keep="first").select("rule", "message")
    return FindingChanges(made.tables[FINDINGS], counts, dict(first.iter_rows()))


_FINDINGS_TABLE: Final = "findings"
_KNOWN_OF_GROUPS: Final = {
    "audited_groups": ("group_id", "complete", "lag_not_told"),
    "groups": ("group_id", "coordinator_partition"),
}
_IN_ORDER: Final = ("cluster", *OF_FINDINGS.columns)


def _worst_first(rows: pl.DataFrame) -> pl.DataFrame:
    return OF_FINDINGS.sort(rows).sort("cluster", maintain_order=True)


WORST_FIRST: Final = Order(_IN_ORDER, _worst_first)
"""The order of `trend_findings`: of each cluster the most severe first."""


def _changes_of_part(
    compared: _Compared, unjudged: Unjudged, rows: Mapping[str, pl.DataFrame]
) -> PartAnswer:
    both = (arrow_rows(rows[f"{each}_{_FINDINGS_TABLE}"]) for each in (_NOW, _BEFORE))
    changed = polars_rows(with_changes(*both))
    for word in (_NOW, _BEFORE):
        changed = _with_group(changed, rows, word)
    home = pl.coalesce(f"{_NOW}_home", f"{_BEFORE}_home")
    if_new, if_gone = (
        _why_unseen(word, whole, home, unjudged.of_lag)
        for word, whole in ((_BEFORE, compared.whole_before), (_NOW, compared.whole_now))
    )
    of_group = pl.when(pl.col("change") == NEW).then(if_new).otherwise(if_gone)
    reason = pl.when(pl.col("change") != STILL).then(pl.coalesce(unjudged.reason(), of_group))
    changed = changed.with_columns(reason.alias("reason"))
    is_open = pl.col("reason").is_not_null()
    may_be = pl.when(pl.col("change") == NEW).then(pl.lit(MAY_BE_NEW))
    what = pl.when(is_open).then(may_be.otherwise(pl.lit(MAY_BE_GONE))).otherwise("change")
    counts = changed.group_by("rule", what.alias("change")).agg(
        pl.len().cast(pl.Int64).alias("findings")
    )
    is_new = (pl.col("change") == NEW) & ~is_open
    first = changed.filter(is_new).sort("rule", _ID).unique("rule", keep="first")
    differing = changed.filter(pl.col("change") != STILL).with_columns(
        pl.lit(compared.cluster).alias("cluster"),
        pl.lit(compared.as_of, TIME).alias("as_of"),
        pl.when(is_open).then(pl.lit(CANNOT_TELL)).otherwise("change").alias("change"),
    )
    found = WORST_FIRST.sort(differing.select(list(contract_schema(FINDINGS))))
    return PartAnswer({FINDINGS: found}, (counts, first.select("rule", _ID, "message")))


def _with_group(
    findings: pl.DataFrame, rows: Mapping[str, pl.DataFrame], word: str
) -> pl.DataFrame:
    """Add what a run knows of the groups of findings, and where they lie."""
    groups = rows[f"{word}_audited_groups"].select(
        "group_id",
        pl.lit(value=True).alias(f"{word}_is_known"),
        pl.col("complete").alias(f"{word}_complete"),
        (pl.col("lag_not_told") > 0).fill_null(value=True).alias(f"{word}_lag_is_open"),
    )
    homes = rows[f"{word}_groups"].rename({"coordinator_partition": f"{word}_home"})
    return findings.join(groups, on="group_id", how="left").join(homes, on="group_id", how="left")


def _why_unseen(
    word: str, whole: tuple[int, ...] | None, home: pl.Expr, of_lag: frozenset[str]
) -> pl.Expr:
    """Return why a run may have missed a finding about a group; null where it did not."""
    which = _WHICH[word]
    is_absent = pl.col(f"{word}_is_known").is_null() & pl.col("group_id").is_not_null()
    return (
        pl.when(pl.col(f"{word}_complete") == False)  # noqa: E712 - null is neither
        .then(pl.lit(f"{which} does not show all of the group"))
        .when(pl.col(f"{word}_lag_is_open") & pl.col("rule").is_in(sorted(of_lag)))
        .then(pl.lit(f"{which} does not know all lags of the group"))
        .when(is_absent & home.is_not_null())
        .then(_not_whole(whole, which, home))
    )


_WHICH: Final = {_NOW: "this run", _BEFORE: "the run before"}


# Groups: which came and went, whose lag grew, and whose records retention reaches.


@dataclass(frozen=True)
class GroupChanges:
    """What became of groups.

    Attributes:
        rows: `trend_changed_groups`.
        counts: How many are new, gone, or of which that cannot be told; `in_both` are in both.
        worst: Groups that are the furthest behind, or fell behind the most.
        retention: `trend_retention`, the soonest first.
        limits: Of how many partitions it cannot be told when retention reaches them.
    """

    rows: PartedTable
    counts: Mapping[str, int]
    worst: Sequence[str]
    retention: pl.DataFrame
    limits: RetentionLimits


class RetentionLimits(NamedTuple):
    """Of how many partitions it is not told when retention reaches what a group has to read.

    Attributes:
        due: It has reached them: retention deletes when brokers look next.
        bounded: At one of both instants the time that is left is only a bound.
        other_retention: Their topics have another retention than in the run before.
    """

    due: int
    bounded: int
    other_retention: int


@dataclass(frozen=True)
class _Compared:
    """What is the same for all groups."""

    cluster: str
    as_of: Any
    days: float | None
    whole_now: tuple[int, ...] | None
    whole_before: tuple[int, ...] | None
    why: str | None
    most: int
    other_retention: tuple[str, ...] | None


_OF_GROUPS: Final = ("group_id", "group_type", "state", "coordinator_partition")
_OF_LAGS: Final = ("group_id", "lag", "lag_not_told")
_OF_PARTITIONS: Final = ("group_id", "topic", "partition", "lag", "loss_in_ms", "loss_in_bound")
_READ: Final = {"groups": _OF_GROUPS, "audited_groups": _OF_LAGS, "lag": _OF_PARTITIONS}
_KEY: Final = ["group_id", "topic", "partition"]
_KNOWN_BOUNDS: Final = ("exact", "estimated")
_FAR: Final = 100 * 366


def group_changes(pair: Pair, most: int, runner: PartRunner) -> GroupChanges:
    """Return what became of groups since the run before.

    Args:
        pair: Both runs, each with the table `groups`.
        most: So many groups are the worst.
        runner: Makes parts.
    """
    run, before = pair.run, pair.before
    assert before is not None
    rows = {
        f"{word}_{name}": _rows_of(each, name, columns)
        for word, each in ((_NOW, run), (_BEFORE, before))
        for name, columns in _READ.items()
    }
    number = sum(
        each.tables.count(name) for each in (run, before) for name in _READ if each.tables.has(name)
    )
    with group_parts(rows, parts_for(number, AT_ONCE), runner.folder) as reads:
        made = runner.run(partial(_groups_of_part, _compared(pair, most)), reads)
    sums: Sequence[_GroupSums] = made.sums
    counts = pl.concat(each.counts for each in sums).group_by("change").sum()
    furthest = pl.concat(each.furthest for each in sums)
    fallen = pl.concat(each.fallen for each in sums)
    worst = [
        *furthest.sort("lag", "group_id", descending=[True, False]).head(most)["group_id"],
        *fallen.sort("grown", "group_id", descending=[True, False]).head(most)["group_id"],
    ]
    retention = pl.concat(each.retention for each in sums)
    return GroupChanges(
        made.tables[GROUPS],
        dict(counts.iter_rows()),
        list(dict.fromkeys(worst)),
        retention.sort("lost_at", *_KEY).head(most),
        RetentionLimits(*map(sum, zip(*(each.limits for each in sums), strict=True))),
    )


def _compared(pair: Pair, most: int) -> _Compared:
    assert pair.before is not None
    return _Compared(
        pair.cluster,
        pair.run.as_of,
        pair.days,
        _as_tuple(pair.run.whole_partitions),
        _as_tuple(pair.before.whole_partitions),
        None if pair.difference is None else pair.difference.words,
        most,
        topics_with_other_retention(pair.run, pair.before),
    )


_RETENTION_SETTINGS: Final = (
    *("retention.ms", "retention.bytes", "cleanup.policy"),
    *("log.retention.ms", "log.retention.minutes", "log.retention.hours", "log.retention.bytes"),
    "log.cleanup.policy",
)


def topics_with_other_retention(run: AuditedRun, before: AuditedRun) -> tuple[str, ...] | None:
    """Return the topics that have another retention than in the run before; null where all may.

    Of these the time that is left until retention comes is not of one measure.
    """
    is_known = run.tables.has("configs") and before.tables.has("configs")
    if not is_known or run.settings != before.settings:
        return None
    differing = _retention_settings(run) ^ _retention_settings(before)
    if any(kind != "topic" for kind, *_ in differing):
        return None
    return tuple(sorted({topic for _, topic, *_ in differing}))


def _retention_settings(run: AuditedRun) -> set[tuple[str, ...]]:
    return {
        row
        for rows in frames(run, "configs", ["resource_type", "resource", "name", "value"])
        for row in rows.filter(pl.col("name").is_in(_RETENTION_SETTINGS)).rows()
    }


def _as_tuple(numbers: Iterable[int] | None) -> tuple[int, ...] | None:
    return None if numbers is None else tuple(sorted(numbers))


def _rows_of(run: AuditedRun, name: str, columns: Sequence[str]) -> GroupRows:
    if not run.tables.has(name):
        schema = {each: contract_schema(name)[each] for each in columns}
        return GroupRows([pl.DataFrame(schema=schema)], pl.col("group_id"))
    return GroupRows(frames(run, name, columns), pl.col("group_id"))


class _GroupSums(NamedTuple):
    counts: pl.DataFrame
    furthest: pl.DataFrame
    fallen: pl.DataFrame
    retention: pl.DataFrame
    limits: RetentionLimits


def _groups_of_part(compared: _Compared, rows: Mapping[str, pl.DataFrame]) -> PartAnswer:
    changed, in_both = _came_or_went(compared, rows["now_groups"], rows["before_groups"])
    counts = changed.group_by("change").agg(pl.len().cast(pl.Int64).alias("groups"))
    both = pl.DataFrame({"change": ["in_both"], "groups": [in_both]})
    lags = _lags(rows["now_audited_groups"], rows["before_audited_groups"])
    retention, limits = _reached(compared, rows["now_lag"], rows["before_lag"])
    most = compared.most
    sums = _GroupSums(
        pl.concat([counts, both]),
        largest(lags.filter(pl.col("lag") > 0), "lag", most),
        largest(lags.filter(pl.col("grown") > 0), "grown", most),
        retention,
        limits,
    )
    return PartAnswer({GROUPS: changed}, sums)


def largest(rows: pl.DataFrame, by: str, most: int) -> pl.DataFrame:
    """Return the groups with the largest values of a column, the largest first."""
    wanted = rows.select("group_id", by)
    return wanted.sort(by, "group_id", descending=[True, False]).head(most)


def _came_or_went(
    compared: _Compared, now: pl.DataFrame, before: pl.DataFrame
) -> tuple[pl.DataFrame, int]:
    """Return `trend_changed_groups` of some groups, and how many are in both."""
    home = pl.col("coordinator_partition")
    came = now.join(before, on="group_id", how="anti").with_columns(
        pl.lit(NEW).alias("change"),
        _not_whole(compared.whole_before, _WHICH[_BEFORE], home).alias("reason"),
    )
    went = before.join(now, on="group_id", how="anti").with_columns(
        pl.lit(NOT_THERE_NOW).alias("change"),
        _not_whole(compared.whole_now, _WHICH[_NOW], home).alias("reason"),
    )
    why = pl.lit(compared.why, pl.String)
    rows = pl.concat([came, went]).with_columns(
        pl.lit(compared.cluster).alias("cluster"),
        pl.lit(compared.as_of, TIME).alias("as_of"),
        pl.coalesce(why, "reason").alias("reason"),
    )
    rows = rows.with_columns(
        pl.when(pl.col("reason").is_null()).then("change").otherwise(pl.lit(CANNOT_TELL))
    )
    names = list(contract_schema(GROUPS))
    return rows.select(names).sort("group_id"), now.height - came.height


def _not_whole(whole: tuple[int, ...] | None, which: str, home: pl.Expr) -> pl.Expr:
    """Return why a group that is not there may have been; null where it was not."""
    if whole is None:
        return pl.lit(f"nothing tells whether {which} shows all groups of a partition")
    words = pl.format(f"{which} does not show all groups of __consumer_offsets-{{}}", home)
    return pl.when(home.is_in(list(whole))).then(None).otherwise(words)


def _lags(now: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Return the `lag` of groups, and how much it has `grown` where both are known whole."""
    earlier = before.rename({"lag": "earlier_lag", "lag_not_told": "earlier_not_told"})
    rows = now.join(earlier, on="group_id", how="left")
    is_known = (pl.col("lag_not_told") == 0) & (pl.col("earlier_not_told") == 0)
    return rows.with_columns(
        pl.when(is_known).then(pl.col("lag") - pl.col("earlier_lag")).alias("grown")
    )


def _reached(
    compared: _Compared, now: pl.DataFrame, before: pl.DataFrame
) -> tuple[pl.DataFrame, RetentionLimits]:
    """Return `trend_retention` of some groups, and of how many partitions it cannot be told.

    Retention comes nearer where the time that is left shrinks; it is reached when none is left.
    """
    earlier = before.select(
        *_KEY,
        pl.col("loss_in_ms").alias("earlier_loss_in_ms"),
        pl.col("loss_in_bound").alias("earlier_bound"),
    )
    rows = now.join(earlier, on=_KEY, how="inner").filter(
        pl.col("loss_in_ms").is_not_null() & pl.col("earlier_loss_in_ms").is_not_null()
    )
    is_told = pl.col("loss_in_bound").is_in(_KNOWN_BOUNDS) & pl.col("earlier_bound").is_in(
        _KNOWN_BOUNDS
    )
    others = compared.other_retention
    is_alike = pl.lit(value=False) if others is None else ~pl.col("topic").is_in(list(others))
    told = rows.filter(is_told & is_alike)
    is_due = (pl.col("loss_in_ms") <= 0) & pl.col("loss_in_bound").is_in(_KNOWN_BOUNDS)
    limits = RetentionLimits(
        now.filter(is_due).height,
        rows.filter(~is_told & ~is_due).height,
        rows.filter(is_told & ~is_due & ~is_alike).height,
    )
    if compared.days is None:
        return pl.DataFrame(schema=contract_schema(RETENTION)), limits
    shrunk_a_day = (pl.col("earlier_loss_in_ms") - pl.col("loss_in_ms")) / compared.days
    days_left = pl.col("loss_in_ms") / shrunk_a_day
    shrinking = told.filter(
        (pl.col("loss_in_ms") > 0) & (shrunk_a_day > 0) & (days_left < _FAR)
    ).with_columns(
        pl.lit(compared.cluster).alias("cluster"),
        pl.lit(compared.as_of, TIME).alias("as_of"),
        (pl.lit(compared.as_of, TIME) + _days(days_left)).alias("lost_at"),
        pl.lit(ESTIMATED).alias("lost_bound"),
    )
    names = list(contract_schema(RETENTION))
    found = shrinking.select(names).sort("lost_at", *_KEY).head(compared.most)
    return found, limits


def _days(number: pl.Expr) -> pl.Expr:
    return (
        (number * 86_400_000)
        .round(0)
        .cast(pl.Int64)
        .cast(pl.Duration("ms"))
        .cast(pl.Duration("us"))
    )
