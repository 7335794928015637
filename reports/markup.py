"""What Markdown takes for more than text."""

from __future__ import annotations

from typing import Final

MARKUP: Final = r"[\\`*_{}\[\]<>#|~!&@]"
"""A pattern, as Python and Arrow have it, of characters that a backslash makes text of anywhere."""
