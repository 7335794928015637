"""How the memory of frames is taken, and how soon it goes back: not at once, the next takes it.

To give pages back, and to get them again, zeroed, is an eighth of what a large replay takes.
"""

from __future__ import annotations

import os
import sys
from typing import Final

_SETTING: Final = "_RJEM_MALLOC_CONF"
"""Polars' allocator reads it when it is loaded."""
_ARROW: Final = {"ARROW_DEFAULT_MEMORY_POOL": "jemalloc"} if sys.platform == "linux" else {}
"""Of Arrow's allocators, the one that holds a fifth less when threads free what others made."""


def kept_for(milliseconds: int) -> dict[str, str]:
    """Return the environment in which freed memory is kept for a time."""
    return {_SETTING: f"dirty_decay_ms:{milliseconds},muzzy_decay_ms:{milliseconds}"}


OF_COMMAND: Final = kept_for(1_000)
"""A command holds what it answers beside: what it freed shall not come on top for long."""
OF_WORKER: Final = kept_for(10_000)
"""A worker makes one bucket after the other, which take the same memory."""


def keep_freed_memory() -> None:
    """Set it for this command, unless the person did; before polars is imported."""
    for name, value in (OF_COMMAND | _ARROW).items():
        os.environ.setdefault(name, value)
