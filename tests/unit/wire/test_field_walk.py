"""One walk over the fields of every row finds what the readers of single fields find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.decode.tasks import Settings, SliceReport, decode_slice
from analytics.dump.copies.plan import plan
from analytics.wire import field_walk
from analytics.wire.columns import struct_array, struct_type, take
from analytics.wire.compiled import Loop
from analytics.wire.cursor import ByteBuffer, Cursor, Reason
from analytics.wire.decoder import value_reader
from schemas import all_record_types, record_type
from tests.support.encoder import Encoder
from tests.support.examples import examples
from tests.support.random_values import structs

if TYPE_CHECKING:
    from pathlib import Path

    from schemas.model import RecordType

SHAPES = [
    pytest.param(kind, version, id=f"{kind.name}-v{version}")
    for kind in all_record_types().values()
    if kind.read == "decode" and not kind.layouts
    for version in range(kind.versions.first, kind.versions.last + 1)
]
DAMAGE = st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255))


@contextmanager
def walking(how: bool) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "pays", lambda *_: how)
        yield


def cursor_over(messages: list[bytes]) -> Cursor:
    length = np.array([len(each) for each in messages], np.int64)
    buffer = ByteBuffer(np.frombuffer(b"".join(messages), np.uint8))
    return Cursor.over(buffer, np.cumsum(length) - length, length)


def read(kind: RecordType, version: int, messages: list[bytes]) -> tuple[Any, ...]:
    """Rows that are sound, which ones they are, and why the others are not."""
    cursor = cursor_over(messages)
    group = value_reader(kind.name, version, None).read(cursor)
    cursor.require_exhausted(Reason.TRAILING_BYTES, "")
    living = np.flatnonzero(~cursor.dead)
    failures = [cursor.journal.causes[each] for each in cursor.journal.failure if each >= 0]
    try:
        rows = struct_array(take(group, living), struct_type(kind.value))  # type: ignore[arg-type]
    except pa.ArrowInvalid:
        return "not UTF-8", living.tolist(), failures
    return rows.to_pylist(), living.tolist(), failures


@pytest.mark.parametrize(("kind", "version"), SHAPES)
@examples(6, 30, data=st.data())
def test_whatever_is_damaged_both_find_the_same(
    kind: RecordType, version: int, data: st.DataObject
) -> None:
    values = data.draw(st.lists(structs(kind.value, version, None), min_size=1, max_size=4))
    encoder = Encoder(version, None, version in kind.flexible)
    messages = [encoder.struct(kind.value, each) for each in values]
    for number, message in enumerate(messages):
        damaged = bytearray(message)
        for place, byte in data.draw(st.lists(DAMAGE, max_size=2)) if message else ():
            damaged[int(place * len(damaged))] = byte
        messages[number] = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
        messages[number] += data.draw(st.sampled_from((b"", message[len(messages[number]) :])))
    with walking(True):
        walked = read(kind, version, messages)
    with walking(False):
        assert read(kind, version, messages) == walked


def test_rows_that_are_null_have_no_values_and_the_others_theirs() -> None:
    kind = record_type("OffsetCommit")
    value = b"\x00" * 7 + b"\x09" + b"\x00\x00\x00\x02" + b"\x00\x01m" + b"\x00" * 8
    cursor = cursor_over([b"", value, b"", b"", value, b""])
    null = np.array([True, False, True, True, False, True])
    with walking(True):
        group = value_reader(kind.name, 3, None).read_among_nulls(cursor, null)
    assert group is not None
    assert (cursor.position == cursor.end).all()
    rows = struct_array(group, struct_type(kind.value)).to_pylist()
    assert [row if row is None else (row["offset"], row["metadata"]) for row in rows] == [
        *(None, (9, "m"), None),
        *(None, (9, "m"), None),
    ]


def test_a_struct_with_an_array_is_not_read_among_nulls() -> None:
    reader = value_reader("GroupMetadata", 3, None)
    with walking(True):
        assert reader.read_among_nulls(cursor_over([b""]), np.array([True])) is None


@settings(max_examples=300, deadline=None)
@given(
    data=st.binary(min_size=1, max_size=60),
    fields=st.lists(
        st.one_of(
            st.tuples(st.just(0), st.sampled_from((1, 2, 4, 8))),
            st.tuples(st.sampled_from((1,)), st.just(16)),
            st.tuples(st.just(2), st.just(1)),
            st.tuples(st.sampled_from((3, 4)), st.sampled_from((0, 2, 4))),
        ),
        min_size=1,
        max_size=5,
    ),
    cuts=st.lists(st.integers(0, 60), min_size=1, max_size=4),
)
def test_compiled_the_walk_finds_what_it_finds_interpreted(
    data: bytes, fields: list[tuple[int, int]], cuts: list[int]
) -> None:
    edges = sorted(min(each, len(data)) for each in cuts)
    starts, ends = np.array([0, *edges], np.uint64), np.array([*edges, len(data)], np.uint64)
    told = np.array(fields, np.uint64)

    def found(walk: Callable[..., int], content: Any) -> list[Any]:
        columns = np.zeros((2 * len(fields), starts.size), np.uint64)
        after = np.zeros(starts.size, np.uint64)
        rows = walk(content, told, starts, ends, columns, after)
        return [rows, columns[:, :rows].tolist(), after[:rows].tolist()]

    content = np.frombuffer(data, np.uint8)
    loop = field_walk.walk_fields
    assert found(loop.compiled, content) == found(loop.interpreted, content.data)


@pytest.mark.parametrize("dump", ["kafka-2.0.1-v1", "kafka-4.3.1-story", "kafka-4.3.1-failover"])
def test_a_dump_is_decoded_alike(dump: str, repository: Path) -> None:
    slices = plan([str(repository / "tests" / "data" / "dumps" / dump)]).slices

    def decoded() -> list[tuple[str, pa.RecordBatch]]:
        return [
            (table, batch)
            for each in slices
            for part in decode_slice(each, Settings(""), SliceReport(0))
            for table, batch in part.batches.items()
        ]

    with walking(True):
        walked = decoded()
    with walking(False):
        plain = decoded()
    assert [table for table, _ in walked] == [table for table, _ in plain]
    assert all(ours.equals(theirs) for (_, ours), (_, theirs) in zip(walked, plain, strict=True))
