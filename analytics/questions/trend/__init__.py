"""Audits of many instants and clusters: what is new, what is gone, what got worse, and how fast."""
