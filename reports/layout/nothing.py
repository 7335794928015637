"""What is said where an answer has no rows: that there is nothing, or that it cannot be told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reports.layout.paragraphs import paragraphs


def nothing(sentence: str, said: Mapping[str, Any]) -> str:
    """Return what to say in place of rows.

    Args:
        sentence: That there is nothing.
        said: What the answer says besides: `cannot_tell` has reasons for which there may be
            something all the same.
    """
    reasons = said.get("cannot_tell") or ()
    if not reasons:
        return sentence
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return paragraphs([f"Cannot tell: {reasons[0]}{more}"])
