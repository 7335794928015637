"""What each rule found, run by run: new, worse, better or gone, and where that cannot be told.

The lags of the groups that are furthest behind, run by run.

When the disk of a broker is full, at the rate at which what the dump shows of it grew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from analytics.questions.findings.found import NEW, NOT_THERE_NOW, STILL
from analytics.questions.question import question
from analytics.questions.sums import AT_LEAST, AT_LEAST_ABOUT
from analytics.questions.trend.changes import (
    CANNOT_TELL,
    FINDING_CHANGES,
    MAY_BE_GONE,
    MAY_BE_NEW,
    FindingChanges,
    Unjudged,
    largest,
)
from analytics.questions.trend.figures import (
    ESTIMATED,
    EXACT,
    INTERPOLATED,
    copies_as_named_by,
    frames,
    usage_by_copy,
)
from analytics.questions.trend.runs import TOO_CLOSE, AuditedRun, Pair
from schemas.finding_rules import finding_rules

if TYPE_CHECKING:
    from analytics.questions.trend.runs import AuditedRun, Pair


_COLUMNS: Final = ["rule", "severity", "is_on", "was_applied", "thresholds", "findings"]
_KNOW_ENDS: Final = ("lag", "share")
"""Questions whose answers rest on where logs end."""
_GO_BY_SETTINGS: Final = ("expiration", "lag", "share", "usage")
"""Questions whose answers rest on settings of brokers, topics and groups."""
FIRST, WORSE, BETTER, AS_BEFORE = "first", "worse", "better", "as_before"

_Rules = Mapping[str, Mapping[str, Any]]


def unjudged_rules(pair: Pair) -> Unjudged:
    """Return of which findings two runs do not tell whether they are new, or gone."""
    assert pair.before is not None
    now, before = _rules(pair.run), _rules(pair.before)
    rules = {*now, *before}
    accepted_now, accepted_before = (_suppressed(each, rules) for each in (pair.run, pair.before))
    new: dict[str, str] = {}
    gone: dict[str, str] = {}
    for rule in rules:
        here, then = now.get(rule), before.get(rule)
        if here is not None and then is not None and here["thresholds"] != then["thresholds"]:
            why = f"the rule had other thresholds ({then['thresholds'] or 'none'})"
            new[rule] = gone[rule] = why
        if not _was_applied(then):
            new[rule] = "the run before did not apply the rule"
        elif rule in accepted_before:
            new[rule] = "the run before suppressed findings of the rule"
        if not _was_applied(here):
            gone[rule] = "this run did not apply the rule"
        elif rule in accepted_now:
            gone[rule] = "this run suppressed findings of the rule"
        if pair.run.settings != pair.before.settings and _is_about(rule, _GO_BY_SETTINGS):
            for whys in (new, gone):
                whys.setdefault(rule, "both runs were given other settings of brokers")
    why_none = None if pair.difference is None else pair.difference.words
    of_lag = frozenset(each for each in rules if _is_about(each, _KNOW_ENDS))
    return Unjudged(why_none, new, gone, of_lag)


def _is_about(rule: str, questions: tuple[str, ...]) -> bool:
    """Return whether a rule looks at answers of questions; one of another release may."""
    tables = {each.name: each.table for each in finding_rules()}
    return rule not in tables or tables[rule] in _tables_of(questions)


@cache
def _tables_of(questions: tuple[str, ...]) -> frozenset[str]:
    return frozenset(table for name in questions for table in question(name).tables)


def rule_rows(
    pair: Pair, compared: FindingChanges | None, unjudged: Unjudged | None
) -> list[dict[str, Any]]:
    """Return `trend_rules` of a run: each rule that found something here or in the run before.

    Args:
        pair: The run, and the one before it.
        compared: What became of findings; None where there is nothing to compare with.
        unjudged: Of which findings that cannot be told; None likewise.
    """
    now = _rules(pair.run)
    before = {} if pair.before is None else _rules(pair.before)
    rows = []
    for rule in sorted({*now, *before}):
        here, then = now.get(rule), before.get(rule)
        number, earlier = _number(here), _number(then)
        if not number and not earlier:
            continue
        counts = None
        if compared is not None:
            counts = compared.counts.get(rule, dict.fromkeys(FINDING_CHANGES, 0))
        rows.append(
            {
                "cluster": pair.cluster,
                "as_of": pair.run.as_of,
                "rule": rule,
                "severity": (here or then or {})["severity"],
                "change": FIRST if pair.before is None else _change(number, counts),
                "findings": number,
                "earlier_findings": earlier,
                "new": None if counts is None else counts[NEW],
                "still_there": None if counts is None else counts[STILL],
                "gone": None if counts is None else counts[NOT_THERE_NOW],
                "uncertain": None if counts is None else _uncertain(counts),
                "message": None if compared is None else compared.first.get(rule),
                "reason": None if pair.before is None else _why(rule, counts, unjudged),
            }
        )
    return rows


def _rules(run: AuditedRun) -> _Rules:
    if not run.tables.has("applied_rules"):
        return {}
    rows = pl.concat(frames(run, "applied_rules", _COLUMNS))
    return {row["rule"]: row for row in rows.iter_rows(named=True)}


def _suppressed(run: AuditedRun, rules: Iterable[str]) -> frozenset[str]:
    """Return the rules of which a run suppressed findings; entries name them by patterns."""
    if not run.tables.has("suppressions"):
        return frozenset()
    rows = pl.concat(frames(run, "suppressions", ["rule", "suppressed"]))
    patterns = rows.filter(pl.col("suppressed") > 0)["rule"].to_list()
    return frozenset(
        rule for rule in rules for each in patterns if each is None or fnmatchcase(rule, each)
    )


def _was_applied(rule: Mapping[str, Any] | None) -> bool:
    return rule is not None and bool(rule["is_on"] and rule["was_applied"])


def _number(rule: Mapping[str, Any] | None) -> int | None:
    return rule["findings"] if rule is not None and _was_applied(rule) else None


def _uncertain(counts: Mapping[str, int]) -> int:
    return counts[MAY_BE_NEW] + counts[MAY_BE_GONE]


def _why(rule: str, counts: Mapping[str, int] | None, unjudged: Unjudged | None) -> str | None:
    """Return why it cannot be told what became of a rule's findings."""
    if counts is None or unjudged is None:
        return "one of both runs has no table of findings"
    if unjudged.why is not None:
        return unjudged.why
    whys = [unjudged.new.get(rule), unjudged.ended.get(rule)]
    if not any(whys):
        # They are about groups of which one of both does not show all.
        number = _uncertain(counts)
        whys = [f"of {number:,} the other run does not show all of the group"] if number else []
    return "; ".join(dict.fromkeys(filter(None, whys))) or None


