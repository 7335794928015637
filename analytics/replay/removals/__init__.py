"""Tombstones of offsets as frames of polars: what each removed, and why."""
