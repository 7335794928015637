"""Where a command works: in `--out`, or in a temporary workspace that is removed at the end."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from jobs.cli.console import Console


@contextmanager
def workspace_folder(out: str | None, console: Console) -> Iterator[str]:
    """Hand over the folder to work in; without `out` a temporary one, and say so."""
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="groupscope-") as folder:
        console.say_once("folder", f"working in {folder}, which is removed at the end")
        yield folder