def _change(number: int | None, counts: Mapping[str, int] | None) -> str:
    """Return what became of a rule's findings: more or fewer, whatever cannot be told of some."""
    if counts is None:
        return CANNOT_TELL
    most = counts[NEW] + counts[MAY_BE_NEW] - counts[NOT_THERE_NOW]
    least = counts[NEW] - counts[NOT_THERE_NOW] - counts[MAY_BE_GONE]
    if least > 0:
        was_there = counts[STILL] or counts[NOT_THERE_NOW] or counts[MAY_BE_GONE]
        return WORSE if was_there else NEW
    if most < 0:
        return BETTER if number or counts[MAY_BE_GONE] else NOT_THERE_NOW
    return AS_BEFORE if most == least == 0 else CANNOT_TELL


LAG: Final = "trend_lag"


def furthest_behind(run: AuditedRun, most: int) -> list[str]:
    """Return the groups with the largest lags in one run."""
    if not run.tables.has("audited_groups"):
        return []
    held: pl.DataFrame | None = None
    for rows in frames(run, "audited_groups", ["group_id", "lag"]):
        mine = rows.filter(pl.col("lag") > 0)
        held = largest(mine if held is None else pl.concat([held, mine]), "lag", most)
    return [] if held is None else held["group_id"].to_list()


_LAG: Final = ["group_id", "lag", "lag_not_told", "complete"]


def lag_of_groups(pairs: Sequence[Pair], groups: Sequence[str]) -> list[dict[str, Any]]:
    """Return `trend_lag`: the lags of some groups in each run of a cluster.

    Args:
        pairs: Of one cluster, in order.
        groups: Their names.
    """
    found: list[dict[str, Any]] = []
    earlier: dict[str, Mapping[str, Any]] = {}
    for pair in pairs:
        now = _known_lags(pair.run, groups)
        for group in groups:
            here, then = now.get(group), earlier.get(group)
            if here is None and then is None:
                continue
            found.append(_lag_row(pair, group, here or _NO_LAG, then or _NO_LAG))
        earlier = now
    return found


