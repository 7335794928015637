"""`share --against FILE` imports from here until it is a question."""

from jobs.comparing import compare_saved

__all__ = ["compare_saved"]
