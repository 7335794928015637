"""Kafka's internal topics by name; everything else takes the names from here."""

from __future__ import annotations

from typing import Final

CONSUMER_OFFSETS: Final = "__consumer_offsets"
SHARE_GROUP_STATE: Final = "__share_group_state"
TRANSACTION_STATE: Final = "__transaction_state"
CLUSTER_METADATA: Final = "__cluster_metadata"

INTERNAL_TOPICS: Final = (CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE, CLUSTER_METADATA)
"""The internal topics whose records have schemas; the last is the metadata log."""

COORDINATOR_TOPICS: Final = (CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE)
"""The topics that group, share and transaction coordinators write."""

COMPACTED_TOPICS: Final = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE})
"""The topics whose cleanup policy is compact: gaps below the first dirty offset are normal."""
