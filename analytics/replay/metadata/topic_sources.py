"""Where names, ids and sizes of topics are from."""

from __future__ import annotations

METADATA_LOG, PARTITION_METADATA = "metadata_log", "partition_metadata"
SIDE_FILE, RECORD = "side_file", "record"
SOURCES = (METADATA_LOG, PARTITION_METADATA, SIDE_FILE, RECORD)
"""Best first."""
