"""Generate dumps of any size: segments as brokers write them, the same ones for the same arguments.

    python -m benchmarks.generate OUT --size 100MB --segments 4 --groups 20000
    python -m benchmarks.generate OUT --kind share --size 20MB
    python -m benchmarks.generate OUT --codecs none,gzip,snappy,lz4,zstd --records-per-batch 20
    python -m benchmarks.generate OUT --size 12GB --segments 50 --largest-share 0.4

A few hundred batches are put together by hand (`benchmarks.templates`); a segment is many copies of
them, in which numpy then writes what differs from copy to copy: offsets, times, groups, commits.
About a second per 100 MB uncompressed.
"""

from __future__ import annotations

import argparse
import random
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from crc32c import crc32c

from benchmarks.codecs import compress
from benchmarks.templates import (
    BATCH_HEADER,
    CONTROL,
    Patch,
    Template,
    offsets_templates,
    share_templates,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

KINDS: Final = {"offsets": "__consumer_offsets", "share": "__share_group_state"}
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
FIRST_TIMESTAMP: Final = 1_760_000_000_000
_TEMPLATES: Final = 256
_PRODUCERS: Final = 1_000_000
"""More than there are numbers of groups."""
_UNITS: Final = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
# What one run of numpy works on.
_BLOCK_BATCHES: Final = 20_000


@dataclass(frozen=True)
class Options:
    """What to generate.

    Attributes:
        kind: `offsets` or `share`.
        size: Bytes of a segment, at least; before compression.
        groups: Numbers that names of groups begin with.
        group_share: Of records of `__consumer_offsets`, those that list the members of a group.
        transaction_share: Of its batches, those that are a transaction, with its marker.
        records_per_batch: On average; 1 looks like a compacted log.
        codecs: Taken in turn, batch by batch.
        seed: Of everything random.
    """

    kind: str = "offsets"
    size: int = 100_000_000
    groups: int = 20_000
    records_per_batch: int = 6
    codecs: tuple[str, ...] = ("none",)
    seed: int = 1
    group_share: float = 0.01
    transaction_share: float = 0


@dataclass(frozen=True)
class Written:
    """One segment file and what it holds."""

    path: Path
    size: int
    batches: int
    records: int


def write_dump(folder: Path, options: Options, segments: int) -> list[Written]:
    """Write a log directory with one partition per segment.

    Groups of `__consumer_offsets` lie in the partition that the hash of their name says.
    """
    written = []
    for number in range(segments):
        path = folder / f"{KINDS[options.kind]}-{number}" / f"{0:020d}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        written.append(write_segment(path, options, number, partitions=segments))
    return written


def write_skewed_dump(
    folder: Path,
    options: Options,
    partitions: int,
    largest_share: float,
    segment_bytes: int = 100_000_000,
) -> Iterator[Written]:
    """Write a log directory, one partition of which holds a share of all bytes.

    The log of a partition is cut into segments of some size, as `offsets.topic.segment.bytes` does.

    Args:
        folder: Where.
        options: `size` is that of the whole dump.
        partitions: Their number.
        largest_share: Of all bytes, those of partition 0; the others share the rest alike.
        segment_bytes: Of a segment file, at least, but for the last one of a partition.
    """
    of_others = (1 - largest_share) / (partitions - 1)
    for number in range(partitions):
        size = int(options.size * (of_others if number else largest_share))
        log = folder / f"{KINDS[options.kind]}-{number}"
        yield from _write_log(log, replace(options, size=size), number, partitions, segment_bytes)


def _write_log(
    folder: Path, options: Options, number: int, partitions: int, segment_bytes: int
) -> Iterator[Written]:
    """Write the segments of one partition."""
    folder.mkdir(parents=True, exist_ok=True)
    every = blocks(options, number, partitions)
    base_offset = 0
    while (block := next(every, None)) is not None:
        path = folder / f"{base_offset:020d}.log"
        with path.open("wb") as file:
            size, batches, records = file.write(block.content), block.batches, block.records
            while size < segment_bytes and (block := next(every, None)) is not None:
                size += file.write(block.content)
                batches += block.batches
                records += block.records
        base_offset += records
        yield Written(path, size, batches, records)


def write_segment(path: Path, options: Options, number: int = 0, *, partitions: int = 1) -> Written:
    """Write one segment file: that of partition ``number`` of so many of its topic."""
    size = batches = records = 0
    with path.open("wb") as file:
        for block in blocks(options, number, partitions):
            size += file.write(block.content)
            batches += block.batches
            records += block.records
    return Written(path, size, batches, records)


@dataclass(frozen=True)
class Block:
    """A run of whole batches."""

    content: bytes
    batches: int
    records: int


def blocks(options: Options, number: int = 0, partitions: int = 1) -> Iterator[Block]:
    """Yield a segment's bytes."""
    templates = _templates(options)
    numbers = _numbers_of_groups(templates, options, number, partitions)
    choice = np.random.default_rng([options.seed, number])
    base_offset, timestamp, left = 0, FIRST_TIMESTAMP, options.size
    mean = sum(len(each.content) for each in templates) / len(templates)
    while left > 0:
        batches = min(_BLOCK_BATCHES, int(left / mean) + 1)
        drawn = choice.integers(len(templates), size=batches)
        content = _filled(templates, drawn, choice, numbers, base_offset, timestamp)
        records = sum(templates[each].records for each in drawn.tolist())
        sealed = sum(len(templates[each].starts) for each in drawn.tolist())
        left -= len(content)
        yield Block(_sealed(content, templates, drawn, options.codecs), sealed, records)
        base_offset += records
        timestamp += batches * 10


def _templates(options: Options) -> list[Template]:
    draw = random.Random(options.seed)
    if options.kind == "share":
        return share_templates(draw, _TEMPLATES, options.records_per_batch)
    shares = options.group_share, options.transaction_share
    return offsets_templates(draw, _TEMPLATES, options.records_per_batch, *shares)


def _numbers_of_groups(
    templates: list[Template], options: Options, partition: int, partitions: int
) -> list[NDArray[np.int64]]:
    """Return, for each template, the numbers whose groups lie in a partition.

    Kafka's `GroupMetadataManager.partitionFor`: Java's hash of the name. Records of share groups
    lie by group, topic and partition, and are not placed here.
    """
    every = np.arange(options.groups)
    if options.kind == "share" or partitions == 1:
        return [every] * len(templates)
    hashes = np.zeros(options.groups, np.uint32)
    for digit in reversed(range(6)):
        hashes = hashes * np.uint32(31) + (48 + every // 10**digit % 10).astype(np.uint32)
    found = []
    for template in templates:
        named = hashes
        for letter in template.name:
            named = named * np.uint32(31) + np.uint32(letter)
        signed = named.view(np.int32).astype(np.int64)
        found.append(every[np.abs(signed) % partitions == partition])
    return found


def _filled(
    templates: list[Template],
    drawn: NDArray[np.int64],
    choice: np.random.Generator,
    numbers: list[NDArray[np.int64]],
    base_offset: int,
    timestamp: int,
) -> bytearray:
    """Copies of templates with everything that differs between them written in."""
    content = bytearray().join([templates[each].content for each in drawn.tolist()])
    data = np.frombuffer(content, np.uint8)
    sizes = np.array([len(each.content) for each in templates])[drawn]
    starts = np.cumsum(sizes) - sizes
    counts = np.array([each.records for each in templates])[drawn]
    base = base_offset + np.cumsum(counts) - counts
    time = timestamp + np.arange(drawn.size) * 10
    of_its_name = np.array([each.size for each in numbers])[drawn]
    group = choice.integers(of_its_name)
    committed = choice.integers(1 << 40, size=drawn.size)
    values = {
        Patch.BASE_OFFSET: base,
        Patch.MARKER_OFFSET: base + counts - 1,
        Patch.TIME: time,
        Patch.COMMITTED: committed,
        Patch.GROUP: group,
    }
    for number, template in enumerate(templates):
        rows = np.flatnonzero(drawn == number)
        group[rows] = numbers[number][group[rows]]
        for patch, place in template.patches:
            at = starts[rows] + place
            # Each group has a producer of its own.
            of_group = group[rows] + number * _PRODUCERS
            value = of_group if patch is Patch.PRODUCER else values[patch][rows]
            if patch is Patch.GROUP:
                _write_digits(data, at, value)
            else:
                _write_longs(data, at, value)
    return content


def _write_longs(data: NDArray[np.uint8], at: NDArray[np.int64], value: NDArray[np.int64]) -> None:
    np.ndarray((data.size - 7,), "V8", data, strides=(1,))[at] = value.astype(">i8").view("V8")


def _write_digits(data: NDArray[np.uint8], at: NDArray[np.int64], value: NDArray[np.int64]) -> None:
    for digit in range(6):
        data[at + 5 - digit] = 48 + value // 10**digit % 10


def _sealed(
    content: bytearray, templates: list[Template], drawn: NDArray[np.int64], codecs: tuple[str, ...]
) -> bytes:
    """Compress the batches and sum over them."""
    if codecs == ("none",):
        for start, end in _spans(templates, drawn):
            content[start + 17 : start + 21] = crc32c(content[start + 21 : end]).to_bytes(4)
        return bytes(content)
    sealed = []
    for place, (start, end) in enumerate(_spans(templates, drawn)):
        head = bytearray(content[start : start + BATCH_HEADER])
        records = bytes(content[start + BATCH_HEADER : end])
        # Brokers write markers as they are.
        if not head[22] & CONTROL:
            codec = CODECS.index(codecs[place % len(codecs)])
            records = compress(codec, records)
            head[8:12] = (len(records) + BATCH_HEADER - 12).to_bytes(4)
            head[22] |= codec
        head[17:21] = crc32c(records, crc32c(head[21:])).to_bytes(4)
        sealed += [bytes(head), records]
    return b"".join(sealed)


def _spans(templates: list[Template], drawn: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield where each batch begins and ends."""
    start = 0
    for each in drawn.tolist():
        template = templates[each]
        ends = (*template.starts[1:], len(template.content))
        for first, end in zip(template.starts, ends, strict=True):
            yield start + first, start + end
        start += len(template.content)


def parse_size(text: str) -> int:
    """Return bytes of ``100MB``, ``4GB``, ``65536``."""
    found = re.fullmatch(r"(\d+)\s*([KMG]B)?", text.strip().upper())
    if not found:
        raise argparse.ArgumentTypeError(f"{text}: a size is a number of bytes, or as in 100MB")
    return int(found[1]) * _UNITS[found[2] or ""]


def main() -> None:
    """Generate a dump as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--kind", choices=sorted(KINDS), default="offsets")
    parser.add_argument("--size", type=parse_size, default=100_000_000, help="of each segment")
    parser.add_argument("--segments", type=int, default=1, help="one for each partition")
    parser.add_argument(
        "--largest-share",
        type=float,
        help="of all bytes, those of partition 0; --size is that of the dump, then, and segments "
        "hold 100MB",
    )
    parser.add_argument("--groups", type=int, default=20_000)
    parser.add_argument("--records-per-batch", type=int, default=6)
    parser.add_argument("--group-share", type=float, default=0.01, help="of records, of members")
    parser.add_argument(
        "--transaction-share",
        type=float,
        default=0,
        help="of batches, a transaction with its marker",
    )
    parser.add_argument("--codecs", default="none", help=f"of {', '.join(CODECS)}")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    codecs = tuple(given.codecs.split(","))
    options = Options(
        given.kind,
        given.size,
        given.groups,
        given.records_per_batch,
        codecs,
        given.seed,
        given.group_share,
        given.transaction_share,
    )
    if given.largest_share is None:
        written: Iterable[Written] = write_dump(given.out, options, given.segments)
    else:
        written = write_skewed_dump(given.out, options, given.segments, given.largest_share)
    for each in written:
        print(
            f"{each.path}: {each.size:,} bytes, {each.batches:,} batches, {each.records:,} records"
        )


if __name__ == "__main__":
    main()
