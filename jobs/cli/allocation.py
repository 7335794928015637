"""How the memory of frames is given back: not at once, as the next frame takes it again.

To give pages back to the system, and to get them again, zeroed, is an eighth of what a large replay
takes. A second after they were freed is soon enough for others.
"""

from __future__ import annotations

import os
from typing import Final

ALLOCATION: Final = {"_RJEM_MALLOC_CONF": "dirty_decay_ms:1000,muzzy_decay_ms:1000"}
"""Settings of polars' allocator, which reads them when it is loaded."""


def keep_freed_memory() -> None:
    """Set it for this process, unless the person did; before polars is imported."""
    for name, value in ALLOCATION.items():
        os.environ.setdefault(name, value)
