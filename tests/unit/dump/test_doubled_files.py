"""A segment that lies in its folder under two names is read once, and said."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.dump.files.log_dirs import settle_doubles
from analytics.dump.files.segments import Listing, list_segments
from analytics.dump.files.storage import storage_of
from tests.support.batches import sound_batch

FIRST = sound_batch(0, [(b"\x00\x02\x00\x01a", None)] * 24)
SECOND = sound_batch(24, [(b"\x00\x02\x00\x01b", None)] * 24)


def settled(folder: Path, files: dict[int, bytes]) -> Listing:
    for base, data in files.items():
        (folder / f"{base:020d}.log").write_bytes(data)
    entries = storage_of(str(folder)).list(str(folder))
    return settle_doubles(list_segments(str(folder), "__consumer_offsets", 0, entries))


@pytest.mark.parametrize(
    ("files", "kept"),
    [
        ({0: FIRST, 24: SECOND}, [0, 24]),
        ({0: FIRST, 24: SECOND, 48: SECOND}, [0, 24]),
        # Under these names it would seem to end the segments before it.
        ({0: FIRST, 10: SECOND, 24: SECOND}, [0, 24]),
        ({0: FIRST, 7: FIRST, 24: SECOND}, [0, 24]),
        ({5: FIRST, 7: FIRST}, [5]),
        # Compaction took the first records: both names are possible, the higher one binds least.
        ({0: FIRST, 10: SECOND, 20: SECOND}, [0, 20]),
        # Not the same, though as long and with the same header.
        ({0: FIRST, 24: SECOND, 48: SECOND[:-1] + b"\x01"}, [0, 24, 48]),
        # Empty files hold no batch twice.
        ({0: b"", 24: SECOND, 48: b""}, [0, 24, 48]),
    ],
)
def test_the_name_that_fits_is_kept(
    files: dict[int, bytes], kept: list[int], tmp_path: Path
) -> None:
    listing = settled(tmp_path, files)
    assert [segment.base_offset for segment in listing.segments] == kept
    assert len(listing.ignored) == len(files) - len(kept)


def test_what_is_left_out_is_named_with_what_it_doubles(tmp_path: Path) -> None:
    (ignored,) = settled(tmp_path, {0: FIRST, 300: FIRST}).ignored
    assert ignored.name == "00000000000000000300.log"
    assert ignored.why == "holds the same bytes as 00000000000000000000.log"
