"""A log that an earlier snapshot has: only what is new is fetched, where it still begins so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import strategies as st

from analytics.errors import InputNotRecognizedError
from analytics.snapshot.log_extents import FetchBudget, HeldLog, Pace, Reading
from analytics.snapshot.log_folder import EarlierSnapshot, LogWriter, earlier_snapshot
from analytics.snapshot.log_reading import LogReader
from schemas.snapshot import Partition
from tests.support.examples import examples
from tests.unit.snapshot.made_batches import batch
from tests.unit.snapshot.test_log_reading import TOPIC, MadeCluster, bytes_of
from tests.unit.snapshot.test_taking import snapshot_of_logs

Batches = list[tuple[int, ...]]
WHOLE: Batches = [(0, 5), (5, 1), (6, 4)]
MORE: Batches = [(10, 2), (12, 7)]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analytics.snapshot.log_reading._BETWEEN", 0.001)


def read(
    cluster: MadeCluster, folder: Path, held: HeldLog | None = None, most_bytes: int | None = None
) -> Reading:
    partition = Partition(0, 1, cluster.epoch, [1], [1], cluster.start, cluster.end, None, None)
    folder.mkdir(exist_ok=True)
    pace = Pace(5, 100, FetchBudget(most_bytes=most_bytes))
    with LogWriter(folder, TOPIC, 0) as writer:
        return LogReader(cluster, pace).read(TOPIC, partition, writer, held)  # type: ignore[arg-type]


def segments(folder: Path) -> list[Path]:
    return sorted((folder / f"{TOPIC}-0").glob("*.log"))


def content(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in segments(folder))


def held_of(reading: Reading, folder: Path) -> HeldLog:
    """What a snapshot has of the log that was read into a folder."""
    assert reading.span is not None
    assert reading.last_batch is not None
    assert reading.next_offset is not None
    files = segments(folder)
    last = [each for each in files if each.stat().st_size][-1].read_bytes()
    return HeldLog(
        reading.span.start,
        reading.next_offset,
        reading.has_gaps,
        reading.last_batch,
        last[-reading.last_batch.size :],
        tuple(files),
    )


def taken(cluster: MadeCluster, folder: Path) -> HeldLog:
    return held_of(read(cluster, folder), folder)


def test_only_what_is_new_is_fetched_into_a_segment_of_its_own(tmp_path: Path) -> None:
    held = taken(MadeCluster(WHOLE, 10), tmp_path / "1")
    grown = MadeCluster([*WHOLE, *MORE], 19)
    reading = read(grown, tmp_path / "2", held)
    assert content(tmp_path / "2") == bytes_of([*WHOLE, *MORE])
    assert [each.name for each in segments(tmp_path / "2")] == [f"{0:020d}.log", f"{10:020d}.log"]
    assert (reading.fetched_from, reading.why_whole, reading.next_offset) == (10, None, 19)
    assert reading.size == len(bytes_of([*WHOLE, *MORE]))
    # One fetch looks at the last batch that is held.
    whole = MadeCluster([*WHOLE, *MORE], 19)
    read(whole, tmp_path / "3")
    assert grown.fetched < whole.fetched
    assert content(tmp_path / "1") == bytes_of(WHOLE)


def test_where_nothing_is_new_the_files_are_the_same(tmp_path: Path) -> None:
    held = taken(MadeCluster(WHOLE, 20), tmp_path / "1")
    assert len(segments(tmp_path / "1")) == 2
    reading = read(MadeCluster(WHOLE, 20), tmp_path / "2", held)
    assert [each.name for each in segments(tmp_path / "2")] == [
        each.name for each in segments(tmp_path / "1")
    ]
    assert (reading.fetched_from, reading.next_offset, reading.has_gaps) == (20, 20, True)


@pytest.mark.parametrize(
    ("now", "end", "start", "why"),
    [
        ([*WHOLE, (10, 2)], 12, 5, "it began at 0 and begins at 5 now"),
        (WHOLE[:2], 6, 0, "it went on to 10 and ends at 6 now"),
        ([(0, 5), (5, 5), (10, 2)], 12, 0, "its batch at offset 9 is another one now"),
        ([(0, 5), (5, 1), (6, 4, 1), (10, 2)], 12, 0, "its batch at offset 9 is another one now"),
        ([(0, 5), (10, 2)], 12, 0, "its batch at offset 9 is another one now"),
        ([*WHOLE, (10, 2), (15, 4)], 19, 0, "the cleaner removed records behind what was held"),
        ([*WHOLE, (10, 9, 3)], 19, 0, "the cleaner removed records behind what was held"),
    ],
    ids=["deleted", "truncated", "rewritten", "cleaned", "gone", "gap behind", "cleaned behind"],
)
def test_a_log_that_is_another_one_is_read_whole_and_it_is_said_why(
    tmp_path: Path, now: Batches, end: int, start: int, why: str
) -> None:
    held = taken(MadeCluster(WHOLE, 10), tmp_path / "1")
    reading = read(MadeCluster(now, end, start=start), tmp_path / "2", held)
    assert (reading.why_whole, reading.fetched_from) == (why, None)
    read(MadeCluster(now, end, start=start), tmp_path / "3")
    assert content(tmp_path / "2") == content(tmp_path / "3")
    assert reading.failure is None


def test_what_the_cleaner_removed_below_stays(tmp_path: Path) -> None:
    held = taken(MadeCluster(WHOLE, 10), tmp_path / "1")
    cleaned: Batches = [(0, 5, 2), *WHOLE[2:], *MORE]
    reading = read(MadeCluster(cleaned, 19), tmp_path / "2", held)
    assert content(tmp_path / "2") == bytes_of([*WHOLE, *MORE])
    assert (reading.why_whole, reading.has_gaps) == (None, False)


def test_a_leader_that_changes_meanwhile_has_it_read_whole(tmp_path: Path) -> None:
    held = taken(MadeCluster(WHOLE, 10), tmp_path / "1")

    def move(cluster: MadeCluster, number: int) -> None:
        if number == 2:
            cluster.leader, cluster.epoch = 2, 4

    cluster = MadeCluster([*WHOLE, *MORE], 19, before=move)
    reading = read(cluster, tmp_path / "2", held)
    assert str(reading.why_whole).startswith("it changed while it was read on (")
    assert content(tmp_path / "2") == bytes_of([*WHOLE, *MORE])


def test_what_may_not_be_fetched_any_more_ends_it_with_what_is_there(tmp_path: Path) -> None:
    held = taken(MadeCluster(WHOLE, 10), tmp_path / "1")
    most = held.last.size + 1
    reading = read(MadeCluster([*WHOLE, *MORE], 19), tmp_path / "2", held, most)
    assert "no more is fetched" in str(reading.failure)
    assert bytes_of([*WHOLE, *MORE]).startswith(content(tmp_path / "2"))
    assert len(content(tmp_path / "2")) >= len(bytes_of(WHOLE))


def test_a_resumed_snapshot_can_be_gone_on_from(tmp_path: Path) -> None:
    held = taken(MadeCluster(WHOLE, 10), tmp_path / "1")
    again = held_of(read(MadeCluster([*WHOLE, MORE[0]], 12), tmp_path / "2", held), tmp_path / "2")
    reading = read(MadeCluster([*WHOLE, *MORE], 19), tmp_path / "3", again)
    assert content(tmp_path / "3") == bytes_of([*WHOLE, *MORE])
    assert reading.fetched_from == 12


_SIZES = st.lists(st.integers(1, 6), max_size=12)


def _chain(sizes: list[int], base: int = 0) -> Batches:
    batches = []
    for each in sizes:
        batches.append((base, each))
        base += each
    return batches


@examples(
    30, 150, before=_SIZES.filter(bool), after=_SIZES, cut=st.integers(0, 12), other=st.booleans()
)
def test_resumed_is_whole_batch_by_batch(
    before: list[int], after: list[int], cut: int, other: bool
) -> None:
    """Logs that grow, are truncated, and are written otherwise from there on."""
    first = _chain(before)
    end = sum(before)
    if cut < len(before) and other:
        kept = first[:cut]
        base = kept[-1][0] + kept[-1][1] if kept else 0
        # Other records: a batch of another size in bytes.
        rest = [(*each, each[1], 11) for each in _chain(after, base)]
        now: Batches = [*kept, *rest]
    else:
        now = [*first, *_chain(after, end)]
    last = now[-1][0] + now[-1][1] if now else 0
    with TemporaryDirectory() as name:
        folder = Path(name)
        held = taken(MadeCluster(first, end), folder / "1")
        resumed = read(MadeCluster(now, last), folder / "2", held)
        whole = read(MadeCluster(now, last), folder / "3")
        assert content(folder / "2") == content(folder / "3")
        assert (resumed.next_offset, resumed.end) == (whole.next_offset, whole.end)
        assert (resumed.has_gaps, resumed.failure) == (whole.has_gaps, whole.failure)
        assert content(folder / "1") == bytes_of(first)


# --- the earlier snapshot ---------------------------------------------------------------------


def earlier(tmp_path: Path, cluster: MadeCluster) -> EarlierSnapshot:
    folder = tmp_path / "earlier"
    reading = read(cluster, folder)
    return EarlierSnapshot(folder, snapshot_of_logs(TOPIC, "id", reading))


def test_it_has_its_logs(tmp_path: Path) -> None:
    before = earlier(tmp_path, MadeCluster(WHOLE, 10))
    (topic,) = before.document.topics
    held = before.held(topic, 0)
    assert isinstance(held, HeldLog)
    assert (held.start, held.next_offset, held.content) == (0, 10, batch(*WHOLE[-1]))
    assert before.held(topic, 1) is None


def test_a_topic_that_was_created_again_is_not_gone_on_from(tmp_path: Path) -> None:
    before = earlier(tmp_path, MadeCluster(WHOLE, 10))
    (topic,) = before.document.topics
    again = msgspec.structs.replace(topic, topic_id="another")
    assert before.held(again, 0) == "the topic was created again"


def test_files_that_changed_since_are_not_gone_on_from(tmp_path: Path) -> None:
    before = earlier(tmp_path, MadeCluster(WHOLE, 10))
    (topic,) = before.document.topics
    (segment,) = segments(before.folder)
    segment.write_bytes(segment.read_bytes()[:-1])
    assert before.held(topic, 0) == "files of the earlier snapshot are not as they were written"
    segment.unlink()
    assert isinstance(before.held(topic, 0), str)


def test_a_log_that_was_not_read_to_its_end_is_read_whole(tmp_path: Path) -> None:
    before = earlier(tmp_path, MadeCluster(WHOLE, 10))
    (log,) = before.document.logs
    failed = msgspec.structs.replace(log, failure="slow")
    document = msgspec.structs.replace(before.document, logs=[failed])
    (topic,) = document.topics
    assert "slow" in str(replace(before, document=document).held(topic, 0))


def test_another_cluster_is_refused(tmp_path: Path) -> None:
    before = earlier(tmp_path, MadeCluster(WHOLE, 10))
    before.check_cluster("c")
    with pytest.raises(InputNotRecognizedError, match="is a snapshot of cluster c, and other"):
        before.check_cluster("other")


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("nothing", "", "is no snapshot that can be gone on from"),
        (".unfinished-snapshot", "", "a snapshot that never came to its end"),
        ("snapshot.json", "{}", "this is no snapshot.json"),
    ],
)
def test_what_is_no_snapshot_is_refused(tmp_path: Path, name: str, text: str, why: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputNotRecognizedError, match=why):
        earlier_snapshot(tmp_path)


def test_a_document_that_names_no_topic_of_its_logs_is_not_gone_on_from(tmp_path: Path) -> None:
    before = earlier(tmp_path, MadeCluster(WHOLE, 10))
    (topic,) = before.document.topics
    document = msgspec.structs.replace(before.document, topics=[])
    why = "the earlier snapshot does not say which topic it is of"
    assert replace(before, document=document).held(topic, 0) == why
