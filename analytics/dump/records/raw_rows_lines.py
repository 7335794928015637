"""Lines of files that Spark does not read because of their names, which begin with an underscore.

Sinks call a file by its topic first, and the internal topics begin with two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from analytics.workspace import open_location

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK: Final = 4 << 20


def is_hidden(path: str) -> bool:
    """Return whether Spark takes a file for none of data."""
    return path.rstrip("/").rpartition("/")[2].startswith(("_", "."))


def lines_of_file(path: str) -> Iterator[pa.RecordBatch]:
    """Yield the lines of a file, unpacked where its name says that it is packed.

    Args:
        path: A local path or a URI.

    Returns:
        `line` and `file`, some thousands together; bytes that are no UTF-8 are replaced.
    """
    filesystem, name = open_location(path)
    rest = b""
    with filesystem.open_input_stream(name) as stream:
        while block := stream.read(_BLOCK):
            whole, newline, last = (rest + block).rpartition(b"\n")
            rest = last
            if newline:
                yield _batch(whole, path)
    if rest:
        yield _batch(rest, path)


def _batch(content: bytes, path: str) -> pa.RecordBatch:
    text = content.decode("utf-8-sig", "replace")
    lines = pc.split_pattern(pa.array([text]), "\n").flatten()
    lines = pc.replace_substring_regex(lines, "\r$", "")
    files = pa.repeat(pa.scalar(path, pa.string()), len(lines))
    return pa.RecordBatch.from_arrays([lines, files], ["line", "file"])
