"""Rows of the tables about checkpoints as they are shown."""
