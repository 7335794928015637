"""The command: `groupscope`, `python -m groupscope`, and what spark-submit starts."""

from __future__ import annotations

from jobs.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
