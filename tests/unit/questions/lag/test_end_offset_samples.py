"""Every partition's samples are its own, in order of time, however many there are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from analytics.replayed.end_offsets import SAMPLES, EndOffsetSamples

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH_MS = round(EPOCH.timestamp() * 1000)


@given(
    taken=st.lists(
        st.tuples(
            st.sampled_from(["a", "b-repartition", "c"]),
            st.integers(0, 12),
            st.integers(0, 5),
            st.one_of(st.none(), st.integers(0, 99)),
        ),
        max_size=60,
    ),
    cut=st.integers(1, 20),
)
def test_a_partition_finds_its_own_samples(
    taken: list[tuple[str, int, int, int | None]], cut: int
) -> None:
    rows = [
        {"topic": topic, "partition": place, "log_end_offset": end}
        | {"timestamp": EPOCH + timedelta(milliseconds=at)}
        for topic, place, at, end in taken
    ]
    parts = [rows[start : start + cut] for start in range(0, len(rows), cut)]
    table = pa.concat_tables(
        [SAMPLES.empty_table(), *(pa.Table.from_pylist(each, SAMPLES) for each in parts)]
    )
    samples = EndOffsetSamples.of(table)

    known = [each for each in taken if each[3] is not None]
    assert samples.places.keys() == {(topic, place) for topic, place, _, _ in known}
    for key, (first, end) in samples.places.items():
        expected = [
            (EPOCH_MS + at, ended) for topic, place, at, ended in known if (topic, place) == key
        ]
        found = list(
            zip(samples.times[first:end].tolist(), samples.ends[first:end].tolist(), strict=True)
        )
        assert sorted(found) == sorted(expected)
        assert [at for at, _ in found] == sorted(at for at, _ in expected)
