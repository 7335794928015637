"""Assignors that run in consumers."""
