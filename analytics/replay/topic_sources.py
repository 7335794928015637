"""Where names, ids and sizes of topics are from."""

from __future__ import annotations

METADATA_LOG = "metadata_log"
SOURCES = (METADATA_LOG, "partition_metadata", "side_file", "record")
"""Best first."""
