"""JSON documents without names: a manifest, an answer's head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from analytics.redaction.pseudonyms import Pseudonyms
from analytics.redaction.text import NamesInText
from schemas.identities import is_withheld, kind_of, kind_of_fields

WITHHELD: Final = "(redacted)"


def redacted_document(
    document: Any,  # noqa: ANN401 - as JSON has it
    pseudonyms: Pseudonyms,
    text: NamesInText,
    field: str = "",
) -> Any:  # noqa: ANN401
    """Return a document without names.

    Args:
        document: As JSON has it.
        pseudonyms: For fields that identify.
        text: For all other text.
        field: What the document is called in the one around it.
    """
    if isinstance(document, Mapping):
        return {
            _field(field, str(name), pseudonyms): redacted_document(
                each, pseudonyms, text, str(name)
            )
            for name, each in document.items()
        }
    if isinstance(document, list | tuple):
        return [redacted_document(each, pseudonyms, text, field) for each in document]
    if not isinstance(document, str):
        return document
    if is_withheld(field):
        return WITHHELD
    kind = kind_of(field)
    return text.replaced(document) if kind is None else pseudonyms.of(kind, document)


def _field(of: str, name: str, pseudonyms: Pseudonyms) -> str:
    """Return the name of a field: our own, but where fields are named after something."""
    kind = kind_of_fields(of)
    return name if kind is None else pseudonyms.of(kind, name)
