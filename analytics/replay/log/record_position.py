"""Where a decoded record lies in a dump, besides its topic, partition and offset."""

from __future__ import annotations

IN_DUMP = ("copy", "segment", "batch_position")
"""What finds a record again."""
POSITION = ("leader_epoch", *IN_DUMP)
"""The same with the epoch of the leader that appended it."""

NEVER = -1
"""An offset before any record."""
