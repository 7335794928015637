"""What is said of share partitions where a clock was set or wrong: times measure nothing then."""

from __future__ import annotations

from typing import Final

WENT_BACK: Final = "cannot tell how long it stood: the share coordinator's clock was set"
GROUPS_WENT_BACK: Final = "cannot tell how long it is in this phase: the clock of its group was set"
