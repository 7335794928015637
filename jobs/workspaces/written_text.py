"""Text files that are there whole or not at all."""

from __future__ import annotations

from pathlib import Path


def write_text(path: Path, text: str) -> Path:
    """Write a file and its folder; return the path.

    A text that is not empty ends with a line's end. What UTF-8 cannot hold is written as an escape.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f"{path.name}.part")
    text = text.rstrip("\n") + "\n" if text else ""
    staged.write_text(text, encoding="utf-8", errors="backslashreplace")
    return staged.replace(path)