_NO_LAG: Final[Mapping[str, Any]] = {"lag": None, "bound": None, "reason": "the group is not there"}
_NO_TABLE: Final = {**_NO_LAG, "reason": "there is no table audited_groups"}


def _known_lags(run: AuditedRun, groups: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    if not run.tables.has("audited_groups"):
        return dict.fromkeys(groups, _NO_TABLE)
    kept = pl.concat(
        rows.filter(pl.col("group_id").is_in(list(groups)))
        for rows in frames(run, "audited_groups", _LAG)
    )
    interpolated = _with_interpolated_ends(run, groups)
    return {
        row["group_id"]: _known_lag(row, is_interpolated=row["group_id"] in interpolated)
        for row in kept.iter_rows(named=True)
    }


def _with_interpolated_ends(run: AuditedRun, groups: Sequence[str]) -> frozenset[str]:
    """Return the groups of which the end of a log is only interpolated."""
    if not run.tables.has("lag"):
        return frozenset()
    is_wanted = pl.col("group_id").is_in(list(groups)) & (pl.col("log_end_bound") == INTERPOLATED)
    return frozenset(
        group
        for rows in frames(run, "lag", ["group_id", "log_end_bound"])
        for group in rows.filter(is_wanted)["group_id"]
    )


def _known_lag(row: Mapping[str, Any], *, is_interpolated: bool) -> Mapping[str, Any]:
    if row["lag"] is None:
        return {"lag": None, "bound": None, "reason": "its lag is not known"}
    if row["lag_not_told"]:
        why = "the lag of some of its partitions is not known"
        bound = AT_LEAST_ABOUT if is_interpolated else AT_LEAST
        return {"lag": row["lag"], "bound": bound, "reason": why}
    if row["complete"] is False or is_interpolated:
        return {"lag": row["lag"], "bound": ESTIMATED, "reason": None}
    return {"lag": row["lag"], "bound": EXACT, "reason": None}


_OPEN: Final = frozenset({AT_LEAST, AT_LEAST_ABOUT, None})
"""Bounds of lags whose difference says nothing."""


def _lag_row(
    pair: Pair, group: str, here: Mapping[str, Any], before: Mapping[str, Any]
) -> dict[str, Any]:
    whys = [here["reason"]]
    if pair.before is not None:
        whys.append(before["reason"] and f"in the run before {before['reason']}")
    if pair.difference is not None:
        whys.append(pair.difference.words)
    bounds = here["bound"], before["bound"]
    grown = a_day = grown_bound = None
    is_open = not _OPEN.isdisjoint(bounds)
    if pair.comparable is not None and not is_open:
        grown = here["lag"] - before["lag"]
        grown_bound = ESTIMATED if ESTIMATED in bounds else EXACT
        a_day = None if pair.days is None else grown / pair.days
        if a_day is None:
            whys.append(TOO_CLOSE)
    return {
        "cluster": pair.cluster,
        "as_of": pair.run.as_of,
        "group_id": group,
        "lag": here["lag"],
        "lag_bound": here["bound"],
        "earlier_lag": before["lag"],
        "earlier_lag_bound": before["bound"],
        "grown": grown,
        "grown_bound": grown_bound,
        "grown_per_day": a_day,
        "reason": "; ".join(filter(None, whys)) or None,
    }


READ: Final[Mapping[str, Sequence[str]]] = {
    "partition_usage": ("topic", "partition", "copy", "is_leading", "file_bytes"),
    "data_segments": ("topic", "partition", "copy", "size_bytes"),
}
"""What is read of each run."""
_FAR: Final = timedelta(days=100 * 366)
_PLACE: Final = ["topic", "partition", "copy"]
_NO_DISK: Final = "a snapshot is of the leaders of all partitions, not of the disk of one broker"
_ONE_RUN: Final = "there is one run of the cluster"
_NO_GROWTH: Final = (
    "what the dump shows of it does not grow, and what else lies on the disk is not in the dump"
)
_FAR_OFF: Final = (
    "what the dump shows of it does not fill it within a hundred years, and what else lies on the "
    "disk is not in the dump"
)


def disk_rows(pair: Pair, disk_bytes: int | None) -> list[dict[str, Any]]:
    """Return `trend_disks` of the last run of a cluster: a row a copy.

    What lies on a disk beside what the dump shows takes room, too: it is full at the latest then.

    Args:
        pair: The run, and the one before it.
        disk_bytes: Size of each disk; None where nobody said.
    """
    if not pair.run.tables.has("partition_usage"):
        return []
    now = _files(pair.run)
    before = None
    if pair.comparable is not None and pair.comparable.tables.has("partition_usage"):
        names = copies_as_named_by(pair.run, pair.comparable)
        before = _files(pair.comparable).with_columns(pl.col("copy").replace(names))
    rows = []
    for copy in sorted(now["copy"].drop_nulls().unique()):
        mine = now.filter(pl.col("copy") == copy)
        is_same = (pl.col("copy") == copy) & ~pl.col("is_fetched")
        earlier = None if before is None else before.filter(is_same)
        rows.append(_row(pair, copy, mine, earlier, disk_bytes))
    return rows


def _files(run: AuditedRun) -> pl.DataFrame:
    """Return `bytes` by `topic`, `partition` and `copy`.

    Beside them whether it `is_internal`, and whether the copy `is_fetched` from a cluster.
    """
    internal = usage_by_copy(run).select(
        *_PLACE,
        pl.col("file_bytes").alias("bytes"),
        pl.lit(value=True).alias("is_internal"),
        "is_fetched",
    )
    parts = [internal]
    if run.tables.has("data_segments"):
        for rows in frames(run, "data_segments", [*_PLACE, "size_bytes"]):
            by_log = rows.group_by(_PLACE).agg(pl.col("size_bytes").sum().alias("bytes"))
            is_neither = pl.lit(value=False)
            parts.append(
                by_log.with_columns(is_neither.alias("is_internal"), is_neither.alias("is_fetched"))
            )
    keys = [*_PLACE, "is_internal", "is_fetched"]
    rows = pl.concat(each.select(*keys, pl.col("bytes").cast(pl.Int64)) for each in parts)
    is_open = pl.col("bytes").is_null().any()
    return rows.group_by(keys).agg(
        pl.when(is_open).then(None).otherwise(pl.col("bytes").sum()).alias("bytes")
    )


def _row(
    pair: Pair,
    copy: str,
    now: pl.DataFrame,
    before: pl.DataFrame | None,
    disk_bytes: int | None,
) -> dict[str, Any]:
    size = _sum(now)
    rate, why = _rate(pair, now, before)
    full_at, bound = None, "unknown"
    if now["is_fetched"].any():
        why = _NO_DISK
    elif size is not None and disk_bytes is not None and size >= disk_bytes:
        full_at, bound, why = pair.run.instant, "at_latest", "the dump alone has as many bytes"
    elif disk_bytes is None:
        why = why or "nobody said how large the disk is (--disk-size)"
    elif size is not None and rate is not None:
        days = (disk_bytes - size) / rate if rate > 0 else None
        if days is None:
            why = _NO_GROWTH
        elif days >= _FAR / timedelta(days=1):
            why = _FAR_OFF
        else:
            full_at, bound = pair.run.instant + timedelta(days=days), "at_latest"
    return {
        "cluster": pair.cluster,
        "as_of": pair.run.as_of,
        "copy": copy,
        "file_bytes": size,
        "disk_bytes": disk_bytes,
        "bytes_per_day": None if rate is None else round(rate),
        "full_at": full_at,
        "full_bound": bound,
        "reason": why,
    }


def _rate(
    pair: Pair, now: pl.DataFrame, before: pl.DataFrame | None
) -> tuple[float | None, str | None]:
    """Return how many bytes more the partitions take a day that both runs have of a copy.

    Else why that cannot be told.
    """
    size = _sum(now)
    earlier = None if before is None else _sum(before)
    if pair.before is None:
        why = _ONE_RUN
    elif pair.difference is not None:
        why = pair.difference.words
    elif before is None:
        why = "the run before has no table partition_usage"
    elif pair.days is None:
        why = TOO_CLOSE
    elif not before.height:
        why = "the run before has no copy of that broker"
    elif not _internal(now).equals(_internal(before)):
        why = "it has other internal partitions than in the run before"
    elif size is None or earlier is None:
        why = "nothing tells how large its files are"
    else:
        # A data partition that one of both lacks may have been moved, or was not copied.
        place = ["topic", "partition"]
        common = [_sum(now.join(before, place, "semi")), _sum(before.join(now, place, "semi"))]
        return ((common[0] or 0) - (common[1] or 0)) / pair.days, None
    return None, why


def _internal(files: pl.DataFrame) -> pl.DataFrame:
    return files.filter("is_internal").select("topic", "partition").sort("topic", "partition")


def _sum(files: pl.DataFrame) -> int | None:
    return None if files["bytes"].null_count() else int(files["bytes"].sum())
