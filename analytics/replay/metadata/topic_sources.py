"""Where names, ids and sizes of topics are from."""

from __future__ import annotations

METADATA_LOG, PARTITION_METADATA = "metadata_log", "partition_metadata"
SOURCES = (METADATA_LOG, PARTITION_METADATA, "side_file", "record")
"""Best first."""
