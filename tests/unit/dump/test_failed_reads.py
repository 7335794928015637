"""A read that fails is tried again, or an error; it never says that the dump lacks something.

Files are real; what fails is the system call, or a filesystem of Arrow's that refuses by a script.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analytics import failed_reads
from analytics.decode.decoding import decode_dump
from analytics.decode.tasks import Settings
from analytics.dump.copies.plan import PlanOptions, plan
from analytics.dump.files import storage
from analytics.dump.files.model import Plan
from analytics.dump.files.storage import (
    ArrowStorage,
    ByteSource,
    LocalStorage,
    SourceFile,
    read_small,
)
from analytics.engine.part_runs import get_value, put_value
from analytics.errors import InputUnreadableError, ReadFailedError, WorkspaceError
from analytics.failed_reads import tried_again
from analytics.workspace import reading

DUMP = Path(__file__).parents[2] / "data" / "dumps" / "kafka-4.4.0-random" / "broker-1"
STALE = OSError(errno.ESTALE, "Stale file handle")
BAD_SECTOR = OSError(errno.EIO, "Input/output error")
RESET = OSError(errno.ECONNRESET, "Connection reset by peer")
SLOW_DOWN = OSError(
    "When reading information for key 'a.log' in bucket 'b': AWS Error SLOW_DOWN during HeadObject "
    "operation: Please reduce your request rate. (HTTP status 503)"
)
TOO_MANY = OSError("AWS Error UNKNOWN (HTTP status 429) during GetObject operation: No response")
FORBIDDEN = OSError("AWS Error ACCESS_DENIED during GetObject operation: No response body")


@pytest.fixture(autouse=True)
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made, none of which takes time: those of other threads are theirs."""
    pauses: list[float] = []
    monkeypatch.setattr(failed_reads, "time", SimpleNamespace(sleep=pauses.append))
    return pauses


class Failing:
    """Does what it stands for once it has failed by its script."""

    def __init__(self, does: Callable[..., Any], *errors: OSError) -> None:
        self.does, self.errors = does, [*errors]

    def __call__(self, *arguments: Any) -> Any:
        if self.errors:
            raise self.errors.pop(0)
        return self.does(*arguments)


class FailingFiles:
    """A filesystem of Arrow's shape: opening fails by one script, reading by another."""

    def __init__(self, opening: list[OSError], reading: list[OSError]) -> None:
        self.open_input_file = Failing(self._opened, *opening)
        self._reading = reading

    def _opened(self, _: str) -> FailingFile:
        return FailingFile(b"0123456789", self._reading)


class FailingFile(io.BytesIO):
    """A file of which a read fails by a script."""

    def __init__(self, content: bytes, errors: list[OSError]) -> None:
        super().__init__(content)
        self._errors = errors

    def readinto(self, buffer: Any) -> int:
        if self._errors:
            raise self._errors.pop(0)
        return super().readinto(buffer)


@pytest.mark.parametrize("error", [SLOW_DOWN, TOO_MANY, RESET])
def test_a_store_that_throttles_is_asked_again_after_pauses_that_grow(
    error: OSError, waited: list[float]
) -> None:
    files = ArrowStorage(FailingFiles([error] * 3, []), "s3://")
    assert files.open("s3://b/a.log").read() == b"0123456789"
    assert len(waited) == 3
    assert all(0.5 * p <= w <= 1.5 * p for p, w in zip(failed_reads.PAUSES, waited, strict=False))


def test_a_store_that_goes_on_to_throttle_is_an_error_that_says_nothing_of_the_dump() -> None:
    files = ArrowStorage(FailingFiles([SLOW_DOWN] * 99, []), "s3://")
    with pytest.raises(
        ReadFailedError, match=r"s3://b/a\.log: .*SLOW_DOWN.*nothing about what is in it"
    ):
        files.open("s3://b/a.log")


def test_what_a_store_forbids_is_refused_at_once(waited: list[float]) -> None:
    with pytest.raises(InputUnreadableError, match="ACCESS_DENIED"):
        ArrowStorage(FailingFiles([FORBIDDEN], []), "s3://").open("s3://b/a.log")
    assert waited == []


def test_a_read_that_is_cut_off_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    files = ArrowStorage(FailingFiles([], [RESET, SLOW_DOWN]), "s3://")
    monkeypatch.setattr(storage, "storage_of", lambda _: files)
    with ByteSource("s3://b/a.log") as source:
        assert source.bytes(3, 4) == b"3456"
    assert read_small("s3://b/a.log", 4) == b"0123"


def test_a_bad_sector_is_tried_once_more_and_named_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waited: list[float]
) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")

    def preadv(descriptor: int, buffers: list[memoryview], position: int) -> int:
        if position >= 4:
            raise BAD_SECTOR
        return real(descriptor, [buffers[0][:4]], position)

    real = os.preadv
    monkeypatch.setattr(os, "preadv", preadv)
    with (
        ByteSource(tmp_path / "a") as source,
        pytest.raises(InputUnreadableError, match=r"at byte 4 \(Input/output error\)"),
    ):
        source.bytes(0, 10)
    assert len(waited) == 1


