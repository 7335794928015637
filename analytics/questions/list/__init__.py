"""The groups there are."""
