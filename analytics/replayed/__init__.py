"""A workspace that was replayed at an instant, and what is read of it."""