def test_a_file_that_cannot_be_looked_at_is_not_taken_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`stat` that fails for another reason than that nothing is there is an error."""
    (tmp_path / "a").write_bytes(b"1")
    monkeypatch.setattr(os, "stat", Failing(os.stat, STALE))
    entry = LocalStorage().entry(str(tmp_path / "a"))
    assert entry is not None
    assert entry.size == 1
    monkeypatch.setattr(os, "stat", Failing(os.stat, *[BAD_SECTOR] * 9))
    with pytest.raises(InputUnreadableError, match="Input/output error"):
        LocalStorage().entry(str(tmp_path / "a"))
    monkeypatch.undo()
    assert LocalStorage().entry(str(tmp_path / "none")) is None
    assert LocalStorage().entry(str(tmp_path / "a" / "below")) is None


# Archived rows, and tables between tasks.


def test_archived_rows_are_read_on_after_a_cut_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows").write_bytes(b"one\ntwo\n")
    monkeypatch.setattr(os, "preadv", Failing(os.preadv, STALE, RESET, RESET))
    with SourceFile.opened(str(tmp_path / "rows")) as file:
        assert file.readlines() == [b"one\n", b"two\n"]
    with pytest.raises(ReadFailedError, match=r"gone: .* every machine"):
        SourceFile.opened(str(tmp_path / "gone"))


def test_a_file_of_archived_rows_that_shrinks_is_no_end_of_it(tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(bytes(3_000_000))
    with SourceFile.opened(f"file://{tmp_path}/rows") as file:
        file.read(10)
        os.truncate(tmp_path / "rows", 2_000_000)
        with pytest.raises(ReadFailedError, match="beyond byte 2000000: it had 3000000 bytes"):
            file.read()


def test_what_one_task_wrote_and_another_cannot_see_is_an_error(tmp_path: Path) -> None:
    place = put_value(str(tmp_path), {"a": 1})
    assert get_value(place) == {"a": 1}
    with pytest.raises(ReadFailedError, match="every machine has to see that folder"):
        get_value(f"{tmp_path}/elsewhere/between-1")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (STALE, ReadFailedError),
        (SLOW_DOWN, ReadFailedError),
        (OSError(errno.EIO, "Error reading bytes from file. Detail: [errno 5]"), ReadFailedError),
        (OSError("Couldn't deserialize thrift: TProtocolException: Invalid data"), WorkspaceError),
        (FileNotFoundError(errno.ENOENT, "No such file or directory"), WorkspaceError),
    ],
)
def test_a_disk_that_fails_is_not_a_damaged_workspace(
    error: OSError, kind: type[Exception]
) -> None:
    with pytest.raises(kind, match=r"/w/state/groups\.parquet"), reading("/w/state/groups.parquet"):
        raise error


# What a decode run makes of it.


@pytest.fixture
def planned() -> Plan:
    """What is read of a small dump of one broker."""
    return plan([str(DUMP)])


def decoded(planned: Plan, folder: Path) -> int:
    found = decode_dump(None, planned, (), Settings(str(folder)), PlanOptions())
    assert all(each.unreadable is None for each in found.slices)
    return sum(each.records for each in found.slices)


@pytest.fixture
def opening(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let opening a file fail by a script, by its name."""
    real = Path.open

    def fail(name: str, *errors: OSError) -> None:
        left = [*errors]

        def opened(path: Path, *arguments: Any, **options: Any) -> Any:
            if name in str(path) and left:
                raise left.pop(0)
            return real(path, *arguments, **options)

        monkeypatch.setattr(Path, "open", opened)

    return fail


def test_a_file_that_opens_at_the_second_try_is_read_whole(
    planned: Plan, tmp_path: Path, opening: Callable[..., None]
) -> None:
    whole = decoded(planned, tmp_path / "a")
    opening("__consumer_offsets-", STALE)
    assert decoded(planned, tmp_path / "b") == whole > 0


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "No such file or directory"),
        PermissionError(errno.EACCES, "Permission denied"),
        BAD_SECTOR,
        STALE,
        RESET,
    ],
    ids=lambda error: errno.errorcode[error.errno],
)
def test_a_file_that_was_listed_and_does_not_open_ends_the_run(
    planned: Plan, tmp_path: Path, opening: Callable[..., None], error: OSError
) -> None:
    opening("__consumer_offsets-", *[error] * 99)
    with pytest.raises(ReadFailedError, match=rf"__consumer_offsets-.*\.log: .*{error.strerror}"):
        decoded(planned, tmp_path)


def test_what_whoever_plans_cannot_open_is_absent_with_the_reason(
    tmp_path: Path, opening: Callable[..., None]
) -> None:
    refused = PermissionError(errno.EACCES, "Permission denied")
    opening("__consumer_offsets-", *[refused] * 999)
    found = decode_dump(None, plan([str(DUMP)]), (), Settings(str(tmp_path)), PlanOptions())
    unreadable = [each for each in found.slices if each.unreadable]
    assert unreadable
    assert all("Permission denied" in str(each.unreadable) for each in unreadable)
    assert sum(each.records for each in found.slices) > 0


def test_a_file_that_only_whoever_plans_cannot_open_is_read(
    tmp_path: Path, opening: Callable[..., None]
) -> None:
    """Its machine may be another one than that which decodes."""
    whole = decoded(plan([str(DUMP)]), tmp_path / "a")
    opening("__consumer_offsets-", *[PermissionError(errno.EACCES, "Permission denied")] * 999)
    planned = plan([str(DUMP)])
    assert any(each.unreadable for each in planned.slices)
    opening("nothing")
    assert decoded(planned, tmp_path / "b") == whole


def test_no_other_try_begins_after_half_a_minute(
    monkeypatch: pytest.MonkeyPatch, waited: list[float]
) -> None:
    now = [0.0]

    def read() -> bytes:
        now[0] += 20
        raise SLOW_DOWN

    monkeypatch.setattr(failed_reads, "monotonic", lambda: now[0])
    with pytest.raises(ReadFailedError):
        tried_again(read, "s3://b/a.log")
    assert (now[0], len(waited)) == (40, 1)
