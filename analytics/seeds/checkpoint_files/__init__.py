"""Checkpoints as files: each form that they are written in is a module of its own."""
