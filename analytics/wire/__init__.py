"""Bytes to Arrow columns: the decoders derived from ``schemas``, without Spark."""
