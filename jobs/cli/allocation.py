"""How soon the memory of frames goes back to the system: not at once, as the next frame takes it.

To give pages back, and to get them again, zeroed, is an eighth of what a large replay takes.
"""

from __future__ import annotations

import os
from typing import Final

_SETTING: Final = "_RJEM_MALLOC_CONF"
"""Polars' allocator reads it when it is loaded."""


def kept_for(milliseconds: int) -> dict[str, str]:
    """Return the environment in which freed memory is kept for a time."""
    return {_SETTING: f"dirty_decay_ms:{milliseconds},muzzy_decay_ms:{milliseconds}"}


OF_COMMAND: Final = kept_for(1_000)
"""A command holds what it answers beside: what it freed shall not come on top for long."""
OF_WORKER: Final = kept_for(10_000)
"""A worker makes one bucket after the other, which take the same memory."""


def keep_freed_memory() -> None:
    """Set it for this command, unless the person did; before polars is imported."""
    for name, value in OF_COMMAND.items():
        os.environ.setdefault(name, value)
