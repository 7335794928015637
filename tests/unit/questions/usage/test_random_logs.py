"""Random logs: what is live, and what a pass would leave, are what the slow cleaner says."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from analytics.questions.usage.cleaning.retained import Retained, retained
from analytics.questions.usage.keys.topic_usage import topic_usage
from tests.support.reference_cleaner import Entry, cleaned, fates, unchanged
from tests.unit.questions.usage.made_logs import NO_OTHERS, PLACE, states_of

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


@given(logs(), st.integers(0, 30))
def test_every_record_is_one_of_six(log: list[Entry], cut: int) -> None:
    if all(each.marker for each in log):
        return
    (row,) = topic_usage(states_of(log, cut=cut), NO_OTHERS).to_pylist()

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


@given(logs(), st.integers(0, 80), st.integers(0, 80), st.integers(0, 80))
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

    horizons = ((HORIZON, 0, with_horizon),)
    found = retained(states_of(log, bound), {PLACE: horizons}, {PLACE: now})

    expected = cleaned(log, bound, now)
    sizes = {each.offset: each.size for each in log}
    left = found.get(PLACE, Retained())
    assert left.records == left.batches == len(expected)
    assert left.record_bytes == sum(sizes[each] for each in expected)
    overdue = [
        offset
        for offset, fate in fates(log).items()
        if fate == "standing" and offset < with_horizon and now >= HORIZON
    ]
    assert left.overdue_tombstones == len(overdue)
