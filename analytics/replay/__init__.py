"""Decoded records to what the coordinators knew: one concept of theirs a file."""
