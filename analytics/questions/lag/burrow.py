"""Burrow's status of every partition that a group commits, at an instant and through history.

The rules are those of Burrow's evaluator (``calculatePartitionStatus``) and of its storage
(``addConsumerOffset``), with one addition: a lag that nothing tells is unknown, and a verdict that
would rest on it is `NOT_EVALUABLE` instead of a guess. Where every lag is known the verdict is
Burrow's own.

A window slides over the commits of one partition after the other; it is looked at again at every
commit, at every sample of an end offset, and at the second at which a group that commits no more
counts as stopped. What does so are loops over numbers, compiled where there is enough to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from analytics.questions.lag.movement import KEY
from analytics.wire.compiled import compiled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from analytics.wire.compiled import Numbers as Given
    from schemas.evaluation_rules import BurrowRules

    Numbers = NDArray[np.int64]

NOT_EVALUABLE: Final = 0
OK: Final = 1
WARN: Final = 2
STOP: Final = 4
STALL: Final = 5
REWIND: Final = 6
NAMES: Final = {
    NOT_EVALUABLE: "NOT_EVALUABLE",
    OK: "OK",
    WARN: "WARN",
    STOP: "STOP",
    STALL: "STALL",
    REWIND: "REWIND",
}
"""Burrow's words, by Burrow's numbers; `NOT_EVALUABLE` is ours."""

UNKNOWN: Final = -1
"""A lag or an end offset that nothing tells."""


RULES: Final = {
    "NOT_EVALUABLE": None,
    "OK": "no lag, or none once in the window, or it shrank (rule 1, 5)",
    "WARN": "the lag did not shrink (rule 5)",
    "STOP": "longer since the last commit than the window spans (rule 3)",
    "STALL": "the same offset over and over (rule 4)",
    "REWIND": "a step back that was not made good (rule 2)",
}
"""By what each status is told, in words."""

END_OF_TIME: Final = (1 << 63) - 1
"""A time after every other."""

COUNT, STATUS, SAMPLE, FIRST_SAMPLE, END_SAMPLE, SEEN_UNTIL = range(6)
"""What is kept of the partition beside its window: commits in the window, status told last, the
sample after the last one seen, the first of its samples and the one after its last, and the time
until which it was looked at."""
KEPT: Final = 6

OFFSET, TIME, ARRIVAL = range(3)
"""What is told of each commit: what, the client's time, the log's; times in milliseconds."""
TOLD: Final = 3

END, SAMPLED_FROM, SAMPLED_UNTIL, UNTIL = range(4)
"""What is told of each partition: the commit after its last, the first of its samples and the one
after its last, and until when it is looked at."""
PARTITION: Final = 4

INTERVALS, MIN_DISTANCE, ALLOWED_LAG = range(3)
"""The rules: commits in a window, milliseconds between two of them, a lag that is none."""

DELETED: Final = -(1 << 63)
"""In place of an offset: it was removed, and the window is emptied."""

CHANGED_PARTITION, CHANGED_AT, CHANGED_TO, CHANGED_OFFSET = range(4)
"""What is told of each change of status."""
CHANGED: Final = 4

_FIELDS_A_COMMIT: Final = 4
"""How much looking at a commit is, in fields that are read: when compiling pays."""
_MOST_CHANGES: Final = 1 << 20
"""For so many there is room at once, or for those of one partition."""
_READ: Final = "Array(int64, 1, 'C', readonly=True)"


def status_of_window(
    windows: Numbers,
    count: int,
    current_lag: int,
    has_stopped: bool,  # noqa: FBT001
    allowed_lag: int,
) -> int:
    """Return the status by the commits of a window.

    Args:
        windows: A row of committed offsets, one of their times, and one of the lags when they were
            committed (`UNKNOWN` where nothing tells).
        count: How many commits are in it.
        current_lag: The lag now, `UNKNOWN` where nothing tells.
        has_stopped: Rule 3 holds: it is longer since the last commit than the window spans, and no
            end offset that is remembered shows that there was nothing to read.
        allowed_lag: A lag up to this is none.
    """
    if count == 0 or 0 <= current_lag <= allowed_lag:
        return OK
    if current_lag == UNKNOWN:
        return NOT_EVALUABLE
    if has_stopped:
        return STOP
    if is_rewound(windows[0], count):
        return REWIND
    return status_by_lags(windows[0], windows[2], count, allowed_lag)


def is_rewound(offsets: Numbers, count: int) -> bool:
    """Return whether the first step back of a window was not made good in it (rule 2)."""
    for place in range(1, count):
        if offsets[place] < offsets[place - 1]:
            for later in range(place, count):  # noqa: SIM110 - compiled: no generators
                if offsets[later] >= offsets[place - 1]:
                    return False
            return True
    return False


def status_by_lags(offsets: Numbers, lags: Numbers, count: int, allowed_lag: int) -> int:
    """Return the status by rules 1, 4 and 5, which ask for the lag at each commit."""
    are_all_known = True
    is_stalled = True
    greatest = UNKNOWN
    has_decreased = False
    for place in range(count):
        if offsets[place] != offsets[0]:
            is_stalled = False
        lag = lags[place]
        if lag == UNKNOWN:
            are_all_known = False
        elif lag <= allowed_lag:
            return OK
        elif lag < greatest:
            # Whatever the lags between them were: somewhere it went down.
            has_decreased = True
        else:
            greatest = lag
    if not are_all_known:
        return OK if has_decreased and not is_stalled else NOT_EVALUABLE
    if is_stalled:
        return STALL
    return OK if has_decreased else WARN


def stops_at(first_time: int, last_time: int) -> int:
    """Return the first full second, in milliseconds, at which rule 3 holds."""
    return (2 * last_time - first_time) // 1000 * 1000 + 1000


def _status_now(
    at: int, kept: Numbers, windows: Numbers, sample_ends: Numbers, rules: Numbers
) -> int:
    count = kept[COUNT]
    if count == 0:
        return NOT_EVALUABLE
    last_offset = windows[0, count - 1]
    sample, first_sample = kept[SAMPLE], kept[FIRST_SAMPLE]
    current_lag = UNKNOWN
    if sample > first_sample:
        current_lag = max(sample_ends[sample - 1] - last_offset, 0)
    was_at_end = False
    for place in range(max(first_sample, sample - rules[INTERVALS]), sample):
        if sample_ends[place] <= last_offset:
            was_at_end = True
    is_stopped = at >= stops_at(windows[1, 0], windows[1, count - 1])
    has_stopped = is_stopped and not was_at_end
    return status_of_window(windows, count, current_lag, has_stopped, rules[ALLOWED_LAG])


def _tell(  # noqa: PLR0913, PLR0917 - what a loop has, its parts are handed
    at: int,
    partition: int,
    kept: Numbers,
    windows: Numbers,
    sample_ends: Numbers,
    rules: Numbers,
    changes: Numbers,
    told: int,
) -> int:
    """Tell the status where it is another one; return how many changes were told."""
    status = _status_now(at, kept, windows, sample_ends, rules)
    if status == kept[STATUS]:
        return told
    kept[STATUS] = status
    count = kept[COUNT]
    changes[told, CHANGED_PARTITION] = partition
    changes[told, CHANGED_AT] = at
    changes[told, CHANGED_TO] = status
    changes[told, CHANGED_OFFSET] = windows[0, count - 1] if count > 0 else DELETED
    return told + 1


def _advance(  # noqa: PLR0913, PLR0917
    until: int,
    partition: int,
    kept: Numbers,
    windows: Numbers,
    sample_times: Numbers,
    sample_ends: Numbers,
    rules: Numbers,
    changes: Numbers,
    told: int,
) -> int:
    """Look at a partition at every sample and at its stop, up to a time."""
    while True:
        sample, count = kept[SAMPLE], kept[COUNT]
        at = sample_times[sample] if sample < kept[END_SAMPLE] else END_OF_TIME
        is_sample = at != END_OF_TIME
        if count > 0 and kept[STATUS] != STOP:
            stop = stops_at(windows[1, 0], windows[1, count - 1])
            if kept[SEEN_UNTIL] < stop < at:
                at, is_sample = stop, False
        if at > until:
            break
        if is_sample:
            kept[SAMPLE] = sample + 1
        kept[SEEN_UNTIL] = at
        if count > 0:
            told = _tell(at, partition, kept, windows, sample_ends, rules, changes, told)
    kept[SEEN_UNTIL] = max(kept[SEEN_UNTIL], until)
    return told


def _remember(
    offset: int, time: int, kept: Numbers, windows: Numbers, sample_ends: Numbers, rules: Numbers
) -> None:
    """Put a commit into the window; one that comes too soon takes the place of the one before."""
    intervals, place, sample = rules[INTERVALS], kept[COUNT], kept[SAMPLE]
    lag = UNKNOWN
    if sample > kept[FIRST_SAMPLE]:
        lag = max(sample_ends[sample - 1] - offset, 0)
    if place > 0 and time - windows[1, place - 1] < rules[MIN_DISTANCE]:
        place -= 1
        time = windows[1, place]
    elif place == intervals:
        for each in range(place - 1):
            windows[0, each] = windows[0, each + 1]
            windows[1, each] = windows[1, each + 1]
            windows[2, each] = windows[2, each + 1]
        place -= 1
    else:
        kept[COUNT] = place + 1
    windows[0, place] = offset
    windows[1, place] = time
    windows[2, place] = lag


@compiled(
    f"int64({_READ}, {_READ}, int64[::1], int64[:, ::1], {_READ}, {_READ}, {_READ}, int64[:, ::1])",
    status_of_window, is_rewound, status_by_lags, stops_at, _status_now, _tell, _advance, _remember,
)  # fmt: skip
def fold_commits(  # noqa: PLR0913, PLR0917
    commits: Given,
    partitions: Numbers,
    kept: Numbers,
    windows: Numbers,
    sample_times: Numbers,
    sample_ends: Numbers,
    rules: Numbers,
    changes: Numbers,
) -> int:
    """Put commits into windows, partition by partition; return how many changes were told.

    Args:
        commits: `TOLD` numbers for each commit, in the order of the log within each partition.
        partitions: `PARTITION` numbers for each.
        kept: Room for `KEPT` numbers.
        windows: Room for offsets, times and lags: a row each, as long as a window.
        sample_times: When end offsets were sampled, ascending within each partition.
        sample_ends: The end offsets.
        rules: `INTERVALS`, `MIN_DISTANCE`, `ALLOWED_LAG`.
        changes: Where changes are told, `CHANGED` numbers each: must have room.
    """
    told = 0
    commit = 0
    for partition in range(len(partitions) // PARTITION):
        of = partition * PARTITION
        for each in range(KEPT):
            kept[each] = 0
        kept[SAMPLE] = kept[FIRST_SAMPLE] = partitions[of + SAMPLED_FROM]
        kept[END_SAMPLE] = partitions[of + SAMPLED_UNTIL]
        while commit < partitions[of + END]:
            at = commit * TOLD
            arrival, offset = commits[at + ARRIVAL], commits[at + OFFSET]
            told = _advance(
                arrival, partition, kept, windows, sample_times, sample_ends, rules, changes, told
            )
            if offset == DELETED:
                kept[COUNT] = 0
            else:
                _remember(offset, commits[at + TIME], kept, windows, sample_ends, rules)
            told = _tell(arrival, partition, kept, windows, sample_ends, rules, changes, told)
            commit += 1
        told = _advance(
            partitions[of + UNTIL], partition, kept, windows, sample_times, sample_ends, rules,
            changes, told,
        )  # fmt: skip
    return told


def status_history(
    keys: pl.DataFrame,
    commits: pl.DataFrame,
    samples: pl.DataFrame,
    rules: BurrowRules,
    until_ms: int,
) -> pl.DataFrame:
    """Return the changes of status as intervals: the table `status_history`, without marks.

    Args:
        keys: As `movement.in_order` returns them.
        commits: Likewise.
        samples: Where logs ended, and when (`pace.log_ends`).
        rules: How many commits make a window, and what lag is none.
        until_ms: The instant. A commit of a later time is not believed: when it was made nothing
            tells, nor by when the commits behind it were in its window.

    Returns:
        `KEY`, `status`, `from_timestamp`, `to_timestamp` (null: still), `rule`,
        `committed_offset`. Of a partition with a commit whose time is not believed it has what was
        over before that; of one of whose log no end is known it has nothing.
    """
    place = ["topic", "partition"]
    numbered = samples.with_row_index("from").group_by(place)
    sampled = numbered.agg(pl.col("from").min().cast(pl.Int64), pl.len().cast(pl.Int64))
    seen = keys.join(sampled, place, maintain_order="left")
    rows = _timed(commits.join(seen, "key", "semi", maintain_order="left"), until_ms)
    ends = _numbers(samples.select("at_ms")), _numbers(samples.select("end"))
    found = pl.concat([_NO_CHANGES, *_changes(seen, rows, ends, rules, until_ms)])
    # A commit and a sample of the end may have the same time: the status after both counts.
    found = found.sort("key", "at", maintain_order=True)
    found = found.filter(~(_is_beside("key", -1) & _is_beside("at", -1)))
    found = found.filter(~(_is_beside("key", 1) & _is_beside("status", 1)))
    until = pl.when(_is_beside("key", -1)).then(pl.col("at").shift(-1))
    found = found.with_columns(
        (pl.col("at") * 1000).cast(_TIME).alias("from_timestamp"),
        (until * 1000).cast(_TIME).alias("to_timestamp"),
        pl.col("status").replace_strict(NAMES, return_dtype=pl.String),
    )
    found = found.filter(pl.col("to_timestamp").is_not_null() | ~pl.col("is_doubted"))
    rule = pl.col("status").replace_strict(RULES, return_dtype=pl.String).alias("rule")
    columns = ("status", "from_timestamp", "to_timestamp", rule, "committed_offset")
    return found.join(keys, "key", "left", maintain_order="left").select(*KEY, *columns)


_TIME: Final = pl.Datetime("us", "UTC")
_NO_CHANGES: Final = pl.DataFrame(
    schema={
        "key": pl.UInt32,
        "is_doubted": pl.Boolean,
        **dict.fromkeys(("at", "status", "committed_offset"), pl.Int64),
    }
)


def _is_beside(name: str, places: int) -> pl.Expr:
    """Whether the row so many places before has the same."""
    return (pl.col(name) == pl.col(name).shift(places)).fill_null(value=False)


def _timed(commits: pl.DataFrame, until_ms: int) -> pl.DataFrame:
    """Return commits that have a time, in numbers, and whether each is not believed (`is_doubted`).

    None is behind one that is later than the instant.
    """
    offset = pl.col("committed_offset").fill_null(DELETED)
    arrival, made = (
        pl.col(name).to_physical() // 1000 for name in ("effective_timestamp", "commit_timestamp")
    )
    rows = commits.filter(pl.col("effective_timestamp").is_not_null()).select(
        "key",
        offset.alias("offset"),
        made.fill_null(arrival).alias("time"),
        arrival.alias("arrival"),
    )
    later = (pl.col("arrival") > until_ms).cum_sum()
    rows = rows.with_columns(later.cast(pl.Int64).alias("later"))
    before = pl.when(~_is_beside("key", 1)).then(pl.col("later").shift(1, fill_value=0))
    return rows.with_columns((pl.col("later") > before.forward_fill()).alias("is_doubted"))


def _changes(
    seen: pl.DataFrame,
    rows: pl.DataFrame,
    ends: tuple[Numbers, Numbers],
    rules: BurrowRules,
    until_ms: int,
) -> Iterator[pl.DataFrame]:
    """Yield what windows tell, of some partitions after the other."""
    is_believed = ~pl.col("is_doubted")
    counted = rows.group_by("key").agg(
        is_believed.sum().cast(pl.Int64).alias("commits"), pl.col("is_doubted").any()
    )
    keys = seen.join(counted, "key", maintain_order="left")
    # Each sample may change the status, and so may a stop before it, and each commit.
    room = 2 * (pl.col("commits") + pl.col("len")) + 2
    keys = keys.with_columns(
        room.alias("room"),
        (pl.col("from") + pl.col("len")).alias("to"),
        # Behind a commit whose time is not believed nothing is looked at.
        pl.when("is_doubted").then(-END_OF_TIME).otherwise(until_ms).alias("until"),
    )
    believed = rows.filter(is_believed).select("offset", "time", "arrival")
    limits = np.array([rules.intervals, rules.min_distance_ms, rules.allowed_lag], np.int64)
    first = 0
    for some in keys.with_columns(part=pl.col("room").cum_sum() // _MOST_CHANGES).partition_by(
        "part", maintain_order=True
    ):
        count = int(some["commits"].sum())
        changes = np.empty((int(some["room"].sum()), CHANGED), np.int64)
        told = fold_commits(
            (count + len(some)) * _FIELDS_A_COMMIT,
            _numbers(believed.slice(first, count)),
            _numbers(some.select(pl.col("commits").cum_sum(), "from", "to", "until")),
            np.zeros(KEPT, np.int64),
            np.zeros((3, rules.intervals), np.int64),
            *ends,
            limits,
            changes,
        )
        first += count
        yield _named(changes[:told], some)


def _numbers(rows: pl.DataFrame) -> Numbers:
    return np.ascontiguousarray(rows.to_numpy(), np.int64).reshape(-1)


def _named(changes: Numbers, partitions: pl.DataFrame) -> pl.DataFrame:
    whose = partitions.select("key", "is_doubted")[changes[:, CHANGED_PARTITION]]
    offset = pl.Series("committed_offset", changes[:, CHANGED_OFFSET])
    return whose.with_columns(
        pl.Series("at", changes[:, CHANGED_AT]),
        pl.Series("status", changes[:, CHANGED_TO]),
        pl.select(pl.when(offset != DELETED).then(offset)).to_series().alias("committed_offset"),
    )
