"""The answer of `region`: checkpoints and what is wrong with them, and what the words mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from reports.layout.paragraphs import paragraphs
from reports.region.rows import sections
from reports.row_formats import Text, render, rendered

_LAST = ("cannot_tell", "findings")
"""What JSON has after all else, before the rows."""


def region_text(
    tables: Mapping[str, pa.Table],
    output_format: str,
    metadata: Mapping[str, Any],
    about: Mapping[str, Any],
) -> Text:
    """Return the answer as text.

    Args:
        tables: Of the question, by name.
        output_format: The format.
        metadata: What JSON has beside the tables; `findings` says what each finding means.
        about: What it has besides: which checkpoints they are.
    """
    ordered = {
        **{name: each for name, each in metadata.items() if name not in _LAST},
        **about,
        **{name: metadata[name] for name in _LAST},
    }
    if output_format in {"json", "csv"}:
        return rendered(sections(tables, output_format), output_format, ordered)
    text = render(sections(tables, output_format), output_format, ordered)
    words = set(tables["region_findings"]["finding"].to_pylist())
    meanings = [f"{word}: {each}" for word, each in metadata["findings"].items() if word in words]
    return "\n\n".join([text, *([paragraphs(meanings)] if meanings else [])])
