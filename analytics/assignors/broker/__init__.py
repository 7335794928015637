"""Assignors that run in brokers."""
