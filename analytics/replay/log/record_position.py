"""Where a decoded record lies in a dump, besides its topic, partition and offset."""

from __future__ import annotations

from typing import Final

IN_DUMP = ("copy", "segment", "batch_position")
"""What finds a record again."""
POSITION = ("leader_epoch", *IN_DUMP)
"""The same with the epoch of the leader that appended it."""

BEFORE_ALL: Final = -1
"""An offset before every record."""
AFTER_ALL: Final = 2**63 - 1
"""An offset after every record."""
