"""Bytes to tables to answers: `wire`, `dump`, `decode`, then `replay` and `evaluate`."""
