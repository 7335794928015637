"""Random logs: what is live, and what a pass would leave, are what the slow cleaner says."""

from __future__ import annotations

from collections import Counter

from hypothesis import strategies as st

from analytics.questions.usage.accounts import untabled_usage
from analytics.questions.usage.key_usage import topic_usage, usage_rows
from analytics.questions.usage.log_cleaning import LeftInLog, left_in_logs, left_rows
from analytics.questions.usage.records import RECORD, LogSums
from tests.support.examples import examples
from tests.support.reference_cleaner import Entry, cleaned, fates, unchanged
from tests.unit.questions.usage.made_logs import PLACE, known_logs, ordered_rows

HORIZON = 50


@st.composite
def logs(draw: st.DrawFn) -> list[Entry]:
    """Draw a log with holes, tombstones and transactions that end in every way."""
    log = []
    offset = 0
    for _ in range(draw(st.integers(1, 25))):
        offset += draw(st.integers(1, 3))
        producer = draw(st.sampled_from([-1, -1, 7, 8]))
        if producer >= 0 and draw(st.integers(0, 3)) == 0:
            marker = draw(st.sampled_from(["COMMIT", "ABORT"]))
            log.append(Entry(offset, producer=producer, marker=marker))
            continue
        key = draw(st.sampled_from("abc"))
        value = draw(st.one_of(st.none(), st.integers(0, 2)))
        log.append(Entry(offset, key, value, draw(st.integers(8, 200)), producer))
    return log


@examples(20, 100, log=logs())
def test_every_record_is_one_of_six(log: list[Entry]) -> None:
    if all(each.marker for each in log):
        return
    made = usage_rows(ordered_rows(log, known_logs(log)))
    (row,) = topic_usage(made, untabled_usage([])).to_pylist()

    expected = fates(log)
    sizes = {each.offset: each.size for each in log}
    counts, weights = Counter(expected.values()), Counter[str]()
    for offset, fate in expected.items():
        weights[fate] += sizes[offset]
    assert row["records"] == len(expected)
    assert row["bytes"] == sum(weights.values())
    for fate in ("live", "superseded", "tombstoned", "aborted", "open"):
        assert (row[f"{fate}_records"], row[f"{fate}_bytes"]) == (counts[fate], weights[fate])
    standing = (row["standing_tombstones"], row["standing_tombstone_bytes"])
    assert standing == (counts["standing"], weights["standing"])
    assert row["unchanged_commits"] == unchanged(log)
    values = [each.value or 0 for each in log if not each.marker]
    assert row["max_metadata_bytes"] == max(values)


@examples(
    20,
    100,
    log=logs(),
    bound=st.integers(0, 80),
    with_horizon=st.integers(0, 80),
    now=st.integers(0, 80),
)
def test_a_pass_leaves_what_the_slow_cleaner_leaves(
    log: list[Entry], bound: int, with_horizon: int, now: int
) -> None:
    # No cleaner goes beyond the first open transaction.
    still_open = [offset for offset, fate in fates(log).items() if fate == "open"]
    bound = min([bound, *still_open])
    log = [
        Entry(**{**vars(each), "horizon": HORIZON if each.offset < with_horizon else None})
        for each in log
    ]

    known = known_logs(log, bound, horizons=((HORIZON, 0, with_horizon),), now_ms=now)
    sums, batches = left_rows(ordered_rows(log, known), known)
    no_markers = known.transactions.markers.clear().with_columns(is_needed=False)
    found = left_in_logs(sums, [batches], no_markers, known)

    expected = cleaned(log, bound, now)
    sizes = {each.offset: each.size for each in log}
    left = found.get(PLACE, LeftInLog())
    assert left.records == left.batches == len(expected)
    assert left.record_bytes == sum(sizes[each] for each in expected)
    overdue = [
        offset
        for offset, fate in fates(log).items()
        if fate == "standing" and offset < with_horizon and now >= HORIZON
    ]
    assert left.overdue_tombstones == len(overdue)


def test_a_marker_goes_with_its_horizon_once_nothing_of_its_transaction_is_left() -> None:
    log = [Entry(at, producer=7, marker="COMMIT") for at in (0, 9, 10, 19, 20, 30)]
    # The transaction that ends at 9 has a record that the cleaner left.
    log = sorted([*log, Entry(5, "a", 1, 100, producer=7)], key=lambda each: each.offset)
    horizons = ((60, 0, 10), (80, 10, 20))
    known = known_logs(log, bound=25, horizons=horizons, now_ms=70)
    sums = LogSums(known.transactions, {})
    rows = ordered_rows(log, known)
    sums.add(rows.select(RECORD.names()))

    left, batches = left_rows(rows, known)
    (found,) = left_in_logs(left, [batches], sums.markers, known).values()

    # 0 has gone; 9 is needed; the horizon of 10 and 19 is to come; 20 has none; 30 is beyond.
    assert (found.markers, found.marker_bytes) == (4, 40)
    assert (found.records, found.record_bytes, found.batches) == (1, 100, 1)
