"""The fast walk over headers finds what a slow one finds, and breaks where the chain does."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from analytics.dump.batches import walks
from analytics.dump.batches.batch_bytes import chain_starts
from analytics.dump.batches.headers import Headers
from analytics.dump.batches.layout import lay_out
from analytics.dump.batches.walks import Chain, walk_chain
from analytics.dump.files.model import NOTHING_KNOWN
from analytics.dump.files.storage import ByteSource
from tests.support.batches import Header, batch, entry, record
from tests.support.log_dirs import written


def walked(content: bytes, chunk_bytes: int = 1 << 20, *, mapped: bool = False) -> list[Chain]:
    def fill(buffer: memoryview, position: int) -> None:
        buffer[:] = content[position : position + len(buffer)]

    whole = np.frombuffer(content, np.uint8) if mapped else None
    return list(walk_chain(fill, len(content), chunk_bytes, whole))


def together(chains: list[Chain]) -> Headers:
    return Headers.concatenate([Headers.none(), *(chain.headers for chain in chains)])


def long_log(seed: int, size: int = 1 << 20) -> bytes:
    """Batches of very different sizes; values are full of bytes that look like headers."""
    draw = random.Random(seed)
    parts, base, total = [], 0, 0
    while total < size:
        count = draw.randint(1, 4)
        decoy = b"\0" * draw.randint(0, 40) + b"\0\0\0\x3d\0\0\0\0\x02" * draw.randint(0, 60)
        records = b"".join(record(delta, b"k", decoy) for delta in range(count))
        parts.append(batch(Header(base, count - 1, count), records))
        base += count
        total += len(parts[-1])
    return b"".join(parts)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("mapped", [False, True])
def test_every_header_is_found_whatever_looks_like_one(
    monkeypatch: pytest.MonkeyPatch, seed: int, mapped: bool
) -> None:
    monkeypatch.setattr(walks, "_LANE_BYTES", 4 << 10)
    content = long_log(seed, 200_000)
    expected = chain_starts(np.frombuffer(content + bytes(61), np.uint8), len(content) - 16)
    for chunk_bytes in (1 << 20, 30_000):
        chains = walked(content, chunk_bytes, mapped=mapped)
        assert all(chain.clean for chain in chains)
        assert chains[-1].end == len(content)
        np.testing.assert_array_equal(together(chains).position, expected)


def test_a_batch_larger_than_a_chunk_is_passed_over() -> None:
    content = written(0) + batch(Header(1, 0, 1), record(0, b"k", bytes(5000))) + written(2)
    chains = walked(content, chunk_bytes=200)
    assert together(chains).base_offset.tolist() == [0, 1, 2]
    assert chains[-1].clean


def test_header_fields_are_those_written() -> None:
    (chain,) = walked(written(7, 3, epoch=4, kept=[7, 9]))
    headers = chain.headers
    assert headers.base_offset.tolist() == [7]
    assert headers.last_offset.tolist() == [9]
    assert headers.leader_epoch.tolist() == [4]
    assert headers.count.tolist() == [2]
    assert not headers.is_whole[0]


def test_entries_of_the_old_formats() -> None:
    content = entry(5, b"k", b"v", magic=0) + entry(6, b"k", b"v", magic=1)
    content += entry(9, None, b"compressed", magic=1, codec=1)
    headers = together(walked(content))
    assert headers.magic.tolist() == [0, 1, 1]
    assert headers.last_offset.tolist() == [5, 6, 9]
    assert headers.count.tolist() == [1, 1, -1]
    assert headers.leader_epoch.tolist() == [-1, -1, -1]
    assert headers.max_timestamp[0] == -1
    assert headers.codec.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "after",
    [
        b"\0" * 100,
        b"\xff" * 100,
        written(2)[:40],
        written(2)[:10],
        written(0),
        batch(Header(2, -3, 1), b""),
        batch(Header(2, 0, -1), b""),
        batch(Header(2, 0, 1, length=1 << 30), b""),
        batch(Header(2, 0, 1, leader_epoch=-7), record(0, b"k", b"v")),
    ],
    ids=["zeros", "ones", "cut", "few", "back", "delta", "count", "length", "epoch"],
)
@pytest.mark.parametrize("mapped", [False, True])
def test_the_chain_ends_before_what_cannot_be_a_batch(after: bytes, mapped: bool) -> None:
    before = written(0, 2)
    chains = walked(before + after, mapped=mapped)
    assert chains[-1].end == len(before)
    assert not chains[-1].clean
    assert together(chains).base_offset.tolist() == [0]


def test_a_file_of_zeros_costs_no_more_than_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "_LANE_BYTES", 4 << 10)
    (chain,) = walked(bytes(1 << 20))
    assert (len(chain.headers), chain.end, chain.clean) == (0, 0, False)


def test_an_empty_file_has_no_headers() -> None:
    assert walked(b"") == []


def test_real_segments_have_the_headers_that_the_careful_walk_finds(repository: Path) -> None:
    for path in sorted((repository / "tests" / "data" / "dumps").glob("*/broker-1/__*/*.log")):
        careful = lay_out_of(path)
        content = path.read_bytes()
        chains = walked(content)
        assert not chains or chains[-1].clean
        found = together(chains)
        for name in ("position", "size", "last_offset", "crc", "magic"):
            np.testing.assert_array_equal(getattr(found, name), getattr(careful, name), str(path))
        # Where compressed entries of old formats begin only the careful walk knows.
        known = found.count >= 0
        for name in ("base_offset", "count"):
            ours, theirs = getattr(found, name)[known], getattr(careful, name)[known]
            np.testing.assert_array_equal(ours, theirs, str(path))


def lay_out_of(path: Path) -> Headers:
    with ByteSource(str(path)) as source:
        layout = lay_out(source, 0, source.size, NOTHING_KNOWN, check_crc=True)
    assert not layout.damages
    return Headers.of_batches(layout.batches)
